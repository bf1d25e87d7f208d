#include "ucg_coll/plan/peer_memory/sockets.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ucg::plan {
namespace {

std::vector<std::vector<Rank>> group(const topo::Placement& placement) {
    std::vector<Rank> ranks(static_cast<std::size_t>(placement.rank_count()));
    std::iota(ranks.begin(), ranks.end(), 0);
    auto sockets = topo::groups_closer_than(placement, ranks, placement.widest_on_host());
    const auto single = [](const auto& socket) { return socket.size() == 1; };
    if (std::all_of(sockets.begin(), sockets.end(), single)) {
        std::vector<Rank> all(sockets.size());
        std::transform(sockets.begin(), sockets.end(), all.begin(),
                       [](const auto& socket) { return socket.front(); });
        sockets.assign(1, all);
    }
    return sockets;
}

/// By distance from the leader: it comes first, then who shares most with it. Those equally far
/// from it stand together by what they share with one another.
void sort_by_place(const topo::Placement& placement, std::vector<Rank>& members) {
    const Rank leader = members.front();
    const auto key = [&](Rank rank) {
        const topo::Place& place = placement.place(rank);
        return std::tuple(placement.distance(leader, rank), rank != leader, place.package,
                          place.numa, place.cache, place.core, rank);
    };
    std::sort(members.begin(), members.end(), [&](Rank a, Rank b) { return key(a) < key(b); });
}

} // namespace

Sockets::Sockets(const topo::Placement& placement, Rank rank, MemberOrder order, Rank root)
    : members_(group(placement)) {
    for (std::size_t i = 0; root != kNoRank && i < members_.size(); ++i) {
        const auto at = std::find(members_[i].begin(), members_[i].end(), root);
        if (at != members_[i].end()) {
            std::rotate(members_[i].begin(), at, at + 1);
            std::rotate(members_.begin(), members_.begin() + static_cast<std::ptrdiff_t>(i),
                        members_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            break;
        }
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (order == MemberOrder::by_place) {
            sort_by_place(placement, members_[i]);
        }
        leaders_.push_back(members_[i].front());
        const auto at = std::find(members_[i].begin(), members_[i].end(), rank);
        if (at != members_[i].end()) {
            own_ = i;
            index_ = static_cast<Rank>(at - members_[i].begin());
        }
    }
}

Rank Sockets::smallest() const {
    std::size_t least = members_.front().size();
    for (const auto& socket : members_) {
        least = std::min(least, socket.size());
    }
    return static_cast<Rank>(least);
}

bool sockets_are_contiguous(const topo::Placement& placement) {
    const std::vector<std::vector<Rank>> sockets = group(placement);
    return std::all_of(sockets.begin(), sockets.end(), [](const auto& socket) {
        return static_cast<std::size_t>(socket.back() - socket.front()) + 1 == socket.size();
    });
}

} // namespace ucg::plan
