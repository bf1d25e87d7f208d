#include "ucg_coll/plan/sockets.hpp"

#include <algorithm>

namespace ucg::plan {
namespace {

/// Distances are an ultrametric: who is closer than the widest to one of a socket is so to all.
std::vector<std::vector<Rank>> group(const topo::Placement& placement) {
    const topo::Distance widest = placement.widest_on_host();
    std::vector<std::vector<Rank>> sockets;
    for (Rank rank = 0; rank < placement.rank_count(); ++rank) {
        const auto own = std::find_if(sockets.begin(), sockets.end(), [&](const auto& socket) {
            return placement.distance(socket.front(), rank) < widest;
        });
        if (own == sockets.end()) {
            sockets.push_back({rank});
        } else {
            own->push_back(rank);
        }
    }
    const auto single = [](const auto& socket) { return socket.size() == 1; };
    if (std::all_of(sockets.begin(), sockets.end(), single)) {
        std::vector<Rank> all;
        for (const auto& socket : sockets) {
            all.push_back(socket.front());
        }
        sockets.assign(1, std::move(all));
    }
    return sockets;
}

} // namespace

Sockets::Sockets(const topo::Placement& placement, Rank rank, Rank root)
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
