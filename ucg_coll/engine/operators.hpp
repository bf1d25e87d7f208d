// The library's own operators on predefined element types, as kernels that combine k operands in
// one pass.
#pragma once

#include <cstdint>

#include "ucg_coll/engine/reduction.hpp"

namespace ucg::engine {

enum class ElementType : std::uint8_t {
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float32,
    float64,
};

/// As MPI defines them. Integers wrap around; minimum and maximum of floating-point numbers take
/// the left operand where the two do not compare; logical results are 0 or 1. A result has the same
/// bits on every instruction set and however the operands are grouped into calls from the left;
/// only which NaN a sum or product of several NaN yields is left open, as IEEE 754 leaves it.
enum class Operator : std::uint8_t {
    sum,
    prod,
    min,
    max,
    land,
    lor,
    lxor,
    band,
    bor,
    bxor,
};

/// The kernel, for the best instruction set of this machine; null where the operator is not defined
/// for the type (logical and bitwise operators on floating point). Thread-safe; the kernel ignores
/// its context.
CombineFn find_operator(Operator op, ElementType type);

} // namespace ucg::engine
