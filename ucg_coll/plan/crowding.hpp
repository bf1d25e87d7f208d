// Prices where ranks outnumber processors and all of them have work to do.
#pragma once

#include <algorithm>

#include "ucg_coll/plan/cost.hpp"

namespace ucg::plan {

/// How many ranks do their share of the work on one processor, one after the other. In a scan whose
/// ranks all move and combine vectors at a time, it takes that much longer; where one works while
/// the others wait, it does not.
inline double sharers(const Facts& facts) {
    return std::max(1.0, facts.ranks_per_cpu);
}

/// The messages of recursive doubling, one round after the other. REQUIRES: rounds > 0.
inline double recursive_doubling_messages_ns(const Facts& facts, const Link& link, unsigned rounds,
                                             std::uint64_t bytes) {
    const double alone_ns = link.message_ns(bytes) + (rounds - 1) * link.passing_on_ns(bytes);
    const double work_ns = link.busy_ns(bytes) + (rounds - 1) * link.relay_ns(bytes);
    return alone_ns + (sharers(facts) - 1) * work_ns;
}

} // namespace ucg::plan
