// Reads the files in test/topologies, which the test of tools/vcluster's reader reads as well.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "test/support/catch.hpp"
#include "test/unit/topo/clusters.hpp"
#include "topo/cluster_file.hpp"
#include "topo/host_list.hpp"
#include "topo/rate_text.hpp"

using namespace ucg;
using namespace ucg::topo;
using namespace ucg::topo::test;

namespace {

const std::filesystem::path kTopologies = UCG_SOURCE_ROOT "/test/topologies";

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.good());
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<std::filesystem::path> files_in(const char* folder, const char* extension) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(kTopologies / folder)) {
        if (entry.path().extension() == extension) {
            files.push_back(entry.path());
        }
    }
    return files;
}

std::string refusal(const Result<Cluster>& result) {
    REQUIRE_FALSE(result.ok());
    std::string message(result.status().message());
    const bool is_block = message.find("topology/block") != std::string::npos;
    CHECK(result.status().code() == (is_block ? Code::unsupported : Code::invalid_argument));
    return message;
}

std::vector<std::string> expand(std::string_view text) {
    Result<std::vector<std::string>> names = expand_host_list(text);
    REQUIRE(names.ok());
    return *names;
}

std::string compressed(const std::vector<std::string>& names) {
    const std::vector<std::string_view> views(names.begin(), names.end());
    return host_list(views);
}

/// A random tree as Slurm can have it: machines below the lowest switches alone, at least one below
/// each of these, and links of one rate below each switch.
Cluster random_slurm_cluster(std::mt19937_64& random) {
    static constexpr std::array<std::uint64_t, 5> kRates = {0, 1000, 187'500, 12'500'000,
                                                            1'250'000'000};
    const std::size_t switches = 1 + random() % 9;
    std::vector<std::uint64_t> below;
    std::vector<bool> is_lowest(switches, true);
    std::vector<ClusterNode> nodes = {network_switch("s0", kNoNode)};
    for (std::size_t i = 0; i < switches; ++i) {
        below.push_back(kRates[random() % kRates.size()]);
        if (i > 0) {
            const auto above = static_cast<std::uint32_t>(random() % i);
            is_lowest[above] = false;
            nodes.push_back(network_switch(fmt::format("s{}", i), above, below[above]));
        }
    }
    for (std::uint32_t i = 0; i < switches; ++i) {
        for (std::uint64_t left = is_lowest[i] ? 1 + random() % 4 : 0; left > 0; --left) {
            nodes.push_back(machine(fmt::format("n{}", nodes.size()), i, below[i]));
        }
    }
    return Cluster(std::move(nodes));
}

} // namespace

TEST_CASE("cluster files: both formats of a good cluster are one value", "[topo][cluster]") {
    const auto files = files_in("good", ".conf");
    CHECK(files.size() >= 8);
    for (std::filesystem::path file : files) {
        INFO(file);
        const Result<Cluster> slurm = parse_cluster(read(file));
        INFO(slurm.status().message());
        REQUIRE(slurm.ok());
        const std::string json = to_json_text(*slurm);
        REQUIRE(json == read(file.replace_extension(".json")));
        const Result<Cluster> again = parse_cluster(json);
        REQUIRE(again.ok());
        CHECK(*again == *slurm);
    }
}

TEST_CASE("cluster files: what is wrong is refused with line and reason", "[topo][cluster]") {
    // The key is the file; the value is "line L: " and words of the reason.
    std::map<std::string, std::string> expected;
    std::istringstream table(read(kTopologies / "bad/refused.tsv"));
    for (std::string line; std::getline(table, line);) {
        if (line[0] != '#') {
            std::istringstream fields(line);
            std::string file;
            std::string number;
            std::string words;
            std::getline(fields, file, '\t');
            std::getline(fields, number, '\t');
            std::getline(fields, words);
            expected[file] = words;
            INFO(file);
            const std::string message = refusal(parse_cluster(read(kTopologies / "bad" / file)));
            INFO(message);
            CHECK(message.rfind(fmt::format("line {}: ", number), 0) == 0);
            CHECK(message.find(words) != std::string::npos);
        }
    }
    CHECK(expected.size() == files_in("bad", ".conf").size() + files_in("bad", ".json").size());
}

