#include "ucg_coll/capi/edge_rooms.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

namespace ucg::capi {

using graph::EdgeRoom;

namespace {

using Rooms = std::vector<EdgeRoom>;

void order(Rooms& rooms) {
    std::stable_sort(rooms.begin(), rooms.end(),
                     [](const EdgeRoom& a, const EdgeRoom& b) { return ends_of(a) < ends_of(b); });
}

/// Calls visit(first, second) for each edge of two ordered lists, with null where it is in one
/// alone.
template <typename Visit>
void for_each_edge(const Rooms& first, const Rooms& second, Visit&& visit) {
    auto a = first.begin();
    auto b = second.begin();
    while (a != first.end() || b != second.end()) {
        const bool from_first =
            a != first.end() && (b == second.end() || ends_of(*a) <= ends_of(*b));
        const bool from_second =
            b != second.end() && (a == first.end() || ends_of(*b) <= ends_of(*a));
        visit(from_first ? &*a : nullptr, from_second ? &*b : nullptr);
        a += from_first ? 1 : 0;
        b += from_second ? 1 : 0;
    }
}

std::uint64_t bytes_of(const Rooms& rooms) {
    std::uint64_t bytes = 0;
    for (const EdgeRoom& room : rooms) {
        bytes += room.bytes;
    }
    return bytes;
}

} // namespace

bool EdgeRooms::begins(Rooms edges) {
    order(edges);
    Rooms longest;
    longest.reserve(std::max(edges.size(), wanted_.size()));
    for_each_edge(wanted_, edges, [&](const EdgeRoom* before, const EdgeRoom* now) {
        longest.push_back(before != nullptr ? *before : *now);
        longest.back().bytes = std::max(longest.back().bytes, now != nullptr ? now->bytes : 0);
    });
    wanted_ = std::move(longest);
    return interval_.begins();
}

bool EdgeRooms::outgrown() const {
    bool longer = false;
    for_each_edge(given_, wanted_, [&](const EdgeRoom* has, const EdgeRoom* wants) {
        longer = longer || (wants != nullptr && (has == nullptr || wants->bytes > has->bytes));
    });
    return longer || 2 * bytes_of(wanted_) < bytes_of(given_);
}

void EdgeRooms::agreed(bool renewed) {
    if (renewed) {
        given_ = std::move(wanted_);
    }
    wanted_.clear();
    interval_.agreed();
}

ucg_status_t sum_up(const RunCollective& run, std::uint64_t* numbers, std::size_t count) {
    ucg_coll_params_t sum = {};
    sum.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    sum.type = UCG_COLL_ALLREDUCE;
    sum.flags = UCG_COLL_FLAG_IN_PLACE;
    sum.count = count;
    sum.element_bytes = sizeof *numbers;
    sum.datatype = UCG_DT_UINT64;
    sum.op = UCG_OP_SUM;
    sum.recv_buffer = numbers;
    return run(sum);
}

namespace {

/// An allgatherv among the ranks of each host, as a neighbourhood of theirs.
class HostGather {
  public:
    HostGather(const RunCollective& run, Ranks ranks)
        : run_(run), ranks_(ranks.begin(), ranks.end()), starts_(ranks.size(), 0) {}

    /// Gathers `own` of each rank into `all`, in the order of ranks. `counts`: how many each has.
    template <typename T>
    ucg_status_t gather(const std::vector<T>& own, const std::vector<std::uint64_t>& counts,
                        std::vector<T>& all) {
        static_assert(std::is_trivially_copyable_v<T>);
        const std::vector<std::uint64_t> sent(ranks_.size(), own.size());
        std::vector<std::int64_t> places;
        std::uint64_t total = 0;
        for (const std::uint64_t count : counts) {
            places.push_back(static_cast<std::int64_t>(total));
            total += count;
        }
        all.resize(total);
        const auto count = static_cast<std::uint32_t>(ranks_.size());
        const ucg_neighbors_t ends = {ranks_.data(), ranks_.data(), count, count};
        ucg_coll_params_t params = {};
        params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS | UCG_COLL_PARAM_FIELD_NEIGHBORS;
        params.type = UCG_COLL_NEIGHBOR_ALLTOALLV;
        params.element_bytes = sizeof(T);
        params.neighbors = &ends;
        params.send_buffer = own.data();
        params.send_counts = sent.data();
        params.send_displs = starts_.data();
        params.recv_buffer = all.data();
        params.recv_counts = counts.data();
        params.recv_displs = places.data();
        return run_(params);
    }

  private:
    const RunCollective& run_;
    std::vector<int> ranks_;
    std::vector<std::int64_t> starts_;
};

/// Returns what leaves `host`.
graph::Crossing crossing_of(const topo::Placement& placement, std::uint32_t host,
                            const Rooms& rooms) {
    graph::Crossing crossing;
    std::set<std::uint32_t> hosts;
    std::set<std::pair<Rank, Rank>> ranks;
    for (const EdgeRoom& room : rooms) {
        if (placement.host(room.from) == host) {
            hosts.insert(placement.host(room.to));
            ranks.insert(ends_of(room));
            crossing.bytes += room.bytes;
        }
    }
    crossing.host_pairs = hosts.size();
    crossing.rank_pairs = ranks.size();
    return crossing;
}

} // namespace

ucg_status_t gather_rooms(const RunCollective& run, const topo::Placement& placement, Rank rank,
                          const Rooms& wanted, AgreedRooms& agreed) {
    const std::uint32_t host = placement.host(rank);
    const Ranks ranks = placement.ranks_on(host);
    HostGather on_host(run, ranks);
    std::vector<std::uint64_t> counts;
    ucg_status_t status = on_host.gather<std::uint64_t>(
        {wanted.size()}, std::vector<std::uint64_t>(ranks.size(), 1), counts);
    if (status == UCG_OK) {
        status = on_host.gather(wanted, counts, agreed.rooms);
    }
    if (status != UCG_OK) {
        return status;
    }
    order(agreed.rooms);
    std::array<std::uint64_t, 3> sums = {}; // Each host's once.
    if (rank == ranks.front()) {
        const graph::Crossing own = crossing_of(placement, host, agreed.rooms);
        sums = {own.host_pairs, own.rank_pairs, own.bytes};
    }
    status = sum_up(run, sums.data(), sums.size());
    agreed.crossing = {sums[0], sums[1], sums[2]};
    return status;
}

} // namespace ucg::capi
