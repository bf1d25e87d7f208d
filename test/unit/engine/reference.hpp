// What collectives mean, in data: written from the MPI standard, without a schedule, a planner or
// verify, whose results it judges.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "ucg_coll/graph/collective.hpp"

namespace ucg::test {

using Bytes = std::vector<std::byte>;

/// An operator on elements of 8 bytes, x -> factor x + term modulo 2^32, composed: associative, and
/// it commutes where all factors are 1. Operands combined from the left into `target`.
inline constexpr std::uint64_t kElementBytes = 8;
void compose(void* context, const std::byte* const* operands, std::size_t operand_count,
             std::byte* target, std::size_t bytes);

/// The buffers of all ranks before a collective, at random, and what they hold after it. Bytes that
/// it does not define stay as they were.
struct Reference {
    std::vector<Bytes> inputs;
    std::vector<Bytes> outputs;
    std::vector<Bytes> results; ///< Of `outputs`.
};
/// `requests`: of all ranks, in rank order; element_bytes is kElementBytes where it reduces.
Reference make_reference(const std::vector<graph::Request>& requests, std::mt19937_64& random);

} // namespace ucg::test
