// The models against the paper's Table 1, and the forms of the results: text, JSON, bars.
#include "perf/perftest/breakdown/bars.hpp"
#include "perf/perftest/breakdown/breakdown.hpp"
#include "perf/perftest/breakdown/model.hpp"
#include "perf/perftest/breakdown/mpi.hpp"
#include "perf/perftest/breakdown/report.hpp"
#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/breakdown/what_if.hpp"
#include "test/support/catch.hpp"

using namespace ucg::perftest::breakdown;

namespace {

Component component(const char* name, Category category, double ns) {
    return {.name = name, .category = category, .ns = ns};
}

// The components of the paper's Table 1.
const Component kPost = component("LLP_post", Category::llp, 175.42);
const Component kProgress = component("LLP_prog", Category::llp, 61.63);
const Component kBusyPost = component("Busy post", Category::misc, 8.99);
const Component kUpdate = component("Measurement update", Category::misc, 49.69);
const Component kPcie = component("PCIe", Category::io, 137.49);
const Component kWire = component("Wire", Category::network, 274.81);
const Component kSwitch = component("Switch", Category::network, 108);
const Component kToMemory = component("RC-to-MEM(8B)", Category::io, 240.96);
const Component kHlpPost = component("HLP_post", Category::hlp, 24.37 + 2.19);
/// Both callbacks, and the time that remains in MPI after UCP's progress (section 6).
const Component kHlpRxProgress = component("HLP_rx_prog", Category::hlp, 47.99 + 139.78 + 36.89);

LatencyParts paper_latency() {
    return {.post = {kPost},
            .path = {{kPcie, 2}, {kWire}, {kSwitch}, {kToMemory}},
            .progress = {kProgress}};
}

Findings findings() {
    Component odd = component("a <part> & \"more\"", Category::network, 12.5);
    odd.deviation_ns = 0.25;
    odd.samples = 100;
    odd.note = "by hand";
    const Comparison comparison = {{"Latency", {{kPost}, {odd, 2}}},
                                   component("observed", Category::llp, 210),
                                   {{component("overlap", Category::misc, 9.58)}}};
    return {.facts = {{"processor", "one"}, {"transport", "posix/memory"}},
            .sections = {{"UCT", {kPost, odd}, {comparison}, {"a note"}}}};
}

int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "breakdown");
    return ucg::perftest::breakdown_main(static_cast<int>(arguments.size()), arguments.data());
}

} // namespace

TEST_CASE("breakdown: equation 1 gives the paper's injection overhead", "[perftest][breakdown]") {
    const TimeModel model = injection_model(
        "Inj_overhead",
        {.post = {kPost}, .progress = {kProgress}, .misc = {{kBusyPost}, {kUpdate}}});
    CHECK(model.total_ns() == Approx(295.73));
    CHECK(model.total_ns(Category::misc) == Approx(58.68));
    CHECK(error_of(model.total_ns(), 282.33) < 0.05);
}

TEST_CASE("breakdown: equation 2 gives the overall injection overhead", "[perftest][breakdown]") {
    // Less than a nanosecond of Post_prog is spent in the LLP: there is one completion for 64
    // messages.
    const double llp = 61.63 / 64;
    const InjectionParts parts = {
        .post = {kHlpPost, kPost},
        .progress = {component("LLP_prog", Category::llp, llp),
                     component("HLP_tx_prog", Category::hlp, 59.82 - llp)},
        .misc = {{component("Busy posts", Category::misc, 3.17)}}};
    const TimeModel model = injection_model("Inj_overhead", parts);
    CHECK(model.total_ns() == Approx(264.97));
    CHECK(error_of(model.total_ns(), 263.91) < 0.01);
    // Section 7: the gain when either level takes a fifth less.
    const auto gained = [&](Category category) {
        return improvement(model.total_ns(), with_reduction(model, category, 0.2).total_ns());
    };
    CHECK(gained(Category::hlp) == Approx(0.0644).margin(0.0005));
    CHECK(gained(Category::llp) == Approx(0.1333).margin(0.0005));
}

TEST_CASE("breakdown: completions are shared among messages", "[perftest][breakdown]") {
    InjectionParts parts = {
        .post = {kPost}, .progress = {kProgress}, .messages_per_completion = 64, .misc = {}};
    CHECK(injection_model("", parts).total_ns() == Approx(175.42 + 61.63 / 64));
    parts.messages_per_completion = 0;
    CHECK(injection_model("", parts).total_ns() == Approx(175.42));
    // gen_completion = 2 (PCIe + Network) + RC-to-MEM(64B), here with the time of 8 bytes.
    CHECK(posts_per_poll_min(2 * (137.49 + 382.81) + 240.96, 175.42) == 8);
    CHECK(posts_per_poll_min(0, 175.42) == 0);
}

