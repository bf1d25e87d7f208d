#include "ucg_coll/plan/peer_memory/sockets.hpp"

#include <algorithm>
#include <tuple>

namespace ucg::plan {
namespace {

/// Returns the widest distance between two of a host's ranks.
topo::Distance widest(const topo::Placement& placement, Ranks ranks) {
    topo::Distance widest = topo::Distance::core;
    for (const Rank rank : ranks) { // From one rank it is as far as between any two.
        widest = std::max(widest, placement.distance(ranks.front(), rank));
    }
    return widest;
}

std::vector<std::vector<Rank>> sockets_of(const topo::Placement& placement, std::uint32_t host) {
    const Ranks ranks = placement.ranks_on(host);
    const topo::Distance farthest = widest(placement, ranks);
    if (topo::may_be_closer_than(placement, ranks, farthest)) {
        auto sockets = topo::groups_closer_than(placement, ranks, farthest);
        const auto shared = [](const auto& socket) { return socket.size() > 1; };
        if (std::any_of(sockets.begin(), sockets.end(), shared)) {
            return sockets;
        }
    }
    return {{ranks.begin(), ranks.end()}};
}

/// Sorts the members by their distance from the leader: the leader comes first, then those that
/// share most with it. Members equally far from it stand together by what they share with one
/// another.
void sort_by_place(const topo::Placement& placement, std::vector<Rank>& members) {
    const Rank leader = members.front();
    const auto key = [&](Rank rank) {
        const topo::Place place = placement.place(rank);
        return std::tuple(placement.distance(leader, rank), rank != leader, place.package,
                          place.numa, place.cache, place.core, rank);
    };
    std::sort(members.begin(), members.end(), [&](Rank a, Rank b) { return key(a) < key(b); });
}

} // namespace

Sockets::Sockets(const topo::Placement& placement, Rank rank, MemberOrder order, Rank root)
    : members_(sockets_of(placement, placement.host(rank))) {
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
    if (placement.groups_are_contiguous()) {
        return true; // Sockets are such groups.
    }
    const auto follow_one_another = [&](const std::vector<Rank>& socket) {
        const Rank between =
            placement.index_on_host(socket.back()) - placement.index_on_host(socket.front());
        return static_cast<std::size_t>(between) + 1 == socket.size();
    };
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        const std::vector<std::vector<Rank>> sockets = sockets_of(placement, host);
        if (!std::all_of(sockets.begin(), sockets.end(), follow_one_another)) {
            return false;
        }
    }
    return true;
}

} // namespace ucg::plan
