// The sockets of a host as the papers on shared memory see them: groups of ranks that are closer
// to one another than the widest distance between any two. Ranks that are all equally far apart are
// one socket.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// How the ranks of a socket follow one another.
enum class MemberOrder : std::uint8_t {
    by_rank,  ///< Rising, as operators that do not commute want it.
    by_place, ///< Those that share more stand together, so that subtrees are whole caches.
};

/// The ranks of each socket, its leader first; sockets in the order of their first ranks. The
/// lowest rank leads its socket, but for a root, whose socket stands first. Takes time in the ranks
/// times the sockets.
class Sockets {
  public:
    /// Those of the host of `rank`. REQUIRES: `root` is there as well, or kNoRank.
    Sockets(const topo::Placement& placement, Rank rank, MemberOrder order, Rank root = kNoRank);
    Sockets(const Sockets&) = delete; // Teams refer to the members here.
    Sockets& operator=(const Sockets&) = delete;

    std::size_t count() const { return members_.size(); }
    std::span<const Rank> members(std::size_t socket) const { return members_[socket]; }
    /// The socket of the rank that builds, and its place there.
    std::size_t own() const { return own_; }
    Rank index() const { return index_; }
    bool leads() const { return index_ == 0; }
    /// The ranks of the own socket; its leader has index 0.
    Team team() const { return Team::of(members_[own_], index_); }
    /// The leaders. REQUIRES: leads().
    Team leaders() const { return Team::of(leaders_, static_cast<Rank>(own_)); }
    /// The fewest ranks of any socket.
    Rank smallest() const;

  private:
    std::vector<std::vector<Rank>> members_;
    std::vector<Rank> leaders_;
    std::size_t own_ = 0;
    Rank index_ = 0;
};

/// Are the ranks of each socket, of all hosts, consecutive among those of their host?
bool sockets_are_contiguous(const topo::Placement& placement);

} // namespace ucg::plan
