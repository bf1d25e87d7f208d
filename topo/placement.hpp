// The places of a group's ranks: a plain value, made once per group from facts that all ranks
// agreed on, and the same on all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/ranks.hpp"

namespace ucg::topo {

class Machine;

/// How far apart two ranks are: the innermost level that they share.
enum class Distance : std::uint8_t { core, cache, numa, package, host, network };
inline constexpr std::size_t kDistanceCount = 6;
std::string_view name(Distance distance);

/// One rank's place, from the outside in. Except for `host`, every index is within its host, and
/// all ranks of the host mean the same by it; indexes grow as hwloc's logical indexes do, maybe
/// with gaps. A level that is not known, such as the core of a rank that is not bound, has index 0.
struct Place {
    std::uint32_t host = 0;    ///< Index of the host within the group, by first appearance.
    std::uint32_t package = 0; ///< Package (socket).
    std::uint32_t numa = 0;    ///< NUMA domain.
    std::uint32_t cache = 0;   ///< Last-level cache group.
    std::uint32_t core = 0;
    /// The innermost level that is known. Keeps a rank bound to all of host 0 apart from one bound
    /// to its core 0: the former shares nothing closer than the host with anybody.
    Distance known = Distance::core;

    bool operator==(const Place&) const = default;
};

/// Returns `place` with every level inside `known` forgotten. REQUIRES: known != Distance::network.
Place forget_inside(Place place, Distance known);
/// Returns the innermost level that both places share, as far as it is known.
Distance distance(const Place& a, const Place& b);

class Placement {
  public:
    Placement() = default;
    /// Makes the placement of ranks at `places[rank]`. Hosts are renumbered in order of first
    /// appearance; indexes of levels that are not known are set to 0. REQUIRES: the count fits a
    /// Rank.
    explicit Placement(const std::vector<Place>& places);
    /// Makes the placement of `count` ranks at `place_of(rank)`, which is called once for each rank
    /// from 0 on. For hundreds of millions of ranks a list of places would take twice the memory of
    /// the placement. REQUIRES: count >= 0.
    Placement(Rank count, const std::function<Place(Rank)>& place_of);

    /// Returns a placement of all ranks on one host, of which nothing else is known.
    static Placement one_host(Rank rank_count);
    /// Returns a placement of `hosts` hosts with `ranks_per_host` consecutive ranks each, of which
    /// nothing else is known.
    static Placement regular(Rank hosts, Rank ranks_per_host);
    /// Returns a placement on `hosts` hosts like `machine`, with ranks on cores in order, filling a
    /// host before the next (as --map-by core). Cores are used again from the first on when ranks
    /// outnumber them (oversubscription).
    static Placement packed(const Machine& machine, Rank hosts, Rank ranks_per_host);

    Rank rank_count() const { return rank_count_; }
    std::uint32_t host_count() const { return static_cast<std::uint32_t>(leaders_.size()); }

    /// REQUIRES: 0 <= rank < rank_count().
    Place place(Rank rank) const {
        Place place = kinds_[kind(rank)];
        place.host = host(rank);
        return place;
    }
    /// Returns place(rank).host.
    std::uint32_t host(Rank rank) const {
        return host_of_.empty() ? static_cast<std::uint32_t>(rank / ranks_per_host_max_)
                                : host_of_[static_cast<std::size_t>(rank)];
    }
    /// Returns the ranks of one host in rising order; the first is the host's leader.
    Ranks ranks_on(std::uint32_t host) const;
    Rank leader(std::uint32_t host) const { return ranks_on(host).front(); }
    /// Returns the leader of each host, by the host's index.
    std::span<const Rank> leaders() const { return leaders_; }
    /// Returns the position of `rank` among the ranks of its host.
    Rank index_on_host(Rank rank) const {
        return contiguous_ ? rank - static_cast<Rank>(host_begin_[host(rank)])
                           : index_on_host_[static_cast<std::size_t>(rank)];
    }
    bool same_host(Rank a, Rank b) const { return host(a) == host(b); }
    Distance distance(Rank a, Rank b) const { return topo::distance(place(a), place(b)); }
    /// Do the ranks of each host follow one another without a gap?
    bool hosts_are_contiguous() const { return contiguous_; }
    /// Returns the largest number of ranks on any host.
    Rank ranks_per_host_max() const { return ranks_per_host_max_; }
    /// Returns the smallest number of ranks on any host; 0 without hosts.
    Rank ranks_per_host_min() const { return ranks_per_host_min_; }
    /// Does each host have the next ranks, as many as every other? The last may have fewer.
    bool hosts_are_equal_blocks() const { return host_of_.empty(); }
    /// Returns the widest distance between two ranks of one host; `core` where no host has two.
    Distance widest_on_host() const { return widest_on_host_; }
    /// Returns all distances that any two ranks of one host, whichever host, have, from the
    /// innermost on. Only at these levels do the places of ranks of a host differ. The ranks that
    /// are closer to one another than one of these distances form a group, and groups nest.
    const std::vector<Distance>& distances_on_host() const { return distances_on_host_; }
    /// Do the ranks of each group that distances_on_host() defines follow one another among those
    /// of their host? False where some ranks of a host are bound more narrowly than others.
    bool groups_are_contiguous() const { return groups_are_contiguous_; }

