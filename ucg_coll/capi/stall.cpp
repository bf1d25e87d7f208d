#include "ucg_coll/capi/stall.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ucg::capi {
namespace {

using PeerCalls = transport::ShmTransport::PeerCalls;

constexpr std::size_t kNamedMax = 8; ///< So many ranks are named; of the others the number is told.

/// Returns "rank 3" or "ranks 1, 4 and 5", of more than kNamedMax "ranks 1, 2, ... and 20 more";
/// `text` tells of an element what is said of it.
template <typename Element, typename Text>
std::string listed(const std::vector<Element>& elements, Text text) {
    std::string list = elements.size() == 1 ? "rank " : "ranks ";
    const std::size_t named = std::min(elements.size(), kNamedMax);
    for (std::size_t i = 0; i < named; ++i) {
        const bool last = i > 0 && i + 1 == elements.size();
        list += fmt::format("{}{}", last ? " and " : i > 0 ? ", " : "", text(elements[i]));
    }
    if (named < elements.size()) {
        list += fmt::format(" and {} more", elements.size() - named);
    }
    return list;
}

/// Returns by how many collectives the peer is behind `number`, the one that is reported, before it
/// has called that; 0 or less once it has. Numbers wrap around.
std::int32_t missing(const PeerCalls& peer, std::uint32_t number) {
    return static_cast<std::int32_t>(number - peer.calls.started);
}

std::string last_call(const PeerCalls& peer) {
    const std::uint32_t started = peer.calls.started;
    return started == 0
               ? "none so far"
               : fmt::format("{} so far, the last one {}", started, graph::name(peer.calls.last));
}

std::string absent_ranks(const StalledCall& call) {
    std::vector<PeerCalls> absent;
    std::copy_if(call.peers.begin(), call.peers.end(), std::back_inserter(absent),
                 [&](const PeerCalls& peer) { return missing(peer, call.number) > 0; });
    if (absent.empty()) {
        return call.peers.empty() ? "" : " All ranks of this host have called it.";
    }
    // Ranks that are farther behind are more likely to be what the others wait for.
    std::stable_sort(absent.begin(), absent.end(), [&](const PeerCalls& a, const PeerCalls& b) {
        return missing(a, call.number) > missing(b, call.number);
    });
    return fmt::format(
        " Of this host, it was not called by {}.", listed(absent, [](const PeerCalls& peer) {
            return fmt::format("{} (process {}; {})", peer.rank, peer.process, last_call(peer));
        }));
}

/// Ranks whose latest collective has the same number, and is another one.
std::string other_calls(const StalledCall& call) {
    std::vector<PeerCalls> others;
    std::copy_if(call.peers.begin(), call.peers.end(), std::back_inserter(others),
                 [&](const PeerCalls& peer) {
                     return peer.calls.started == call.number && peer.calls.last != call.collective;
                 });
    return others.empty()
               ? ""
               : fmt::format(" The program's ranks call different collectives: this one was called "
                             "otherwise by {}.",
                             listed(others, [](const PeerCalls& peer) {
                                 return fmt::format("{} (process {}; {})", peer.rank, peer.process,
                                                    graph::name(peer.calls.last));
                             }));
}

} // namespace

bool StallWatch::is_due(std::optional<std::uint32_t> sequence,
                        const engine::Execution::Progress& progress, std::chrono::nanoseconds now) {
    const bool gap = now - std::exchange(looked_, now) > kGapMax;
    if (!sequence.has_value() || sequence_ != sequence || progress_ != progress || gap) {
        told_ = told_ && sequence_ == sequence && sequence.has_value();
        sequence_ = sequence;
        progress_ = progress;
        since_ = now;
        return false;
    }
    const bool due = !told_ && now - since_ >= *patience_;
    told_ = told_ || due;
    return due;
}

std::string report_of(const StalledCall& call) {
    const std::string awaited =
        call.awaited.empty() ? ""
                             : fmt::format(": it waits for {}",
                                           listed(call.awaited, [](Rank rank) { return rank; }));
    return fmt::format("{}: rank {}: {} of {} bytes ({}), collective {} of this group, has not "
                       "gone on for {} s{}.{}{}",
                       call.group, call.rank, graph::name(call.collective), call.bytes,
                       call.algorithm, call.number, call.patience.count(), awaited,
                       absent_ranks(call), other_calls(call));
}

} // namespace ucg::capi
