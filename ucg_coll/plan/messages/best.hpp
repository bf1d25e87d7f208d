// The cheapest pieces for whole vectors among a team. Two-level algorithms take them for their
// stages. Each NAME_best() appends the piece with the lowest price under `link`, and NAME_best_ns()
// returns that price, in nanoseconds.
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