    bool operator==(const Placement& other) const {
        return rank_count_ == other.rank_count_ &&
               ranks_per_host_max_ == other.ranks_per_host_max_ && host_of_ == other.host_of_ &&
               host_kinds_ == other.host_kinds_ && kind_of_ == other.kind_of_ &&
               kinds_ == other.kinds_;
    }

  private:
    std::uint32_t kind(Rank rank) const {
        if (!kind_of_.empty()) {
            return kind_of_[static_cast<std::size_t>(rank)];
        }
        return host_kinds_.empty() ? 0 : host_kinds_[static_cast<std::size_t>(index_on_host(rank))];
    }
    void take_places(Rank count, const std::function<Place(Rank)>& place_of);
    void take_host(Rank rank, std::uint32_t host);
    void take_kind(Rank rank, std::uint32_t host, std::uint32_t kind);
    void sort_by_host();
    void find_widest();
    void find_levels();

    // A job may have many ranks, and a process has a placement for each of its communicators, so a
    // placement is compact. Where each host has the next ranks, as many as the others and at the
    // same places (the last may have fewer), it takes 8 bytes per host and 4 for each rank of one
    // host; else up to 16 bytes per rank.
    std::vector<std::uint32_t> host_of_;    // By rank. Empty: rank / ranks_per_host_max_.
    std::vector<std::uint32_t> host_kinds_; // By index_on_host() if hosts are alike. Empty: all 0.
    std::vector<std::uint32_t> kind_of_;    // By rank if not. Both hold indexes into kinds_.
    std::vector<Place> kinds_;              // Distinct places by first appearance, with host 0.
    std::vector<std::uint32_t> host_begin_ = {0}; // host_count + 1 indexes into by_host_.
    std::vector<Rank> by_host_;                   // Ranks by host. Empty, as the next,
    std::vector<Rank> index_on_host_;             // if contiguous_.
    std::vector<Rank> leaders_;
    Rank rank_count_ = 0;
    std::vector<Distance> distances_on_host_;
    Distance widest_on_host_ = Distance::core;
    Rank ranks_per_host_max_ = 0;
    Rank ranks_per_host_min_ = 0;
    bool contiguous_ = true;
    bool groups_are_contiguous_ = true;
};

/// May any two of the ranks lie closer than `limit` to one another, as far as their places are
/// known? Allocates nothing, whereas groups_closer_than() makes a list for each rank even if none
/// do.
bool may_be_closer_than(const Placement& placement, Ranks ranks, Distance limit);

/// Returns the ranks in groups of those that lie closer than `limit` to one another, in order of
/// first appearance. Distances are an ultrametric, so no rank is in two groups.
std::vector<std::vector<Rank>> groups_closer_than(const Placement& placement, Ranks ranks,
                                                  Distance limit);

/// Returns the text form, one line per rank: "rank 3: host 0 package 0 numa 0 cache 0 core 1", cut
/// off after the innermost known level ("rank 3: host 0"). parse_placement() reads it back to an
/// equal value.
std::string to_text(const Placement& placement);
/// Reads the text form, skipping empty lines and what follows '#'. Fails with invalid_argument and
/// "line L, column C: expected ..., found ...".
Result<Placement> parse_placement(std::string_view text);

/// What consecutive ranks are spread over, as by mpirun's --map-by.
enum class MapBy : std::uint8_t {
    core,    ///< Core after core.
    cache,   ///< Round robin over the last-level caches, each time on the next core there.
    numa,    ///< Round robin over the NUMA domains, likewise.
    package, ///< Round robin over the packages, likewise.
    host,    ///< Round robin over hosts, core after core on each.
};
std::string_view name(MapBy map_by);

/// Returns a placement on `hosts` hosts like `machine` with `ranks_per_host` ranks each, one core
/// per rank; cores are used again from the first on when ranks outnumber them. A machine without
/// cores gives places of which only the host is known. REQUIRES: hosts >= 0, ranks_per_host >= 0,
/// and the product fits a Rank.
Placement map_ranks(const Machine& machine, Rank hosts, Rank ranks_per_host, MapBy map_by);

} // namespace ucg::topo
