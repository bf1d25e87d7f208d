#include "topo/placement.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "topo/machine.hpp"

namespace ucg::topo {

std::string_view name(Distance distance) {
    static constexpr std::array<std::string_view, kDistanceCount> kNames = {
        "core", "cache", "numa", "package", "host", "network"};
    return kNames[static_cast<std::size_t>(distance)];
}

Place forget_inside(Place place, Distance known) {
    UCG_ASSERT(known != Distance::network);
    place.known = std::max(place.known, known);
    if (place.known > Distance::core) {
        place.core = 0;
    }
    if (place.known > Distance::cache) {
        place.cache = 0;
    }
    if (place.known > Distance::numa) {
        place.numa = 0;
    }
    if (place.known > Distance::package) {
        place.package = 0;
    }
    return place;
}

// Compares from the outside in, so that levels which do not nest (a cache over two NUMA domains)
// count as far as their outermost difference.
static Distance first_difference(const Place& a, const Place& b) {
    if (a.host != b.host) {
        return Distance::network;
    }
    if (a.package != b.package) {
        return Distance::host;
    }
    if (a.numa != b.numa) {
        return Distance::package;
    }
    if (a.cache != b.cache) {
        return Distance::numa;
    }
    return a.core != b.core ? Distance::cache : Distance::core;
}

Distance distance(const Place& a, const Place& b) {
    return std::max({first_difference(a, b), a.known, b.known});
}

namespace {

/// Returns a key by which places of one host differ. Places that are neighbours in the order of
/// these keys share the most levels.
auto inside_host(const Place& place) {
    return std::tuple(place.known, place.package, place.numa, place.cache, place.core);
}

/// Numbers the hosts from 0 in order of first appearance.
class Hosts {
  public:
    std::uint32_t number(std::uint32_t host) {
        if (are_numbered_) {
            if (host <= count_) {
                count_ += host == count_ ? 1 : 0;
                return host;
            }
            are_numbered_ = false;
            for (std::uint32_t known = 0; known < count_; ++known) {
                numbers_.emplace(known, known);
            }
        }
        const auto [known, is_new] = numbers_.try_emplace(host, count_);
        count_ += is_new ? 1 : 0;
        return known->second;
    }

  private:
    std::uint32_t count_ = 0;
    bool are_numbered_ = true; ///< So far hosts came as 0, 1, 2, ..., and need no table.
    std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
};

/// Numbers the places inside a host from 0 in order of first appearance.
class Kinds {
  public:
    explicit Kinds(std::vector<Place>& kinds) : kinds_(kinds) {}

    std::uint32_t number(Place place) {
        place.host = 0;
        // The place is nearly always the previous one again, or the one that followed it on an
        // earlier host.
        const std::uint32_t next = last_ + 1 < kinds_.size() ? last_ + 1 : 0;
        if (kinds_.empty() || place != kinds_[last_]) {
            last_ = !kinds_.empty() && place == kinds_[next] ? next : look_up(place);
        }
        return last_;
    }

  private:
    std::uint32_t look_up(const Place& place) {
        const auto count = static_cast<std::uint32_t>(kinds_.size());
        const auto [known, is_new] = numbers_.try_emplace(inside_host(place), count);
        if (is_new) {
            kinds_.push_back(place);
        }
        return known->second;
    }

