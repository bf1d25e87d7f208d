// What messages between ranks at one distance cost, one after another: in time, and in the work of
// processors that ranks share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucg_coll/plan/algorithm.hpp"
#include "ucg_coll/price/price.hpp"

namespace ucg::plan {

using price::Source;

/// What the sender of a long message does until it is copied.
enum class Sender : std::uint8_t {
    busy,  ///< It copies a message of its own, as in an exchange, or computes.
    waits, ///< It does nothing else, and copies a part, where each rank has a processor.
};

/// The time of messages, on the path of the slowest rank. A rank that waits may have to wait for
/// its turn on a processor, but nothing here counts the work of others. In nanoseconds.
class MessageTimes {
  public:
    /// The facts' profile must outlive it.
    MessageTimes(const Facts& facts, topo::Distance distance, Rank sharers)
        : messages_(facts.profile, distance, surroundings(facts, sharers)),
          has_processor_(facts.ranks_per_cpu <= 1),
          processors_(static_cast<std::uint64_t>(facts.placement.ranks_per_host_max() /
                                                 std::max(facts.ranks_per_cpu, 1.0))) {}
    MessageTimes in_exchanges() const { return with(messages_.in_exchanges()); }
    MessageTimes with_working_set(std::uint64_t bytes) const {
        return with(messages_.with_working_set(bytes));
    }

    const price::DistancePrices& messages() const { return messages_; }
    bool has_processor() const { return has_processor_; } ///< Each rank has one of its own.

    /// Returns the latency: from the start of sending to the end of receiving.
    double message_ns(std::uint64_t bytes, Source source, Sender sender) const;
    /// Return the throughput: the time between two messages of a rank that only sends or only
    /// receives, and of one that takes each and sends it on.
    double gap_ns(std::uint64_t bytes) const;
    double relay_gap_ns(std::uint64_t bytes, Source source) const;
    /// Returns in which time `copies` copies out of one rank's memory, each by its receiver, are
    /// made, as far as they share the way there: as many as there are processors at a time. Where
    /// ranks take turns, the copies that follow are work of a processor's other ranks.
    double copied_out_ns(std::uint64_t bytes, Rank copies) const {
        return messages_.rts_fin_ns() +
               messages_.contended_ns(bytes,
                                      std::min(static_cast<std::uint64_t>(copies), processors_));
    }
    /// Returns how much of a processor's other work the time of a message does not hide.
    double not_hidden_ns(double work_ns, std::uint64_t bytes) const;

  private:
    MessageTimes with(const price::DistancePrices& messages) const {
        MessageTimes times = *this;
        times.messages_ = messages;
        return times;
    }

    price::DistancePrices messages_;
    bool has_processor_;
    std::uint64_t processors_; ///< Of the host with most ranks, at most one for each.
};

/// The work of messages, in the time of a processor on which ranks take turns. No rank waits, as
/// others run meanwhile: latency and throughput are both what keeps the two ends busy.
struct MessageWork {
    cost::CacheRates rates; ///< Of the cache that serves all ranks of a processor.

    /// Returns for how long a message keeps the processors of both ends busy. A message that is
    /// copied once also has an RTS and a FIN.
    double message_ns(const price::DistancePrices& messages, std::uint64_t bytes,
                      Source source) const;
};

} // namespace ucg::plan
