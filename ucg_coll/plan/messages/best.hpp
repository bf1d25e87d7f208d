// The cheapest piece for a whole vector among a team: what two-level algorithms take for each of
// their stages.
#pragma once

#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {

void bcast_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                graph::Slice data);
double bcast_best_ns(const Link& link, Rank count, std::uint64_t bytes);

void reduce_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                 graph::Slice source, graph::Slice target, Operator op);
double reduce_best_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes, Operator op);

void allreduce_best(graph::Builder& builder, const Team& team, const Link& link,
                    graph::Slice source, graph::Slice target, Operator op);
double allreduce_best_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op);

} // namespace ucg::plan