TEST_CASE("breakdown: the latency of the low level, and end to end", "[perftest][breakdown]") {
    LatencyParts parts = paper_latency();
    const TimeModel low = latency_model("Latency", parts);
    CHECK(low.total_ns() == Approx(1135.8));
    CHECK(error_of(low.total_ns(), 1190.25) == Approx(-0.0457).margin(0.0001));
    parts.post.insert(parts.post.begin(), kHlpPost);
    parts.progress.push_back(kHlpRxProgress);
    const TimeModel whole = latency_model("Latency", parts);
    CHECK(whole.total_ns() == Approx(1387.02));
    CHECK(whole.total_ns(Category::network) / whole.total_ns() == Approx(0.276).margin(0.0005));
}

TEST_CASE("breakdown: a reduction is of what is named alone", "[perftest][breakdown]") {
    const TimeModel model = latency_model("Latency", paper_latency());
    const TimeModel faster = with_reduction(model, "Switch", 0.72);
    CHECK(model.total_ns() - faster.total_ns() == Approx(0.72 * 108));
    CHECK(with_reduction(model, "no such part", 0.9).total_ns() == model.total_ns());
    CHECK(with_reduction(model, "Switch", -1).total_ns() == Approx(model.total_ns() + 108));
}

TEST_CASE("breakdown: samples", "[perftest][breakdown]") {
    CHECK(median_of({3, 1, 2}) == 2);
    CHECK(median_of({4, 1, 2, 3}) == 2.5);
    const double tick = undisturbed_mean_ns({1000});
    CHECK(undisturbed_mean_ns({1000, 1000, 1000, 1000000}) == Approx(tick));

    Rounds rounds;
    for (const double near : {50.0, 52.0, 51.0, 200.0}) {
        rounds.add("line", near, 10);
        rounds.add("post", near + 10, 10);
    }
    rounds.add("once", 1, 5);
    CHECK(rounds.keep_like("line") == 3);
    CHECK(rounds.component("post", Category::llp).ns == 61);
    CHECK(rounds.component("post", Category::llp).samples == 30);
    CHECK(rounds.component("once", Category::llp).samples == 5);
    CHECK(rounds.difference("post", "line", "more", Category::llp).ns == 10);
    CHECK(rounds.difference("line", "post", "less", Category::llp).ns == 0);
    CHECK(rounds.keep_like("not measured") == 0);
}

TEST_CASE("breakdown: of rounds in two states, half in each, those of one are left",
          "[perftest][breakdown]") {
    Rounds rounds;
    for (const double line : {20.0, 135.0, 21.0, 134.0}) {
        rounds.add("line", line, 10);
        rounds.add("post", 2 * line, 10);
    }
    CHECK(rounds.keep_like("line") == 2);
    const double mean = rounds.component("post", Category::llp).ns;
    CHECK((mean < 50 || mean > 250));
}

TEST_CASE("breakdown: JSON says all that was found", "[perftest][breakdown]") {
    const Findings before = findings();
    const auto after = parse_findings(json_report(before));
    REQUIRE(after.ok());
    CHECK(json_report(*after) == json_report(before));
    CHECK(text_report(*after) == text_report(before));
    for (const char* wrong :
         {"", "{", "[]", "{\"facts\": {}}", R"({"facts": {}, "sections": [{"title": 1}]})"}) {
        CHECK_FALSE(parse_findings(wrong).ok());
    }
}

TEST_CASE("breakdown: text has models, errors and notes", "[perftest][breakdown]") {
    const std::string text = text_report(findings());
    CHECK(text.find("modelled                                               200.42 ns") !=
          std::string::npos);
    CHECK(text.find("-4.6 %") != std::string::npos);
    CHECK(text.find("missing: overlap") != std::string::npos);
    CHECK(text.find("+0.0 %") != std::string::npos);
    CHECK(text.find("note: a note") != std::string::npos);
}

TEST_CASE("breakdown: bars are whole and escaped", "[perftest][breakdown]") {
    const std::string svg = svg_report(findings());
    CHECK(svg.find("a &lt;part&gt; &amp; &quot;more&quot; 25.0 ns, 12.5 %") != std::string::npos);
    CHECK(svg.find("<part>") == std::string::npos);
    CHECK(svg.ends_with("</svg>\n"));
    // There are two bars: the model, and its categories.
    CHECK(svg.find("UCT, Latency: 200.4 ns") != std::string::npos);
    CHECK(svg.find("UCT, Latency, by category: 200.4 ns") != std::string::npos);
}

