// The interfaces of an InfiniBand adapter, with figures as UCX gives them.
#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/lane_choice.hpp"

using namespace ucg::transport::ucx;

namespace {

constexpr std::size_t kUnlimited = ~std::size_t(0);

LaneCandidate connected(const char* device) {
    return {"rc_mlx5", device, true, 0.60e-6, 1e-9, 0.04e-6, 256};
}
LaneCandidate dynamic(const char* device) {
    return {"dc_mlx5", device, true, 0.66e-6, 0, 0.04e-6, kUnlimited};
}
LaneCandidate datagrams(const char* device) {
    return {"ud_mlx5", device, true, 0.63e-6, 0, 0.08e-6, kUnlimited};
}

std::vector<std::string> kept(const std::vector<LaneCandidate>& candidates, std::size_t peers) {
    const std::vector<std::string> reasons = lanes_left_out(candidates, peers);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (reasons[i].empty()) {
            names.push_back(candidates[i].transport + "/" + candidates[i].device);
        }
    }
    return names;
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("ucx lane choice: of an adapter's interfaces one is kept, the cheapest for the job",
          "[ucx]") {
    const std::vector<LaneCandidate> adapter = {datagrams("mlx5_0:1"), connected("mlx5_0:1"),
                                                dynamic("mlx5_0:1")};
    CHECK(kept(adapter, 0) == Names{"rc_mlx5/mlx5_0:1"});
    CHECK(kept(adapter, 2) == Names{"rc_mlx5/mlx5_0:1"});
    // From here on the adapter forgets connections too often.
    CHECK(kept(adapter, 64) == Names{"dc_mlx5/mlx5_0:1"});
    CHECK(kept(adapter, 100'000) == Names{"dc_mlx5/mlx5_0:1"});
    CHECK(lanes_left_out(adapter, 64)[1] == "dc_mlx5 serves the same device");
}

TEST_CASE("ucx lane choice: what is for fewer peers than the job has is left out", "[ucx]") {
    LaneCandidate cheap = connected("mlx5_0:1");
    cheap.latency_per_peer_s = 0;
    CHECK(kept({cheap, datagrams("mlx5_0:1")}, 256) == Names{"rc_mlx5/mlx5_0:1"});
    CHECK(kept({cheap, datagrams("mlx5_0:1")}, 257) == Names{"ud_mlx5/mlx5_0:1"});
    CHECK(kept({cheap}, 257).empty());
    CHECK(lanes_left_out(std::vector{cheap}, 257)[0] == "is for 256 peers at most");
}

TEST_CASE("ucx lane choice: each adapter keeps one, and shared memory all", "[ucx]") {
    const LaneCandidate posix = {"posix", "memory", false, 80e-9, 0, 10e-9, kUnlimited};
    LaneCandidate sysv = posix;
    sysv.transport = "sysv";
    CHECK(kept({posix, sysv, connected("mlx5_0:1"), dynamic("mlx5_0:1"), connected("mlx5_1:1"),
                datagrams("mlx5_1:1")},
               2) == Names{"posix/memory", "sysv/memory", "rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1"});
}

TEST_CASE("ucx lane choice: among equals the first is kept", "[ucx]") {
    LaneCandidate verbs = connected("mlx5_0:1");
    verbs.transport = "rc_verbs";
    CHECK(kept({verbs, connected("mlx5_0:1")}, 2) == Names{"rc_verbs/mlx5_0:1"});
}

TEST_CASE("ucx lane choice: each peer adds to what a message costs", "[ucx]") {
    CHECK(lane_cost(connected("mlx5_0:1"), 0) == Approx(0.641e-6));
    CHECK(lane_cost(connected("mlx5_0:1"), 100) == Approx(0.74e-6));
}
