// Integer arithmetic that cannot overflow silently: in ordinary programs, a count of elements times
// the size of a type exceeds 2^31.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "ucg_coll/base/assert.hpp"

namespace ucg {

/// Returns a * b; asserts that it fits into 64 bits.
inline std::uint64_t checked_multiply(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    UCG_ASSERT(!__builtin_mul_overflow(a, b, &product));
    return product;
}

/// Returns a * b, or the largest number if it does not fit into 64 bits.
inline std::uint64_t saturated_multiply(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? ~std::uint64_t{0} : product;
}

/// Returns a + b; asserts that it fits into 64 bits.
inline std::uint64_t checked_add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t sum = 0;
    UCG_ASSERT(!__builtin_add_overflow(a, b, &sum));
    return sum;
}

/// Returns the smallest q with q * divisor >= value. REQUIRES: divisor > 0.
constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t divisor) {
    return value / divisor + (value % divisor != 0);
}

/// Returns value rounded up to a multiple of `multiple`. REQUIRES: multiple > 0.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
    return divide_up(value, multiple) * multiple;
}

/// Returns the largest power of two that is <= value. REQUIRES: value > 0.
constexpr std::uint32_t floor_power_of_two(std::uint32_t value) {
    return std::bit_floor(value);
}

/// Returns ceil(log2(value)). REQUIRES: value > 0.
constexpr unsigned ceil_log2(std::uint64_t value) {
    return value <= 1 ? 0U : static_cast<unsigned>(std::bit_width(value - 1));
}

} // namespace ucg
