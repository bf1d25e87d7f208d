// What collectives mean, as data. It is written from the MPI standard, without a schedule, the
// planner or verify, whose results it judges.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "ucg_coll/graph/collective.hpp"

namespace ucg::test {

using Bytes = std::vector<std::byte>;

/// An operator on elements of 8 bytes that stand for x -> factor x + term modulo 2^32. It composes
/// them: this is associative, and commutative where all factors are 1. The operands are combined
/// from the left into `target`.
inline constexpr std::uint64_t kElementBytes = 8;
void compose(void* context, const std::byte* const* operands, std::size_t operand_count,
             std::byte* target, std::size_t bytes);

/// Random buffers of all ranks before a collective, and what they hold after it. Bytes that the
/// collective does not define stay as they were.
struct Reference {
    std::vector<Bytes> inputs;
    std::vector<Bytes> outputs;
    std::vector<Bytes> results; ///< What the outputs hold afterwards.
};
/// `requests` are those of all ranks, in rank order. In reductions element_bytes is kElementBytes.
Reference make_reference(const std::vector<graph::Request>& requests, std::mt19937_64& random);

} // namespace ucg::test
