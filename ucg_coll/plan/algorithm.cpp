#include "ucg_coll/plan/algorithm.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ucg_coll/plan/peer_memory/sockets.hpp"

namespace ucg::plan {

/// Returns the host with most ranks, the first of several.
static std::uint32_t fullest_host(const topo::Placement& placement) {
    const auto most = static_cast<std::size_t>(placement.ranks_per_host_max());
    std::uint32_t host = 0;
    while (placement.ranks_on(host).size() < most) {
        ++host;
    }
    return host;
}

static HostLevels levels_of(const topo::Placement& placement, std::uint32_t host) {
    HostLevels levels;
    const Ranks ranks = placement.ranks_on(host);
    const std::vector<topo::Distance>& distances = placement.distances_on_host();
    for (std::size_t i = 0; i < distances.size(); ++i) {
        const auto all = static_cast<Rank>(ranks.size());
        HostLevel level{distances[i], all, all, 1};
        if (i + 1 < distances.size()) {
            const auto groups = topo::groups_closer_than(placement, ranks, distances[i + 1]);
            const auto [fewest, most] =
                std::minmax_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
                    return a.size() < b.size();
                });
            level.ranks = static_cast<Rank>(most->size());
            level.ranks_min = static_cast<Rank>(fewest->size());
            level.groups = static_cast<Rank>(groups.size());
        }
        levels.level[levels.count++] = level;
    }
    return levels;
}

/// Returns whether the ranks go round over the hosts.
static bool are_in_turn(const topo::Placement& placement) {
    Rank rank = 0;
    while (rank < placement.rank_count() &&
           placement.host(rank) == static_cast<std::uint32_t>(rank) % placement.host_count()) {
        ++rank;
    }
    return rank == placement.rank_count();
}

/// Finds out what partners are to one another.
class PartnersSeen {
  public:
    explicit PartnersSeen(const topo::Placement& placement)
        : placement_(placement), leaving_(placement.host_count(), 0) {}

    /// Takes note of a message.
    void add(Rank from, Rank to) {
        const std::uint32_t host = placement_.host(from);
        if (host != placement_.host(to)) {
            seen_.leaving = std::max(seen_.leaving, ++leaving_[host]);
        } else if (seen_.leaving == 0 && seen_.farthest < placement_.widest_on_host()) {
            seen_.farthest = std::max(seen_.farthest, placement_.distance(from, to));
        }
    }
    ExchangeRound seen() const { return seen_; }

  private:
    const topo::Placement& placement_;
    std::vector<Rank> leaving_; ///< Messages that leave each host.
    ExchangeRound seen_;
};

/// Returns what the ranks are to one another that act for all `distance` apart, if `size` do, as a
/// fold has them.
static ExchangeRound exchange_round(const topo::Placement& placement, Rank size, Rank distance) {
    const Rank pairs = placement.rank_count() - size;
    const auto acting = [&](Rank position) {
        return position < pairs ? 2 * position + 1 : position + pairs;
    };
    PartnersSeen partners(placement);
    for (Rank position = 0; position < size; ++position) {
        partners.add(acting(position), acting(position ^ distance));
    }
    return partners.seen();
}

/// Returns what the ranks of the first `pairs` pairs are to one another, of which the lower one
/// sends.
static ExchangeRound pairs_round(const topo::Placement& placement, Rank pairs) {
    PartnersSeen partners(placement);
    for (Rank pair = 0; pair < pairs; ++pair) {
        partners.add(2 * pair, 2 * pair + 1);
    }
    return partners.seen();
}

static Exchanges exchanges_of(const topo::Placement& placement) {
    const auto size =
        static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(placement.rank_count())));
    Exchanges exchanges;
    exchanges.pairs = pairs_round(placement, placement.rank_count() - size);
    exchanges.at.fill(exchanges.pairs);
    for (std::size_t i = 0; Rank{1} << i < size; ++i) {
        exchanges.at[i] = exchange_round(placement, size, Rank{1} << i);
    }
    if (!placement.hosts_are_equal_blocks() && are_in_turn(placement)) {
        exchanges.period = static_cast<Rank>(placement.host_count());
    }
    return exchanges;
}

