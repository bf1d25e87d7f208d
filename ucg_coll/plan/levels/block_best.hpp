// The cheapest piece that moves blocks among a team: what two-level algorithms take for each of
// their stages, and the views of the blocks by host that these stages work on.
#pragma once

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {

void allgather_best(graph::Builder& builder, const Team& team, const Link& link, graph::Slice own,
                    const BlockMap& target);
double allgather_best_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest);

/// `block_bytes`: the longest block, which all members know.
void gather_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                 graph::Slice own, const BlockMap& target, std::uint64_t block_bytes);
double gather_best_ns(const Link& link, Rank count, std::uint64_t block_bytes);

void scatter_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                  const BlockMap& source, graph::Slice own, std::uint64_t block_bytes);
double scatter_best_ns(const Link& link, Rank count, std::uint64_t block_bytes);

/// Operators that do not commute see the members' operands in order.
void reduce_scatter_best(graph::Builder& builder, const Team& team, const Link& link,
                         const BlockMap& source, graph::Slice target, Operator op);
double reduce_scatter_best_ns(const Link& link, Rank count, std::uint64_t total,
                              std::uint64_t longest, Operator op);

/// Those of the ranks' blocks that belong to the ranks of `host`, in their order.
BlockMap blocks_on_host(const Facts& facts, std::uint32_t host, const BlockMap& blocks);

// Of requests whose blocks' lengths all ranks know.

/// How long the blocks of the ranks of `host` are, in their order.
std::vector<std::uint64_t> bytes_on_host(const Facts& facts, std::uint32_t host,
                                         const graph::Request& request);
/// How long all blocks of each host are together.
std::vector<std::uint64_t> bytes_by_host(const Facts& facts, const graph::Request& request);
/// The most of them.
std::uint64_t bytes_by_host_max(const Facts& facts, const graph::Request& request);

} // namespace ucg::plan
