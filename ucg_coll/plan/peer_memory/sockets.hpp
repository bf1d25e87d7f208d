// The sockets of a host, in the sense of the papers on shared memory: groups of ranks that are
// closer to one another than the widest distance between any two ranks of the host. Ranks that are
// all equally far apart are one socket.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// The order of the ranks of a socket.
enum class MemberOrder : std::uint8_t {
    by_rank,  ///< Rising ranks, as operators that do not commute need it.
    by_place, ///< Ranks that share more stand together, so that subtrees are whole caches.
};

/// The sockets of a host. The ranks of a socket begin with its leader: its lowest rank, or the root
/// where it is in the socket. Sockets are in the order of their lowest ranks, but the root's comes
/// first. Takes time proportional to the ranks times the sockets.
class Sockets {
  public:
    /// The sockets of the host of `rank`. REQUIRES: `root` is on that host as well, or kNoRank.
    Sockets(const topo::Placement& placement, Rank rank, MemberOrder order, Rank root = kNoRank);
    Sockets(const Sockets&) = delete; // Teams refer to the members here.
    Sockets& operator=(const Sockets&) = delete;

    std::size_t count() const { return members_.size(); }
    std::span<const Rank> members(std::size_t socket) const { return members_[socket]; }
    /// Returns the index of the socket of the constructor's `rank`.
    std::size_t own() const { return own_; }
    /// Returns the index of that rank among the members of its socket.
    Rank index() const { return index_; }
    bool leads() const { return index_ == 0; }
    /// Returns the team of that rank's socket; the leader has index 0.
    Team team() const { return Team::of(members_[own_], index_); }
    /// Returns the team of all sockets' leaders. REQUIRES: leads().
    Team leaders() const { return Team::of(leaders_, static_cast<Rank>(own_)); }
    /// Returns the number of ranks of the smallest socket.
    Rank smallest() const;

  private:
    std::vector<std::vector<Rank>> members_;
    std::vector<Rank> leaders_;
    std::size_t own_ = 0;
    Rank index_ = 0;
};

/// Returns whether the ranks of each socket, on all hosts, are consecutive among those of their
/// host.
bool sockets_are_contiguous(const topo::Placement& placement);

} // namespace ucg::plan
