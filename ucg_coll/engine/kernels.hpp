// The vector kernels behind find_operator. They are compiled once for each instruction set that the
// compiler can generate (Google Highway); the one to call is chosen when the program runs.
#pragma once

#include <array>
#include <cstddef>

#include "ucg_coll/engine/operators.hpp"

namespace ucg::engine {

inline constexpr std::size_t kElementTypeCount =
    static_cast<std::size_t>(ElementType::float64_int64) + 1;
inline constexpr std::size_t kOperatorCount = static_cast<std::size_t>(OperatorKind::maxloc) + 1;

/// One operator's kernels by ElementType; null where the operator is not defined for the type.
using KernelRow = std::array<CombineFn, kElementTypeCount>;

/// All kernels, by Operator, then by ElementType.
using KernelTable = std::array<KernelRow, kOperatorCount>;

inline KernelRow& row_of(KernelTable& table, OperatorKind op) {
    return table[static_cast<std::size_t>(op)];
}

/// Returns the kernels for the best instruction set that Highway finds at the time of the call:
/// always the same in one process, unless a test tells Highway otherwise. Thread-safe.
KernelTable best_kernels();

/// The parts of best_kernels(), each in a file of its own. They set the rows of their operators, or
/// the columns of their types.
void set_arithmetic_kernels(KernelTable& table); ///< sum, prod
void set_extremum_kernels(KernelTable& table);   ///< min, max
void set_boolean_kernels(KernelTable& table);    ///< land .. bxor
void set_half_kernels(KernelTable& table);       ///< All kernels of 16-bit floats.
void set_composite_kernels(KernelTable& table);  ///< Complex numbers and pairs. REQUIRES: the rest.

} // namespace ucg::engine
