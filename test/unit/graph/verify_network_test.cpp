// Messages that may meet on a link are refused.
#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

/// Ranks 0 and 1 are on machines of switch a. Rank 2 is on switch b, which hangs below a; rank 3 is
/// beside rank 2.
SwitchTree network() {
    return {{{"a", 0, 0}, {"b", 0, 0}, {"m0", 0, 0}, {"m1", 0, 0}, {"m2", 1, 0}, {"m3", 1, 0}},
            {2, 3, 4, 5}};
}

/// What verify says of schedules in which rank 0 sends 8 bytes to rank 2, and rank 1 sends 8 bytes
/// to rank 3.
std::string gather(std::string_view bodies) {
    Request alltoallv;
    alltoallv.collective = Collective::alltoallv;
    alltoallv.rank_count = 4;
    std::vector<Request> requests(4, alltoallv);
    for (std::size_t rank = 0; rank < 4; ++rank) {
        Blocks none{{0, 0, 0, 0}, {0, 0, 0, 0}};
        requests[rank].send = none;
        requests[rank].receive = none;
    }
    for (const std::size_t from : {0, 1}) {
        const std::size_t to = 2 + from;
        requests[from].send.bytes[to] = 8;
        requests[to].receive.bytes[from] = 8;
    }
    const std::vector<Schedule> schedules = test::programs(requests, bodies);
    const SwitchTree links = network();
    return std::string(verify(schedules, requests, nullptr, nullptr, &links).message());
}

constexpr std::string_view kReceivers = "rank\n recv from 0 output[0:8]\n"
                                        "rank\n recv from 1 output[0:8]\n";

} // namespace

TEST_CASE("graph: paths in a network go up and down", "[graph][network]") {
    const SwitchTree links = network();
    REQUIRE(check(links, 4).ok());
    std::vector<Edge> path;
    find_path(links, 0, 1, path);
    CHECK(path == std::vector<Edge>{{2, false}, {3, true}});
    find_path(links, 0, 3, path);
    CHECK(path == std::vector<Edge>{{2, false}, {1, true}, {5, true}});
    find_path(links, 2, 1, path);
    CHECK(path == std::vector<Edge>{{4, false}, {1, false}, {3, true}});
    CHECK(describe(links, path[1]) == "b -> a");
    CHECK(describe(links, path[2]) == "a -> m1");
    find_path(links, 2, 2, path);
    CHECK(path.empty());
}

TEST_CASE("graph: what is no network for the ranks is refused", "[graph][network]") {
    SwitchTree links = network();
    CHECK(check(links, 3).message() == "the network is for 4 ranks, there are 3");
    links.node_of[1] = 6;
    CHECK(check(links, 4).message() == "rank 1 is at node 6 of the network, which has 6");
    links.nodes[1].parent = 1;
    CHECK(check(links, 4).message() == "node 1 of the network, b, has parent 1: a parent comes "
                                       "before its children");
}

TEST_CASE("graph: verify rejects messages that may meet on a link", "[graph][verify][network]") {
    CHECK(gather(fmt::format("rank\n send to 2 input[0:8]\nrank\n send to 3 input[0:8]\n{}",
                             kReceivers)) ==
          "rank 0, op 0 (send to 2 input[0:8]): contention: may meet the message of rank 1, op 0 "
          "(send to 3 input[0:8]) on a -> b");
}

TEST_CASE("graph: verify accepts messages that are ordered by their sources",
          "[graph][verify][network]") {
    CHECK(gather(fmt::format("rank\n send to 2 input[0:8]\n signal 1 after 0\n"
                             "rank\n await 0\n send to 3 input[0:8] after 0\n{}",
                             kReceivers))
              .empty());
}

TEST_CASE("graph: a message without bytes meets none", "[graph][verify][network]") {
    CHECK(gather("rank\n send to 2 input[0:8]\n signal 1 after 0\n send to 3 input[0:0]\n"
                 "rank\n await 0\n send to 3 input[0:8] after 0\n"
                 "rank\n recv from 0 output[0:8]\n"
                 "rank\n recv from 0 output[0:0]\n recv from 1 output[0:8]\n")
              .empty());
}

TEST_CASE("graph: verify accepts messages that are ordered by a destination",
          "[graph][verify][network]") {
    CHECK(gather("rank\n send to 2 input[0:8]\n"
                 "rank\n await 2\n send to 3 input[0:8] after 0\n"
                 "rank\n recv from 0 output[0:8]\n signal 1 after 0\n"
                 "rank\n recv from 1 output[0:8]\n")
              .empty());
}

TEST_CASE("graph: a signal before the message has gone orders nothing",
          "[graph][verify][network]") {
    CHECK(gather(fmt::format("rank\n send to 2 input[0:8]\n signal 1\n"
                             "rank\n await 0\n send to 3 input[0:8] after 0\n{}",
                             kReceivers))
              .find("contention") != std::string::npos);
}

namespace {

/// What verify says of messages from rank 0 to rank 1, one byte each, all of which pass two edges.
/// Message i depends on the messages that after[i] names.
std::string stream(std::uint32_t at_once, const std::vector<std::string>& after) {
    Request alltoallv;
    alltoallv.collective = Collective::alltoallv;
    alltoallv.rank_count = 4;
    const Blocks none{{0, 0, 0, 0}, {0, 0, 0, 0}};
    alltoallv.send = none;
    alltoallv.receive = none;
    std::vector<Request> requests(4, alltoallv);
    requests[0].send.bytes[1] = after.size();
    requests[1].receive.bytes[0] = after.size();
    std::string bodies = "rank\n";
    for (std::size_t i = 0; i < after.size(); ++i) {
        bodies += fmt::format(" send to 1 input[{}:{}]{}\n", i, i + 1, after[i]);
    }
    bodies += "rank\n";
    for (std::size_t i = 0; i < after.size(); ++i) {
        bodies += fmt::format(" recv from 0 output[{}:{}]\n", i, i + 1);
    }
    bodies += "rank\nrank\n";
    SwitchTree links = network();
    links.at_once = at_once;
    const std::vector<Schedule> schedules = test::programs(requests, bodies);
    return std::string(verify(schedules, requests, nullptr, nullptr, &links).message());
}

} // namespace

TEST_CASE("graph: verify counts the messages that may be on a link at a time",
          "[graph][verify][network]") {
    const std::vector<std::string> two_rows = {"", "", " after 0", " after 1", " after 2"};
    CHECK(stream(2, two_rows).empty());
    CHECK(stream(3, two_rows).empty());
    CHECK(stream(1, two_rows).find("contention: may meet the message of") != std::string::npos);
    const std::vector<std::string> three_rows = {"", "", " after 0", " after 0", " after 1"};
    CHECK(stream(3, three_rows).empty());
    CHECK(
        stream(2, three_rows).find("contention: may meet 2 other messages at a time on m0 -> a") !=
        std::string::npos);
}

TEST_CASE("graph: verify finds rows that the first message behind each does not give",
          "[graph][verify][network]") {
    // Message 2 follows 0 or 1, and leaves 0 to message 3, which has no other place.
    CHECK(stream(2, {"", "", " after 0 1", " after 0"}).empty());
    CHECK(stream(2, {"", "", " after 0 1", " after 1"}).empty());
    // Message 5 takes the place of 3 behind 0, which takes that of 4 behind 1, which follows 2.
    CHECK(stream(3, {"", "", "", " after 0 1", " after 1 2", " after 0"}).empty());
    CHECK_FALSE(stream(3, {"", "", "", " after 0 1", " after 0 1", " after 0 1"}).empty());
}

} // namespace ucg::graph
