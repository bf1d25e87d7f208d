#include "test/unit/plan/proof.hpp"

#include <algorithm>

namespace ucg::plan::test {
namespace {

using graph::Blocks;
using graph::Collective;
using graph::Request;

/// The block of `from` for `to` is so many times `bytes` long. It is symmetric, as MPI_IN_PLACE
/// demands.
std::uint64_t weight(Rank from, Rank to) {
    return static_cast<std::uint64_t>(from + to) % 3;
}

/// Places blocks end to end, except for a gap before each third one.
template <typename WeightOf>
Blocks blocks_of(const Case& sample, WeightOf weight_of) {
    Blocks blocks;
    std::uint64_t offset = 0;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        const std::uint64_t bytes = sample.bytes * weight_of(rank);
        offset += rank % 3 == 2 ? sample.bytes : 0;
        blocks.bytes.push_back(bytes);
        blocks.offsets.push_back(offset);
        offset += bytes;
    }
    return blocks;
}

/// The n-th edge of rank `from`, if it has one, leads to the rank at the n-th of these distances:
/// some pairs have several edges, some edges lead from a rank to itself, and degrees differ.
constexpr Rank kDistances[] = {1, 0, 3, 1, 6, 2};

bool has_edge(Rank from, std::size_t n) {
    return (static_cast<std::size_t>(from) + n) % 4 != 3;
}

void append_edge(Blocks& blocks, Rank peer, std::uint64_t bytes, std::uint64_t gap) {
    const std::uint64_t end =
        blocks.bytes.empty() ? 0 : blocks.offsets.back() + blocks.bytes.back();
    blocks.offsets.push_back(end + (blocks.bytes.size() % 3 == 2 ? gap : 0));
    blocks.bytes.push_back(bytes);
    blocks.peers.push_back(peer);
}

std::uint64_t length_of(const Case& sample, Rank from, std::size_t n) {
    return sample.bytes * ((static_cast<std::uint64_t>(from) + n) % 3);
}

/// Rooms for all edges, as an earlier call would have left them: most fit their blocks, some are
/// too long or too short, one rank has none, and the rank after it has one more than it has edges.
std::vector<graph::EdgeRoom> rooms_of(const Case& sample) {
    std::vector<graph::EdgeRoom> rooms;
    for (Rank from = 0; from < sample.rank_count; ++from) {
        for (std::size_t n = 0; n < std::size(kDistances); ++n) {
            const Rank to = (from + kDistances[n]) % sample.rank_count;
            const std::uint64_t kind = (static_cast<std::uint64_t>(from) + n) % 7;
            const std::uint64_t bytes = kind == 5   ? sample.bytes
                                        : kind == 6 ? sample.bytes / 2
                                                    : length_of(sample, from, n);
            if (from % 5 != 3 && (has_edge(from, n) || from % 5 == 4)) {
                rooms.push_back({from, to, bytes});
            }
        }
    }
    std::stable_sort(rooms.begin(), rooms.end(),
                     [](const auto& a, const auto& b) { return ends_of(a) < ends_of(b); });
    return rooms;
}

void add_edges(Request& request, const Case& sample, Rank rank) {
    const Rank count = sample.rank_count;
    for (std::size_t n = 0; n < std::size(kDistances); ++n) {
        const Rank distance = kDistances[n] % count;
        const Rank to = (rank + distance) % count;
        const Rank from = (rank - distance + count) % count;
        if (has_edge(rank, n)) {
            append_edge(request.send, to, length_of(sample, rank, n), sample.bytes);
        }
        if (has_edge(from, n)) {
            append_edge(request.receive, from, length_of(sample, from, n), sample.bytes);
        }
    }
    request.bytes = 0;
    if (sample.agreed) {
        request.rooms = rooms_of(sample);
        request.crossing = {static_cast<std::uint64_t>(count),
                            2 * static_cast<std::uint64_t>(count),
                            8 * sample.bytes * static_cast<std::uint64_t>(count)};
    }
}

void add_blocks(Request& request, const Case& sample, Rank rank) {
    const bool at_root = rank == sample.root;
    const Blocks by_rank = blocks_of(sample, [](Rank other) { return weight(0, other); });
    const Blocks with_each = blocks_of(sample, [&](Rank other) { return weight(rank, other); });
    switch (sample.collective) {
    case Collective::allgatherv:
    case Collective::reduce_scatter:
        request.receive = by_rank;
        request.bytes = 0;
        break;
    case Collective::alltoallv:
        request.receive = with_each;
        request.send = sample.in_place ? Blocks{} : with_each;
        request.bytes = 0;
        break;
    case Collective::neighbor_alltoallv: add_edges(request, sample, rank); break;
    case Collective::gatherv:
        request.receive = at_root ? by_rank : Blocks{};
        request.bytes = sample.bytes * weight(0, rank);
        break;
    case Collective::scatterv:
        request.send = at_root ? by_rank : Blocks{};
        request.bytes = sample.bytes * weight(0, rank);
        break;
    default: break;
    }
}

std::vector<topo::Place> on_hosts(const std::vector<std::uint32_t>& hosts) {
    std::vector<topo::Place> places;
    for (const std::uint32_t host : hosts) {
        topo::Place place;
        place.host = host;
        places.push_back(topo::forget_inside(place, topo::Distance::host));
    }
    return places;
}

} // namespace