SharedMemory shared_memory(const topo::Placement& placement, const cost::Profile& profile,
                           std::uint64_t staging_bytes, bool buffers_mapped,
                           std::uint64_t flag_slot_bytes, bool kernel_copies) {
    if (placement.ranks_per_host_max() < 2) {
        return {};
    }
    const std::uint32_t fullest = fullest_host(placement);
    SharedMemory shared{staging_bytes,
                        buffers_mapped,
                        sockets_are_contiguous(placement),
                        cost::node_model(profile.memory, placement, fullest),
                        flag_slot_bytes,
                        levels_of(placement, fullest),
                        exchanges_of(placement),
                        kernel_copies};
    const bool one_pair = placement.rank_count() == 2;
    for (cost::MemoryLevel* level : {&shared.node.within, &shared.node.between}) {
        if (buffers_mapped) {
            *level = price::own_buffers(*level, profile.memory, one_pair);
        }
        // The paper's latency a is that of a flag. Here a signal takes its place, and where the
        // buffer is has to be read, too. Waiting for a turn is priced where ranks meet.
        level->latency_ns += cost::message_ns(profile.level(placement.widest_on_host()), 0);
    }
    return shared;
}

price::Surroundings surroundings(const Facts& facts, Rank link_sharers) {
    return {.buffers_mapped = facts.shared.buffers_mapped,
            .ranks_per_cpu = facts.ranks_per_cpu,
            .ranks_on_host = facts.placement.ranks_per_host_max(),
            .link_sharers = link_sharers,
            .one_pair = facts.placement.rank_count() == 2,
            .use = facts.message_use};
}

topo::Placement reproducible_placement(Rank rank_count) {
    return topo::Placement::regular(rank_count, 1);
}

Facts facts_for(const Facts& facts, const graph::Request& request) {
    if (facts.reproducible == nullptr || !graph::reduces(request.collective)) {
        return facts_for(facts, request.collective);
    }
    const Facts reproducible = {
        *facts.reproducible, cost::default_profile(), {}, 1, facts.reproducible, nullptr, nullptr};
    return facts_for(reproducible, request.collective);
}

Facts facts_for(const Facts& facts, graph::Collective collective) {
    Facts planned = facts;
    planned.message_use = graph::message_use(collective, facts.placement.rank_count());
    return planned;
}

std::uint64_t uniform_bytes(const graph::Request& request) {
    switch (request.collective) {
    case graph::Collective::allgatherv:
    case graph::Collective::reduce_scatter:
        return std::accumulate(request.receive.bytes.begin(), request.receive.bytes.end(),
                               std::uint64_t{0});
    case graph::Collective::gatherv:
    case graph::Collective::scatterv:
    case graph::Collective::neighbor_alltoallv: return 0;
    case graph::Collective::barrier:
    case graph::Collective::bcast:
    case graph::Collective::reduce:
    case graph::Collective::allreduce:
    case graph::Collective::allgather:
    case graph::Collective::alltoall:
    case graph::Collective::alltoallv:
    case graph::Collective::gather:
    case graph::Collective::scatter:
    case graph::Collective::reduce_scatter_block:
    case graph::Collective::scan:
    case graph::Collective::exscan: return request.bytes;
    }
    return 0;
}

AlgorithmText split_algorithm(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
        return {text, {}, false};
    }
    return {text.substr(0, colon), text.substr(colon + 1), true};
}

namespace {

/// "one", "one and two", "one, two, and three".
std::string enumerate(const std::vector<std::string_view>& items) {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) {
            text += items.size() > 2 ? ", " : " ";
            text += i + 1 == items.size() ? "and " : "";
        }
        text += items[i];
    }
    return text;
}

} // namespace

unsigned calls_in_a_row(const Facts& facts, graph::Collective collective) {
    if (facts.placement.host_count() == 1) {
        return 1;
    }
    using graph::Collective;
    switch (collective) {
    case Collective::bcast:
    case Collective::scatter:
    case Collective::scatterv:
    case Collective::scan:
    case Collective::exscan: return 2;
    case Collective::reduce:
    case Collective::gather:
    case Collective::gatherv: return 1 + static_cast<unsigned>(cost::kBeforeAtRoot);
    case Collective::barrier:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
    case Collective::neighbor_alltoallv: return 1;
    }
    return 1;
}

std::string Algorithm::needs_text() const {
    std::vector<std::string_view> items;
    for (const Need& need : needs) {
        items.push_back(need.what);
    }
    return enumerate(items);
}

std::string Algorithm::unmet_text(const Facts& facts, const graph::Request& request) const {
    std::vector<std::string_view> items;
    for (const Need& need : needs) {
        if (!need.met(facts, request)) {
            items.push_back(need.what);
        }
    }
    return enumerate(items);
}

} // namespace ucg::plan
