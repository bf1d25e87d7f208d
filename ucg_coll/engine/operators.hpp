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
    float16,    ///< IEEE 754 binary16.
    bfloat16,   ///< The upper half of a float32.
    complex64,  ///< Real part, imaginary part, as float32 each.
    complex128, ///< Real part, imaginary part, as float64 each.
    // Pairs of a value and an index, as C lays out a structure of both.
    int16_int32,
    int32_int32,
    int64_int32,
    float32_int32,
    float64_int32,
    int64_int64,
    float64_int64,
};

/// The operators, as MPI defines them. Integers wrap around; minimum and maximum of floating-point
/// numbers are the left operand where the two operands do not compare; logical results are 0 or 1.
/// A result has the same bits on every instruction set and however the operands are grouped into
/// calls from the left; only which NaN a sum or product of several NaN yields is left open, as IEEE
/// 754 leaves it. Each combination of two 16-bit floats is computed in float32 and rounded to
/// nearest, ties to even.
enum class OperatorKind : std::uint8_t {
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
    minloc,
    maxloc,
};

/// Returns the kernel for the best instruction set of this machine; null where the operator is not
/// defined for the type (logical and bitwise operators on floating point, min and max of complex
/// numbers, anything but minloc and maxloc on pairs). Thread-safe. The kernel ignores its context.
CombineFn find_operator(OperatorKind op, ElementType type);

} // namespace ucg::engine