std::string describe(const Case& sample) {
    return fmt::format("{} of {} bytes, {} each, {} ranks, root {}{}{}",
                       graph::name(sample.collective), sample.bytes, sample.element_bytes,
                       sample.rank_count, sample.root, sample.in_place ? ", in place" : "",
                       sample.commutative ? "" : ", not commutative");
}

Request request_of(const Case& sample, Rank rank) {
    Request request;
    request.collective = sample.collective;
    request.rank_count = sample.rank_count;
    request.root = sample.root;
    request.bytes = sample.bytes;
    request.element_bytes = sample.element_bytes;
    request.commutative = sample.commutative;
    request.in_place =
        sample.in_place && (!graph::rooted(sample.collective) || rank == sample.root);
    if (graph::has_block_vectors(sample.collective)) {
        add_blocks(request, sample, rank);
    }
    return request;
}

Status prove(const Facts& facts, std::string_view algorithm, const Case& sample) {
    std::vector<Request> requests;
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        requests.push_back(request_of(sample, rank));
        Result<graph::Schedule> schedule = plan(facts, requests.back(), rank, algorithm);
        if (!schedule.ok()) {
            return schedule.status();
        }
        schedules.push_back(std::move(*schedule));
    }
    const auto same_host = [](Rank a, Rank b, const void* placement) {
        return static_cast<const topo::Placement*>(placement)->same_host(a, b);
    };
    const std::optional<graph::SwitchTree> links =
        links_to_prove(facts, schedules.front().algorithm);
    Status status =
        graph::verify(schedules, requests, same_host, &facts.placement, links ? &*links : nullptr);
    if (status.ok()) {
        return status;
    }
    return failure(status.code(), "{} by {}: {}", describe(sample), algorithm, status.message());
}

namespace {

/// Places each rank on the socket `socket_of(rank)` of the one host.
template <typename SocketOf>
topo::Placement on_sockets(Rank count, SocketOf socket_of) {
    std::vector<topo::Place> places;
    for (Rank rank = 0; rank < count; ++rank) {
        topo::Place place;
        place.package = static_cast<std::uint32_t>(socket_of(rank));
        place.core = static_cast<std::uint32_t>(rank);
        places.push_back(place);
    }
    return topo::Placement(places);
}

topo::Placement on_levels(Rank count) {
    std::vector<topo::Place> places;
    for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(count); ++rank) {
        const std::uint32_t cache = rank / 3;
        places.push_back({.package = cache / 4, .numa = cache / 2, .cache = cache, .core = rank});
    }
    return topo::Placement(places);
}

} // namespace