    std::vector<Place>& kinds_;
    std::map<decltype(inside_host(Place())), std::uint32_t> numbers_;
    std::uint32_t last_ = 0;
};

Rank count_of(const std::vector<Place>& places) {
    UCG_ASSERT(places.size() <= static_cast<std::size_t>(std::numeric_limits<Rank>::max()));
    return static_cast<Rank>(places.size());
}

} // namespace

Placement::Placement(const std::vector<Place>& places)
    : Placement(count_of(places),
                [&](Rank rank) { return places[static_cast<std::size_t>(rank)]; }) {}

Placement::Placement(Rank count, const std::function<Place(Rank)>& place_of) {
    UCG_ASSERT(count >= 0);
    take_places(count, place_of);
    sort_by_host();
    find_widest();
    find_levels();
}

void Placement::take_places(Rank count, const std::function<Place(Rank)>& place_of) {
    Hosts hosts;
    Kinds kinds(kinds_);
    for (Rank rank = 0; rank < count; ++rank) {
        const Place place = place_of(rank);
        const std::uint32_t host = hosts.number(place.host);
        take_host(rank, host);
        take_kind(rank, host, kinds.number(forget_inside(place, place.known)));
    }
    rank_count_ = count;
}

/// Notes the host of the next rank, and counts the host's ranks in host_begin_. host_of_ stays
/// empty as long as each rank is on the host that it would be on if all hosts had as many
/// consecutive ranks as the first; from the first other rank on it lists all hosts.
void Placement::take_host(Rank rank, std::uint32_t host) {
    if (host == leaders_.size()) {
        leaders_.push_back(rank);
        host_begin_.push_back(0);
    }
    ++host_begin_[host + std::size_t{1}];
    const Rank of_first = leaders_.size() > 1 ? leaders_[1] : rank + 1;
    if (host_of_.empty() && host != static_cast<std::uint32_t>(rank / of_first)) {
        for (Rank before = 0; before < rank; ++before) {
            host_of_.push_back(static_cast<std::uint32_t>(before / of_first));
        }
    }
    if (!host_of_.empty()) {
        host_of_.push_back(host);
    }
}

/// Notes the kind, an index into kinds_, of the next rank. Hosts are alike as long as each rank has
/// the kind of the rank of the first host with the same index on its host, or, where all ranks of
/// the first host have the kind of rank 0, that kind. From the first other rank on kind_of_ lists
/// the kinds of all ranks.
void Placement::take_kind(Rank rank, std::uint32_t host, std::uint32_t kind) {
    if (kind_of_.empty() && host_of_.empty() && host == 0) {
        if (kind != 0 && host_kinds_.empty()) {
            host_kinds_.assign(static_cast<std::size_t>(rank), 0);
        }
        if (!host_kinds_.empty()) {
            host_kinds_.push_back(kind);
        }
        return;
    }
    const bool is_alike = host_kinds_.empty() || host_of_.empty();
    const auto alike = [&](Rank other) {
        return host_kinds_.empty() ? 0 : host_kinds_[static_cast<std::size_t>(other % leaders_[1])];
    };
    if (kind_of_.empty() && (!is_alike || kind != alike(rank))) {
        for (Rank before = 0; before < rank; ++before) {
            kind_of_.push_back(alike(before));
        }
        host_kinds_.clear();
    }
    if (!kind_of_.empty()) {
        kind_of_.push_back(kind);
    }
}

/// Turns the number of ranks of each host, in host_begin_, into where they begin, and makes the
/// lists of ranks by host.
void Placement::sort_by_host() {
    for (std::size_t host = 1; host < host_begin_.size(); ++host) {
        const auto ranks = static_cast<Rank>(host_begin_[host]);
        ranks_per_host_max_ = std::max(ranks_per_host_max_, ranks);
        ranks_per_host_min_ = host > 1 ? std::min(ranks_per_host_min_, ranks) : ranks;
        host_begin_[host] += host_begin_[host - 1];
    }
    // Hosts are numbered by first appearance, so without gaps the list by host is the identity.
    contiguous_ = std::is_sorted(host_of_.begin(), host_of_.end());
    if (contiguous_) {
        return;
    }
    by_host_.resize(host_of_.size());
    index_on_host_.resize(host_of_.size());
    std::vector<std::uint32_t> next(host_begin_.begin(), host_begin_.end() - 1);
    for (Rank rank = 0; rank < rank_count(); ++rank) {
        const std::uint32_t slot = next[host(rank)]++;
        by_host_[slot] = rank;
        index_on_host_[static_cast<std::size_t>(rank)] =
            static_cast<Rank>(slot - host_begin_[host(rank)]);
    }
}

namespace {

/// Returns the next host whose ranks may be placed differently. Of hosts that are alike, only the
/// last may differ, by having fewer ranks.
std::uint32_t next_unlike(const Placement& placement, std::uint32_t host, bool all_alike) {
    return all_alike && host + 2 < placement.host_count() ? placement.host_count() - 1 : host + 1;
}

/// Returns ranks of the host between which all distances occur that any two of its ranks have, in
/// any order: two of them if all are at one place, else all.
Ranks some_of(const Placement& placement, std::uint32_t host, bool at_one_place) {
    const Ranks ranks = placement.ranks_on(host);
    return at_one_place && placement.hosts_are_contiguous()
               ? Ranks::consecutive(ranks.front(), std::min<std::size_t>(ranks.size(), 2))
               : ranks;
}

} // namespace

/// Finds widest_on_host_. Distances nest, so the greatest distance between two ranks of a host is
/// also the distance of some rank from its leader.
void Placement::find_widest() {
    const bool all_alike = host_of_.empty() && kind_of_.empty();
    for (std::uint32_t host = 0; host < host_count(); host = next_unlike(*this, host, all_alike)) {
        for (const Rank rank : some_of(*this, host, kinds_.size() == 1)) {
            if (rank != leader(host)) {
                widest_on_host_ = std::max(widest_on_host_, distance(leader(host), rank));
            }
        }
    }
}

namespace {

/// How often each distance occurs between one rank and the next.
using Steps = std::array<std::uint32_t, kDistanceCount>;

Steps steps_of(const Placement& placement, Ranks row) {
    Steps steps = {};
    for (std::size_t i = 1; i < row.size(); ++i) {
        ++steps[static_cast<std::size_t>(placement.distance(row[i - 1], row[i]))];
    }
    return steps;
}

} // namespace

/// Finds distances_on_host_ and groups_are_contiguous_. Distances nest, so all of them occur
/// between ranks that are neighbours in the order of places. That order enters each group once.
/// Where the ranks in their own order enter groups no more often, the ranks of each group are
/// consecutive.
void Placement::find_levels() {
    std::array<bool, kDistanceCount> found = {};
    const bool all_alike = host_of_.empty() && kind_of_.empty();
    for (std::uint32_t host = 0; host < host_count(); host = next_unlike(*this, host, all_alike)) {
        const Ranks ranks = some_of(*this, host, kinds_.size() == 1);
        const auto before = [&](Rank a, Rank b) {
            return inside_host(place(a)) < inside_host(place(b));
        };
        Ranks row = ranks;
        std::vector<Rank> by_place; // The ranks by place, where that is another order.
        if (!std::is_sorted(ranks.begin(), ranks.end(), before)) {
            by_place.assign(ranks.begin(), ranks.end());
            std::sort(by_place.begin(), by_place.end(), before);
            row = by_place;
        }
        const Steps steps = steps_of(*this, row);
        for (std::size_t i = 0; i < steps.size(); ++i) {
            found[i] = found[i] || steps[i] > 0;
        }
        const bool known_alike = place(row.front()).known == place(row.back()).known;
        groups_are_contiguous_ = groups_are_contiguous_ && known_alike &&
                                 (by_place.empty() || steps == steps_of(*this, ranks));
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i]) {
            distances_on_host_.push_back(static_cast<Distance>(i));
        }
    }
}

