// What rounds of recursive doubling cost in which each rank only sends upwards.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {

/// Returns Link::sends_before_ns() for messages of `bytes` in `rounds` rounds. A host's link
/// carries the bytes of fewer messages: over short distances only some of its ranks send to other
/// hosts.
inline double rounds_before_ns(const Link& link, unsigned rounds, std::uint64_t bytes) {
    double ns = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        const Link way = link.rotated(std::uint64_t{1} << round);
        ns += way.sends_before_ns(1, bytes);
    }
    return ns;
}

/// Returns the time of `rounds` messages on the way up, each round's after that of the one before.
/// `only` is what senders do meanwhile if there is only one round. REQUIRES: rounds > 0.
inline double rounds_up_ns(const Facts& facts, const Link& link, unsigned rounds,
                           std::uint64_t bytes, Sender only) {
    // Lower ranks send, higher ranks receive: the way up crosses each border of a group once.
    const Rank group = link.levels().inner_ranks();
    const auto borders = static_cast<unsigned>((facts.placement.rank_count() - 1) / group);
    double sum_ns = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        const bool far = rounds - round <= borders;
        const Link way = far ? link.rotated(std::uint64_t{1} << round, std::uint64_t{4} << round)
                             : link.within_group();
        sum_ns += round == 0 ? way.message_ns(bytes, rounds == 1 ? only : Sender::busy)
                             : way.message_ns(bytes, Source::fresh);
    }
    return sum_ns;
}

/// Returns the time of a scan among `count` ranks by recursive doubling, if combine_ns(const Link&,
/// unsigned) is what a rank takes to combine vectors in a round. Where ranks take turns on
/// processors, the others of its processor work while a rank waits, as in
/// oversubscribed_exchange_ns(). In each round the ranks below its distance receive nothing.
/// REQUIRES: count > 1.
template <typename CombineNs>
double scan_rounds_ns(const Facts& facts, const Link& link, Rank count, std::uint64_t bytes,
                      Sender only, CombineNs combine_ns) {
    const unsigned rounds = tree_depth(count, 2);
    const double up_ns = rounds_up_ns(facts, link, rounds, bytes, only);
    // Of two scans in a row most ranks have the first one a round earlier, and what comes in the
    // last round of the second is there by then.
    const unsigned full = tree_depth(count + 1, 2) - 1; // In as many all ranks have a partner.
    const double again_ns = link.is_across_hosts() && full > 2 ? up_ns * (full - 2) / rounds : 0;
    double span_ns = up_ns + std::max(rounds_before_ns(link, rounds, bytes), again_ns);
    for (unsigned round = 0; round < rounds; ++round) {
        span_ns += combine_ns(link, round);
    }
    if (facts.ranks_per_cpu <= 1) {
        return span_ns;
    }
    // A rank has its vector, and receives one and writes one in each round.
    const Link at_work = link.at_work(facts, (2 * rounds + 1) * bytes);
    double work_ns = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        const double idle = static_cast<double>(std::uint64_t{1} << round) / count;
        work_ns +=
            (1 - idle) * (at_work.message_ns(bytes, Source::fresh) + combine_ns(at_work, round));
    }
    return span_ns + (facts.ranks_per_cpu - 1) * work_ns;
}

} // namespace ucg::plan