topo::Placement place(RankLayout layout, Rank count) {
    std::vector<std::uint32_t> hosts;
    const auto total = static_cast<std::uint32_t>(count);
    switch (layout) {
    case RankLayout::sockets: return on_sockets(count, [](Rank rank) { return rank / 4; });
    case RankLayout::dealt_sockets: return on_sockets(count, [](Rank rank) { return rank % 3; });
    case RankLayout::levels: return on_levels(count);
    case RankLayout::one_host: hosts.assign(total, 0); break;
    case RankLayout::single:
        for (std::uint32_t rank = 0; rank < total; ++rank) {
            hosts.push_back(rank);
        }
        break;
    case RankLayout::pairs:
        for (std::uint32_t rank = 0; rank < total; ++rank) {
            hosts.push_back(rank / 2);
        }
        break;
    case RankLayout::uneven:
        for (std::uint32_t host = 0; hosts.size() < total; ++host) {
            hosts.insert(hosts.end(), host + 1, host);
        }
        hosts.resize(total);
        break;
    case RankLayout::cyclic:
        for (std::uint32_t rank = 0; rank < total; ++rank) {
            hosts.push_back(rank % std::max(1U, total / 4));
        }
        break;
    }
    return topo::Placement(on_hosts(hosts));
}

std::unique_ptr<const Network> network_for(const topo::Placement& placement) {
    constexpr std::uint64_t kRate = 12'500'000;
    if (placement.host_count() <= 1) {
        return nullptr;
    }
    using Kind = topo::ClusterNode::Kind;
    std::vector<topo::ClusterNode> nodes = {{"s0", Kind::network_switch, topo::kNoNode, 0},
                                            {"s1", Kind::network_switch, 0, kRate / 2},
                                            {"s2", Kind::network_switch, 1, kRate / 2}};
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        nodes.push_back({fmt::format("n{}", host), Kind::machine, host % 3, kRate});
    }
    const topo::Cluster cluster(std::move(nodes));
    std::vector<std::uint32_t> machines;
    for (Rank rank = 0; rank < placement.rank_count(); ++rank) {
        machines.push_back(*cluster.find_machine(fmt::format("n{}", placement.host(rank))));
    }
    return std::make_unique<const Network>(cluster, machines);
}

std::unique_ptr<const LoadedSchedule> loaded_for(const topo::Placement& placement,
                                                 const Network* network) {
    if (network == nullptr || placement.ranks_per_host_max() > 1) {
        return nullptr;
    }
    const aapc::Layout& layout = network->phases().layout();
    std::vector<std::string> names;
    std::vector<Rank> ranks;
    for (std::uint32_t member = 0; member < layout.member_count(); ++member) {
        names.push_back(fmt::format("n{}", member));
        ranks.push_back(static_cast<Rank>(member));
    }
    return std::make_unique<const LoadedSchedule>(LoadedSchedule{
        "cluster.aapc",
        std::make_shared<const aapc::Listed>(aapc::list_schedule(network->phases(), names)),
        ranks});
}

cost::Profile profile_for(Prices prices) {
    cost::Profile profile = cost::default_profile();
    for (cost::LogGp& level : profile.levels) {
        switch (prices) {
        case Prices::usual: break;
        case Prices::wide_trees:
            level = {.latency_ns = 1e6, .overhead_ns = 1, .gap_ns = 1, .gap_per_byte_ns = 0.1};
            break;
        case Prices::short_segments:
            level = {.latency_ns = 1, .overhead_ns = 0, .gap_ns = 0, .gap_per_byte_ns = 1};
            profile.reduce_fixed_ns = 0;
            break;
        }
    }
    return profile;
}

} // namespace ucg::plan::test
