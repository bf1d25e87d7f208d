// Reports of collectives that do not end: for whom a rank waits, and which ranks of its host have
// not called the collective.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/collective.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::capi {

/// Finds collectives that do not go on. The caller has the group's lock.
class StallWatch {
  public:
    /// How often a rank that waits is to ask, at least.
    static constexpr std::chrono::nanoseconds kInterval = std::chrono::seconds(1);

    /// `patience` is how long a collective may stay as it is; empty: for ever.
    explicit StallWatch(std::optional<std::chrono::seconds> patience) : patience_(patience) {}

    bool watches() const { return patience_.has_value(); }
    std::chrono::seconds patience() const { return *patience_; }
    /// Returns whether is_due() would look: at most twice each kInterval.
    bool looks(std::chrono::nanoseconds now) const {
        return patience_.has_value() && now - looked_ >= kInterval / 2;
    }
    /// Returns true once for each collective in progress that has not gone on for `patience`, while
    /// this was asked all the time: a program that computes meanwhile, or a job that is stopped,
    /// does not wait. `sequence` is the number of the group's oldest collective in progress, empty
    /// if there is none, and `progress` how far it is. `now` is by the steady clock, later each
    /// time.
    bool is_due(std::optional<std::uint32_t> sequence, const engine::Execution::Progress& progress,
                std::chrono::nanoseconds now);

  private:
    /// If it was not asked for so long, nobody waited.
    static constexpr std::chrono::nanoseconds kGapMax = 5 * kInterval;

    std::optional<std::chrono::seconds> patience_;
    std::optional<std::uint32_t> sequence_; ///< Of the collective that was the oldest last time,
    engine::Execution::Progress progress_;  ///< how far it was,
    std::chrono::nanoseconds since_{};      ///< since when,
    bool told_ = false;                     ///< and whether that was reported.
    std::chrono::nanoseconds looked_{};
};

/// Chooses, of calls that know no time, those that read the clock for a StallWatch: few where they
/// come fast, each one where they come slowly and the clock takes nothing beside them.
class ClockStride {
  public:
    static constexpr unsigned kCallsMax = 256;

    /// Counts a call. Returns whether it is to read the clock, and to hand the time to read().
    bool is_due() { return --left_ == 0; }
    void read(std::chrono::nanoseconds now) {
        const std::chrono::nanoseconds took = now - std::exchange(read_, now);
        if (took > StallWatch::kInterval) {
            calls_ = 1;
        } else if (took < StallWatch::kInterval / 4) {
            calls_ = std::min(2 * calls_, kCallsMax);
        }
        left_ = calls_;
    }

  private:
    std::chrono::nanoseconds read_{};
    unsigned calls_ = 1; ///< The clock is read once in so many calls,
    unsigned left_ = 1;  ///< and next in this one of them.
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
