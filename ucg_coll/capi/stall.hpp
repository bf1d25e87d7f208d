// Reports of collectives that do not end: for whom a rank waits, and which ranks of its host have
// not called the collective.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/collective.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::capi {

/// Finds collectives that stay at one step for very long. The caller has the group's lock.
class StallWatch {
  public:
    /// How often it is to be asked, at least, while something is in progress.
    static constexpr std::chrono::nanoseconds kInterval = std::chrono::seconds(1);

    /// `patience` is how long a step may take; empty: for ever.
    explicit StallWatch(std::optional<std::chrono::seconds> patience) : patience_(patience) {}

    bool watches() const { return patience_.has_value(); }
    std::chrono::seconds patience() const { return *patience_; }
    /// Returns true once for each step of a collective at which it is found `patience` apart.
    /// `oldest` is the group's oldest collective in progress; null if there is none. `now` is by
    /// the steady clock.
    bool is_due(const engine::Execution* oldest, std::chrono::nanoseconds now);

  private:
    std::optional<std::chrono::seconds> patience_;
    std::optional<std::uint32_t> sequence_; ///< Of the collective that was the oldest last time,
    graph::Position position_;              ///< and where it was,
    std::chrono::nanoseconds since_{};      ///< when it was found there first,
    bool told_ = false;                     ///< and whether that was reported.
};

/// What a report says. It owns nothing.
struct StalledCall {
    std::string_view group;
    Rank rank = kNoRank; ///< The rank that reports.
    graph::Collective collective = graph::Collective::barrier;
    std::uint64_t bytes = 0; ///< plan::uniform_bytes() of the request.
    std::string_view algorithm;
    std::uint32_t number = 0; ///< Of the group's collectives, from 1 on, modulo 2^32.
    std::chrono::seconds patience{};
    std::vector<Rank> awaited;                             ///< engine::Execution::awaited()
    std::vector<transport::ShmTransport::PeerCalls> peers; ///< The other ranks of the host.
};

/// Returns the report, in whole sentences.
std::string report_of(const StalledCall& call);

} // namespace ucg::capi
