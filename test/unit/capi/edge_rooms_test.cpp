// Which rooms a rank wants for its blocks to other hosts, and what all ranks agree on.
#include <cstring>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/edge_rooms.hpp"

namespace ucg::capi {
namespace {

using graph::EdgeRoom;
using Rooms = std::vector<EdgeRoom>;

TEST_CASE("capi: a rank wants room for the longest blocks since the last time", "[capi][rooms]") {
    EdgeRooms rooms;
    CHECK(rooms.begins({{2, 9, 8}, {2, 7, 8}, {7, 2, 100}}));
    CHECK(rooms.wanted() == Rooms{{2, 7, 8}, {2, 9, 8}, {7, 2, 100}});
    CHECK(rooms.outgrown());
    rooms.agreed(true);
    CHECK_FALSE(rooms.begins({{2, 9, 8}, {2, 7, 8}, {7, 2, 50}}));
    CHECK_FALSE(rooms.outgrown());
    CHECK(rooms.begins({{2, 9, 9}, {2, 7, 0}, {7, 2, 70}}));
    CHECK(rooms.wanted() == Rooms{{2, 7, 8}, {2, 9, 9}, {7, 2, 70}});
    CHECK(rooms.outgrown());
}

TEST_CASE("capi: rooms of which less than half is needed are given up", "[capi][rooms]") {
    EdgeRooms rooms;
    CHECK(rooms.begins({{0, 4, 100}}));
    rooms.agreed(true);
    CHECK_FALSE(rooms.begins({{0, 4, 50}}));
    CHECK_FALSE(rooms.outgrown());
    CHECK(rooms.begins({{0, 4, 49}}));
    CHECK_FALSE(rooms.outgrown());
    rooms.agreed(false);
    CHECK_FALSE(rooms.begins({{0, 4, 49}}));
    CHECK(rooms.outgrown());
}

TEST_CASE("capi: the k-th edges of two ranks share a room, whatever else there is",
          "[capi][rooms]") {
    EdgeRooms rooms;
    CHECK(rooms.begins({{0, 4, 1}, {0, 5, 10}, {0, 4, 3}}));
    rooms.agreed(true);
    CHECK_FALSE(rooms.begins({{0, 4, 2}, {0, 6, 7}, {0, 4, 2}, {0, 4, 5}}));
    CHECK(rooms.begins({{0, 4, 1}, {0, 4, 3}, {0, 3, 0}}));
    CHECK(rooms.wanted() == Rooms{{0, 3, 0}, {0, 4, 2}, {0, 4, 3}, {0, 4, 5}, {0, 6, 7}});
}

/// Stands in for the other ranks of hosts {0, 1} and {2, 3}, as far as rank 0 hears of them: rank 1
/// wants the rooms in `there`.
struct Others {
    Rooms there;
    std::vector<std::uint64_t> summed;

    ucg_status_t run(const ucg_coll_params_t& params) {
        auto* received = static_cast<std::byte*>(params.recv_buffer);
        if (params.type == UCG_COLL_ALLREDUCE) {
            const auto* own = static_cast<const std::uint64_t*>(params.recv_buffer);
            summed.assign(own, own + params.count);
            return UCG_OK;
        }
        REQUIRE(params.type == UCG_COLL_NEIGHBOR_ALLTOALLV);
        REQUIRE(params.neighbors->source_count == 2);
        const std::uint64_t count = there.size();
        const bool counts = params.element_bytes == sizeof(count);
        const void* theirs = counts ? static_cast<const void*>(&count) : there.data();
        std::memcpy(received, params.send_buffer, params.send_counts[0] * params.element_bytes);
        std::memcpy(received +
                        static_cast<std::uint64_t>(params.recv_displs[1]) * params.element_bytes,
                    theirs, params.recv_counts[1] * params.element_bytes);
        return UCG_OK;
    }
};

TEST_CASE("capi: ranks of a host gather their rooms, and the first sums up what leaves",
          "[capi][rooms]") {
    const topo::Placement placement = topo::Placement::regular(2, 2);
    Others others{{{1, 2, 5}, {1, 3, 7}, {3, 1, 4}}, {}};
    AgreedRooms agreed;
    CHECK(gather_rooms([&](const ucg_coll_params_t& params) { return others.run(params); },
                       placement, 0, {{0, 3, 1}, {0, 3, 2}, {2, 0, 9}}, agreed) == UCG_OK);
    CHECK(agreed.rooms == Rooms{{0, 3, 1}, {0, 3, 2}, {1, 2, 5}, {1, 3, 7}, {2, 0, 9}, {3, 1, 4}});
    CHECK(others.summed == std::vector<std::uint64_t>{1, 3, 15});
    CHECK(agreed.crossing == graph::Crossing{1, 3, 15});
}

} // namespace
} // namespace ucg::capi