TEST_CASE("cluster files: several trees are for those who ask for them", "[topo][cluster]") {
    const auto forest_of = [](const char* file) {
        Result<Cluster> forest = parse_cluster(read(kTopologies / file), 0, Trees::several);
        INFO(forest.status().message());
        REQUIRE(forest.ok());
        CHECK(forest->is_forest());
        CHECK(forest->switch_count() == 2);
        return std::move(*forest);
    };
    CHECK(forest_of("bad/forest.json").machine_count() == 1);
    const Cluster forest = forest_of("bad/forest.conf");
    REQUIRE(forest.machine_count() == 2);
    CHECK(forest.node(forest.tree_of_machine(0)).name == "s0");
    CHECK(forest.node(forest.tree_of_machine(1)).name == "s1");
    CHECK(forest.pruned(std::vector<std::uint32_t>{0, 1}) == forest);
    const Cluster second = forest.pruned(std::vector<std::uint32_t>{1});
    CHECK_FALSE(second.is_forest());
    CHECK(second.node(0).name == "s1");
    CHECK(second.machine_name(0) == "n1");
    const Result<Cluster> tree = parse_cluster("SwitchName=s0 Nodes=n[0-1]", 0, Trees::several);
    REQUIRE(tree.ok());
    CHECK_FALSE(tree->is_forest());
    CHECK(*tree == *parse_cluster("SwitchName=s0 Nodes=n[0-1]"));
    const auto refused = [](std::string_view text) {
        return refusal(parse_cluster(text, 0, Trees::several));
    };
    CHECK(refused("SwitchName=s0 Nodes=n0\nSwitchName=s1 Nodes=n0").rfind("line 2: ", 0) == 0);
    CHECK(refused("SwitchName=s0 Nodes=n0\nSwitchName=s1 Switches=s1") ==
          "line 2: the switches form a ring: s1");
}

TEST_CASE("cluster files: any tree is written and read back", "[topo][cluster]") {
    std::mt19937_64 random(17);
    int refused = 0;
    for (int i = 0; i < 200; ++i) {
        const Cluster cluster = random_cluster(random, static_cast<std::uint32_t>(1 + random() % 9),
                                               static_cast<std::uint32_t>(1 + random() % 15));
        const Result<Cluster> json = parse_cluster(to_json_text(cluster));
        REQUIRE(json.ok());
        CHECK(*json == cluster);
        refused += to_slurm_topology(cluster).status().code() == Code::unsupported ? 1 : 0;
        const Cluster even = random_slurm_cluster(random);
        const Result<std::string> text = to_slurm_topology(even);
        REQUIRE(text.ok());
        INFO(*text);
        // The unit that the file names counts before the one given.
        for (const std::uint64_t unit : {0, 125'000'000}) {
            const Result<Cluster> slurm = parse_slurm_topology(*text, unit);
            REQUIRE(slurm.ok());
            CHECK(*slurm == even);
        }
    }
    CHECK(refused > 0);
}

