// Timelines and program graphs of small cases, in all the forms in which they are printed.
#include <algorithm>
#include <array>

#include "test/support/catch.hpp"
#include "test/unit/sim/support.hpp"

using namespace ucg;
using namespace ucg::test;

namespace {

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + part.size())) {
        ++found;
    }
    return found;
}

std::size_t count(const sim::TaskGraph& graph, sim::Task::Kind kind) {
    return static_cast<std::size_t>(
        std::count_if(graph.tasks.begin(), graph.tasks.end(),
                      [&](const sim::Task& task) { return task.kind == kind; }));
}

constexpr std::array<std::uint32_t, 2> kSixRanks = {3, 2};

} // namespace

TEST_CASE("sim: a timeline as text", "[sim][timeline]") {
    const std::array<std::uint32_t, 1> pair = {2};
    sim::Options options = options_of(kPaper);
    options.arrival_ns = {0, 50};
    sim::Trace trace;
    const auto schedules = multi_way_exchange(pair, 8);
    const sim::Outcome outcome = simulated(schedules, options, 1, &trace);
    CHECK(sim::timeline_text(outcome, trace) ==
          "rank 0  0 .. 103.2 ns  send to 1, 8 bytes, arrives at 503.2 ns (op 1)\n"
          "rank 0  0 .. 553.2 ns  wait (op 2)\n"
          "rank 0  553.2 .. 563.2 ns  reduce (op 2)\n"
          "rank 0  done at 563.2 ns\n"
          "rank 1  0 .. 50 ns  late (op 0)\n"
          "rank 1  50 .. 153.2 ns  send to 0, 8 bytes, arrives at 553.2 ns (op 1)\n"
          "rank 1  50 .. 503.2 ns  wait (op 2)\n"
          "rank 1  503.2 .. 513.2 ns  reduce (op 2)\n"
          "rank 1  done at 513.2 ns\n");
}

TEST_CASE("sim: a timeline as SVG can be read alone", "[sim][timeline]") {
    sim::Trace trace;
    const sim::Outcome outcome =
        simulated(multi_way_exchange(kSixRanks, 8), options_of(kPaper), 1, &trace);
    const std::string svg = sim::timeline_svg(outcome, trace, topo::Placement::one_host(6),
                                              {"six <ranks>", "prices & more"});
    CHECK(svg.find("six &lt;ranks&gt;") != std::string::npos);
    CHECK(svg.find("prices &amp; more") != std::string::npos);
    CHECK(svg.find(">time in ns<") != std::string::npos);
    for (Rank rank = 0; rank < 6; ++rank) {
        CHECK(count(svg, fmt::format(">rank {}</text>", rank)) == 1);
    }
    CHECK(count(svg, "marker-end") == outcome.message_count);
    for (const char* label : {">waits<", ">combines<", ">message leaves<", ">message in flight<"}) {
        CHECK(count(svg, label) == 1);
    }
    // The legend has only what occurs in the picture.
    CHECK(count(svg, ">takes a message in<") == 0);
    CHECK(count(svg, "<g") == count(svg, "</g>"));
    CHECK(count(svg, "class=\"host\"") == 0);
    CHECK(count(svg, ">between hosts<") == 0);
    CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
}

TEST_CASE("sim: a timeline of several hosts", "[sim][timeline]") {
    const topo::Placement placement(std::vector<topo::Place>{
        {.host = 0}, {.host = 0}, {.host = 1}, {.host = 0}, {.host = 1}, {.host = 1}});
    sim::Trace trace;
    const sim::Outcome outcome =
        simulated(multi_way_exchange(kSixRanks, 8), placement, options_of(kPaper), 1, &trace);
    const std::string svg = sim::timeline_svg(outcome, trace, placement, {"six", "ranks"});
    // There is a band for each run of ranks of one host.
    CHECK(count(svg, "class=\"host\"") == 4);
    CHECK(count(svg, ">host 0</text>") == 2);
    CHECK(count(svg, ">host 1</text>") == 2);
    CHECK(count(svg, ">between hosts<") == 1);
    // Arrows have their senders' colours, and arrows between hosts are thick.
    std::size_t thick = 0;
    for (const sim::Transfer& transfer : trace.transfers) {
        thick += placement.same_host(transfer.from, transfer.to) ? 0 : 1;
    }
    CHECK(count(svg, "stroke-width=\"2\" marker-end") == thick);
    for (Rank rank = 0; rank < 6; ++rank) {
        CHECK(count(svg, fmt::format("url(#head{})", rank)) == outcome.message_count / 6);
    }
}

TEST_CASE("sim: titles of timelines are broken where the picture ends", "[sim][timeline]") {
    sim::Trace trace;
    const sim::Outcome outcome =
        simulated(multi_way_exchange(kSixRanks, 8), options_of(kPaper), 1, &trace);
    std::string title = "blocks of ";
    for (int bytes = 1000; bytes < 1100; ++bytes) {
        title += fmt::format("{},", bytes);
    }
    const std::string file(300, 'f');
    const std::string svg =
        sim::timeline_svg(outcome, trace, topo::Placement::one_host(6), {title, file});
    CHECK(svg.find("width=\"1") != std::string::npos); // The picture is some 1100 pixels wide.
    std::string shown;
    for (std::size_t at = svg.find("<text x=\"16\""); at != std::string::npos;
         at = svg.find("<text x=\"16\"", at + 1)) {
        const std::size_t begin = svg.find('>', at) + 1;
        const std::string line = svg.substr(begin, svg.find('<', begin) - begin);
        CHECK(line.size() < 1100 / 6);
        shown += line;
    }
    CHECK(shown == title + file);
}

