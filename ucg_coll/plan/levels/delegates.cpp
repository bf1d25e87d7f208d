#include "ucg_coll/plan/levels/delegates.hpp"

#include <algorithm>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {

double delegates_swap_ns(const Facts& facts, const Swap& swap) {
    const auto price_ns = [&](const Link& link) {
        return static_cast<double>(swap.hosts_each) * link.copy_ns(swap.message_bytes) +
               alltoall_rotated_ns(link, swap.hosts_each + 1, swap.message_bytes, kWindow);
    };
    // Some delegates may have a host less than others. As many are taken to send at a time as do on
    // average, so that the link carries what it must.
    const auto at_a_time = static_cast<Rank>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(swap.ranks),
                                divide_up(static_cast<std::uint64_t>(swap.hosts),
                                          static_cast<std::uint64_t>(swap.hosts_each))));
    const Link link(facts, topo::Distance::network, at_a_time);
    const double average_part =
        static_cast<double>(swap.hosts) /
        (static_cast<double>(swap.ranks) * static_cast<double>(swap.hosts_each));
    return price_ns(link.in_exchanges()) +
           (sharers(facts) - 1) * std::min(1.0, average_part) *
               price_ns(link.at_work(facts, 3 * swap.message_bytes));
}

double on_host_exchange_ns(const Facts& facts, Rank count, std::uint64_t message_bytes,
                           std::uint64_t copied_bytes) {
    return oversubscribed_exchange_ns(
        facts, host_link(facts), 2 * copied_bytes, [&](const Link& link) {
            return link.copy_ns(copied_bytes) +
                   alltoall_rotated_ns(link, count, message_bytes, kWindow);
        });
}

} // namespace ucg::plan