TEST_CASE("cluster files: Slurm gets whole numbers, and a comment names their unit",
          "[topo][cluster]") {
    const auto written = [](std::uint64_t rate, std::uint64_t other) {
        const Result<std::string> text = to_slurm_topology(
            Cluster({network_switch("top", kNoNode), network_switch("s0", 0, rate),
                     machine("n0", 1, other), machine("n1", 1, other)}));
        return text.ok() ? *text : std::string(text.status().message());
    };
    CHECK(written(1'250'000'000, 125'000'000) ==
          "# UCG: LinkSpeed is in Mbit/s\nSwitchName=top Switches=s0 LinkSpeed=10000\n"
          "SwitchName=s0 Nodes=n[0-1] LinkSpeed=1000\n");
    CHECK(written(0, 187'500) == "# UCG: LinkSpeed is in kbit/s\nSwitchName=top Switches=s0\n"
                                 "SwitchName=s0 Nodes=n[0-1] LinkSpeed=1500\n");
    CHECK(written(0, 0) == "SwitchName=top Switches=s0\nSwitchName=s0 Nodes=n[0-1]\n");
    CHECK(written(kRateMax, kRateMax).find("LinkSpeed=1000000000\n") != std::string::npos);
    CHECK(written(0, 1001).find("in no one unit") != std::string::npos);
    CHECK(written(kRateMax, kRateMin).find("in no one unit") != std::string::npos);
    const auto refused = [](const Cluster& cluster) {
        const Result<std::string> text = to_slurm_topology(cluster);
        CHECK(text.status().code() == Code::unsupported);
        return std::string(text.status().message());
    };
    CHECK(refused(figure1(0)) ==
          "switch 's1' has both machines and switches, which Slurm refuses; write JSON");
    CHECK(refused(Cluster({network_switch("s0", kNoNode), network_switch("s1", 0),
                           network_switch("s2", 0), machine("n0", 1)})) ==
          "switch 's2' has nothing below it, which Slurm refuses; write JSON");
}

TEST_CASE("cluster files: a chain of switches may be deep", "[topo][cluster]") {
    std::string text = "SwitchName=s0 Nodes=n0\n";
    for (int i = 1; i < 20'000; ++i) {
        text += fmt::format("SwitchName=s{} Switches=s{}\n", i, i - 1);
    }
    const Result<Cluster> cluster = parse_cluster(text);
    REQUIRE(cluster.ok());
    CHECK(cluster->node_count() == 20'001);
    CHECK(*parse_cluster(to_json_text(*cluster)) == *cluster);
}

TEST_CASE("cluster files: LinkSpeed without a unit counts by the one given", "[topo][cluster]") {
    const std::string_view text = "SwitchName=s0 Nodes=n0 LinkSpeed=40";
    CHECK(parse_slurm_topology(text)->node(1).rate == 0);
    CHECK(parse_slurm_topology(text, 125'000)->node(1).rate == 5'000'000);
    CHECK(refusal(parse_slurm_topology(text, 20)).find("8kbit") != std::string::npos);
    CHECK(refusal(parse_slurm_topology(text, kRateMax)).find("1000tbit") != std::string::npos);
}

TEST_CASE("host list: names come in the order written", "[topo][cluster]") {
    using Names = std::vector<std::string>;
    CHECK(expand("n0") == Names{"n0"});
    CHECK(expand("n[0-1,5],login") == Names{"n0", "n1", "n5", "login"});
    CHECK(expand("n[08-10]") == Names{"n08", "n09", "n10"});
    CHECK(expand("r[0-1]n[0-1]x") == Names{"r0n0x", "r0n1x", "r1n0x", "r1n1x"});
    CHECK(expand("[3]") == Names{"3"});
    CHECK(expand("n[0-65535]").size() == 65536);
}

TEST_CASE("host list: is as short as ranges make it, and reads back", "[topo][cluster]") {
    CHECK(compressed({"n0", "n1", "n2", "n7", "x"}) == "n[0-2,7],x");
    CHECK(compressed({"n8", "n9", "n10", "n11"}) == "n[8-11]");
    CHECK(compressed({"n08", "n09", "n10"}) == "n[08-10]");
    CHECK(compressed({"n10", "n9"}) == "n[10,9]");
    CHECK(compressed({"n0", "n00", "n1"}) == "n[0,00,1]");
    CHECK(compressed({"n9", "m10", "n10"}) == "n9,m10,n10");
    CHECK(compressed({"x", "x1", "x2"}) == "x,x[1-2]");
    CHECK(compressed({}).empty());
    std::mt19937_64 random(18);
    for (int i = 0; i < 500; ++i) {
        std::vector<std::string> names;
        for (std::uint64_t n = 1 + random() % 12; n > 0; --n) {
            names.push_back(fmt::format("{}{:0{}}", random() % 4 == 0 ? "a" : "n", random() % 12,
                                        1 + random() % 2));
        }
        INFO(compressed(names));
        CHECK(expand(compressed(names)) == names);
    }
}

TEST_CASE("rates: files count in bits", "[topo][cluster]") {
    CHECK(*parse_rate("100mbit") == 12'500'000);
    CHECK(*parse_rate("1.5Mbit") == 187'500);
    CHECK(*parse_rate("1gbps") == 1'000'000'000);
    CHECK(*parse_rate("8000bit") == 1000);
    for (const char* bad : {"", "100", "mbit", "1gbit/s", "-1mbit", ".5gbit", "5.gbit", "1bit",
                            "1e3mbit", "1xbit", "1kmbit", "inf", "nan", "0x1kbit", "2000tbit"}) {
        CHECK_FALSE(parse_rate(bad).ok());
    }
    std::mt19937_64 random(19);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t rate = 1000 + random() % (kRateMax - 1000);
        CHECK(*parse_rate(rate_text(rate)) == rate);
    }
    CHECK(rate_text(12'500'000) == "100mbit");
    CHECK(rate_text(1001) == "8008bit");
    CHECK(format_rate(12'500'000) == "100 Mbit/s");
    CHECK(format_rate(41'666'666.7) == "333.3 Mbit/s");
    CHECK(format_rate(0) == "unknown");
}