TEST_CASE("what-if: curves are the models' own", "[perftest][what_if]") {
    const std::vector<Curve> curves = curves_of(latency_model("Latency", paper_latency()));
    // There is a curve for each term; LLP, I/O and network have two terms each.
    REQUIRE(curves.size() == 6 + 3);
    for (const Curve& curve : curves) {
        REQUIRE(curve.after_ns.size() == kReductions.size());
        CHECK(curve.before_ns == Approx(1135.8));
    }
    // The curve is linear: PCIe counts twice.
    CHECK(curves[1].component == "PCIe");
    CHECK(curves[1].improvement_at(4) == Approx(0.9 * 2 * 137.49 / 1135.8));
    CHECK(curves_svg(curves, "").ends_with("</svg>\n"));
    CHECK(curves_text(curves).find("# all of I/O") != std::string::npos);
}

TEST_CASE("what-if: a collective of messages follows its prices", "[perftest][what_if]") {
    using ucg::graph::Collective;
    const TimeModel latency = latency_model("am_lat", paper_latency());
    const MessagePrices prices = prices_of(latency);
    CHECK(prices.post_ns == Approx(175.42));
    CHECK(prices.progress_ns == Approx(61.63));
    CHECK(prices.post_ns + prices.flight_ns + prices.progress_ns == Approx(1135.8));
    const auto one = simulated_ns(prices, Collective::allreduce, 2, "recursive_doubling");
    const auto three = simulated_ns(prices, Collective::allreduce, 8, "recursive_doubling");
    REQUIRE((one.ok() && three.ok()));
    CHECK(*one == Approx(1135.8).epsilon(0.001));
    CHECK(*three == Approx(3 * 1135.8).epsilon(0.001));
    const auto curves = collective_curves(prices, Collective::allreduce, 8, "recursive_doubling");
    REQUIRE(curves.ok());
    CHECK(curves->at(0).improvement_at(2) == Approx(0.5 * 175.42 / 1135.8).epsilon(0.01));
    CHECK_FALSE(simulated_ns(prices, Collective::allreduce, 8, "no_such").ok());
}

TEST_CASE("what-if: wrong use is told", "[perftest][what_if]") {
    const auto what_if = [](std::vector<const char*> arguments) {
        arguments.insert(arguments.begin(), "what-if");
        return ucg::perftest::what_if_main(static_cast<int>(arguments.size()), arguments.data());
    };
    CHECK(what_if({}) == 2);
    CHECK(what_if({"/no/such/file"}) == 1);
    CHECK(what_if({"/dev/null"}) == 1);
    CHECK(what_if({"/dev/null", "--ranks", "1"}) == 2);
}

TEST_CASE("breakdown: figures of MPI are read", "[perftest][breakdown]") {
    const auto figures = parse_mpi_figures(
        R"({"library": "Some MPI", "samples": 100, "overhead_ns": 20, "isend_ns": 1.5,
            "wait_ns": 2, "window_isend_ns": 3, "window_waitall_ns": 4, "window_ns": 7,
            "latency_ns": 5})");
    REQUIRE(figures.ok());
    CHECK(figures->library == "Some MPI");
    CHECK(figures->isend_ns == 1.5);
    CHECK_FALSE(parse_mpi_figures("").ok());
    CHECK_FALSE(parse_mpi_figures(R"({"library": "Some MPI"})").ok());
    CHECK(run({"--mpi", "/no/such/file"}) == 1);
    CHECK(run({"--mpi", "/dev/null"}) == 1);
}

TEST_CASE("breakdown: wrong use is told", "[perftest][breakdown]") {
    CHECK(run({"-n", "0"}) == 2);
    CHECK(run({"-n", "1", "--rounds", "99"}) == 2); // The paper's least is 100 samples.
    CHECK(run({"-c", "0"}) == 2);
    CHECK(run({"-x", "rc_mlx5"}) == 2); // The devices of this transport have no usual name.
    CHECK(run({"--no-such-option"}) == 2);
    CHECK(run({"-x", "no_such", "-d", "memory", "-n", "10", "--rounds", "10"}) == 1);
    CHECK(run({"--collective", "no_such", "-n", "10", "--rounds", "10"}) == 1);
    CHECK(run({"-x", "tcp", "-d", "no_such", "-n", "10", "--rounds", "10"}) == 1);
    CHECK(run({"-c", "100000,100001", "-n", "10", "--rounds", "10"}) == 1);
}