Ranks Placement::ranks_on(std::uint32_t host) const {
    UCG_DEBUG_ASSERT(host < host_count());
    const std::size_t first = host_begin_[host];
    const std::size_t count = host_begin_[host + 1] - first;
    return contiguous_ ? Ranks::consecutive(static_cast<Rank>(first), count)
                       : Ranks(std::span(by_host_).subspan(first, count));
}

bool may_be_closer_than(const Placement& placement, Ranks ranks, Distance limit) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](Rank rank) { return placement.place(rank).known < limit; });
}

std::vector<std::vector<Rank>> groups_closer_than(const Placement& placement, Ranks ranks,
                                                  Distance limit) {
    std::map<std::array<std::uint32_t, 5>, std::size_t> known; // By the place that a group shares.
    std::vector<std::vector<Rank>> groups;
    for (const Rank rank : ranks) {
        std::size_t group = groups.size();
        // A rank whose place is not known that closely shares nothing with any other.
        if (placement.place(rank).known < limit) {
            const auto inside = static_cast<Distance>(static_cast<unsigned>(limit) - 1);
            const Place place = forget_inside(placement.place(rank), inside);
            const std::array common = {place.host, place.package, place.numa, place.cache,
                                       place.core};
            group = known.try_emplace(common, group).first->second;
        }
        if (group == groups.size()) {
            groups.emplace_back();
        }
        groups[group].push_back(rank);
    }
    return groups;
}

Placement Placement::one_host(Rank rank_count) {
    return regular(1, rank_count);
}

Placement Placement::regular(Rank hosts, Rank ranks_per_host) {
    return map_ranks(Machine(), hosts, ranks_per_host, MapBy::core);
}

Placement Placement::packed(const Machine& machine, Rank hosts, Rank ranks_per_host) {
    return map_ranks(machine, hosts, ranks_per_host, MapBy::core);
}

} // namespace ucg::topo