TEST_CASE("sim: the program graph of figure 17", "[sim][tasks]") {
    sim::Options options = options_of(kPaper);
    const auto schedules = multi_way_exchange(kSixRanks, 8);
    const sim::TaskGraph graph = sim::task_graph(schedules, options);
    CHECK(count(graph, sim::Task::Kind::start) == 6);
    CHECK(count(graph, sim::Task::Kind::put) == 6 * (2 + 1));
    CHECK(count(graph, sim::Task::Kind::proxy) == 6 * (2 + 1));
    CHECK(count(graph, sim::Task::Kind::compute) == 6 * 2);
    CHECK(count(graph, sim::Task::Kind::sleep) == 0);
    // Each put is joined to one proxy of the rank that it goes to.
    for (const sim::TaskGraph::Edge& edge : graph.edges) {
        const sim::Task& before = graph.tasks[edge.before];
        const sim::Task& after = graph.tasks[edge.after];
        if (before.rank != after.rank) {
            CHECK(before.kind == sim::Task::Kind::put);
            CHECK(after.kind == sim::Task::Kind::proxy);
            CHECK(before.peer == after.rank);
            CHECK(after.peer == before.rank);
            CHECK(before.bytes == after.bytes);
        }
    }
    // A rank that comes late sleeps after its start.
    options.arrival_ns = {0, 0, 70, 0, 0, 0};
    const sim::TaskGraph late = sim::task_graph(schedules, options);
    CHECK(count(late, sim::Task::Kind::sleep) == 1);
    CHECK(sim::to_text(late).find("sleep 70 ns, rank 2, after ") != std::string::npos);
    const std::string dot = sim::to_dot(late);
    CHECK(count(dot, "subgraph cluster_") == 6);
    CHECK(count(dot, "label=\"S\"") == 6);
    CHECK(count(dot, " -> ") == late.edges.size());
}

TEST_CASE("sim: a program graph as text", "[sim][tasks]") {
    const std::array<std::uint32_t, 1> pair = {2};
    CHECK(sim::to_text(sim::task_graph(multi_way_exchange(pair, 8), options_of(kPaper))) ==
          "task 0: start, rank 0\n"
          "task 1: proxy from 1, 8 bytes, rank 0, after 6\n"
          "task 2: put to 1, 8 bytes, rank 0, after 0\n"
          "task 3: compute 10 ns, 8 bytes, rank 0, after 1\n"
          "task 4: start, rank 1\n"
          "task 5: proxy from 0, 8 bytes, rank 1, after 2\n"
          "task 6: put to 0, 8 bytes, rank 1, after 4\n"
          "task 7: compute 10 ns, 8 bytes, rank 1, after 5\n");
}

TEST_CASE("sim: flag slots in pictures", "[sim][timeline][tasks][flag_slots]") {
    // One rank shares eight bytes, and the other copies them.
    const char* const texts[] = {
        "schedule bcast flag_slots rank 0 of 2 input 8 output 0 scratch 0 element 1 flag_slot 8\n"
        "0: share input[0:8]\n",
        "schedule bcast flag_slots rank 1 of 2 input 0 output 8 scratch 0 element 1 flag_slot 0\n"
        "0: copy flag_slot@0[0:8] -> output[0:8]\n"};
    std::vector<graph::Schedule> schedules;
    for (const char* text : texts) {
        const Result<graph::Schedule> schedule = graph::parse_text(text);
        INFO(schedule.status().message());
        REQUIRE(schedule.ok());
        schedules.push_back(*schedule);
    }
    sim::Options options;
    options.network = cost::LogGp{.latency_ns = 100, .overhead_ns = 20};
    options.compute.copy_ns_per_byte = 1;
    options.memory.model = {};
    options.memory.model.levels[static_cast<std::size_t>(topo::Distance::host)].per_byte_ns = 0.5;
    sim::Trace trace;
    const sim::Outcome outcome = simulated(schedules, options, 1, &trace);
    CHECK(sim::timeline_text(outcome, trace) ==
          "rank 0  0 .. 20 ns  share (op 0)\n"
          "rank 0  done at 20 ns\n"
          "rank 1  0 .. 120 ns  wait (op 0)\n"
          "rank 1  120 .. 152 ns  poll (op 0)\n"
          "rank 1  120 .. 152 ns  flag slot of 0, 8 bytes, shared at 20 ns (its op 0)\n"
          "rank 1  152 .. 160 ns  copy (op 0)\n"
          "rank 1  done at 160 ns\n");
    const std::string svg =
        sim::timeline_svg(outcome, trace, topo::Placement::one_host(2), {"flag_slot", ""});
    for (const char* label :
         {">takes flag slots in<", ">shares on its flag slot<", ">flag slot read<"}) {
        INFO(label);
        CHECK(count(svg, label) == 1);
    }
    CHECK(count(svg, "marker-end") == 1);
    CHECK(count(svg, ">message leaves<") == 0);
    const sim::TaskGraph graph = sim::task_graph(schedules, options);
    CHECK(sim::to_text(graph) == "task 0: start, rank 0\n"
                                 "task 1: share, 8 bytes, rank 0, after 0\n"
                                 "task 2: start, rank 1\n"
                                 "task 3: compute 8 ns, 8 bytes, rank 1, after 2 1\n");
}
