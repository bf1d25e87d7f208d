#include <algorithm>
#include <map>
#include <set>

#include "test/support/catch.hpp"
#include "test/unit/topo/clusters.hpp"
#include "topo/cluster.hpp"
#include "topo/cluster_load.hpp"
#include "topo/cluster_map.hpp"

using namespace ucg;
using namespace ucg::topo;
using namespace ucg::topo::test;

namespace {

std::vector<std::string> names_of(const Cluster& cluster) {
    std::vector<std::string> names;
    for (const ClusterNode& node : cluster.nodes()) {
        names.push_back(node.name);
    }
    return names;
}

// The nodes from a node to the root, both included.
std::vector<std::uint32_t> path_up(const Cluster& cluster, std::uint32_t node) {
    std::vector<std::uint32_t> path = {node};
    while (path.back() != 0) {
        path.push_back(cluster.node(path.back()).parent);
    }
    return path;
}

// The links of the path between two machines; each one is named by its lower end.
std::set<std::uint32_t> links_between(const Cluster& cluster, std::uint32_t a, std::uint32_t b) {
    const auto up = path_up(cluster, cluster.node_of_machine(a));
    const auto down = path_up(cluster, cluster.node_of_machine(b));
    std::set<std::uint32_t> links;
    std::set_symmetric_difference(up.rbegin(), up.rend(), down.rbegin(), down.rend(),
                                  std::inserter(links, links.end()));
    return links;
}

void check_order(const Cluster& cluster) {
    std::uint32_t machines = 0;
    for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
        REQUIRE(cluster.find(cluster.node(i).name) == i);
        const std::uint32_t begin = machines;
        for (std::uint32_t j = i; j < cluster.subtree_end(i); ++j) {
            const auto path = path_up(cluster, j);
            REQUIRE(std::find(path.begin(), path.end(), i) != path.end());
        }
        if (cluster.is_machine(i)) {
            REQUIRE(cluster.subtree_end(i) == i + 1);
            REQUIRE(cluster.node_of_machine(machines) == i);
            REQUIRE(cluster.find_machine(cluster.node(i).name) == machines);
            ++machines;
        }
        REQUIRE(cluster.machines_below(i).begin == begin);
        bool seen_switch = false;
        for (const std::uint32_t child : cluster.children(i)) {
            REQUIRE(cluster.node(child).parent == i);
            REQUIRE_FALSE((seen_switch && cluster.is_machine(child)));
            seen_switch = seen_switch || !cluster.is_machine(child);
        }
    }
    REQUIRE(machines == cluster.machine_count());
}

} // namespace

TEST_CASE("cluster: nodes are put in depth-first order, machines first", "[topo][cluster]") {
    const Cluster cluster = figure1();
    CHECK(names_of(cluster) ==
          std::vector<std::string>{"s1", "n5", "s0", "n0", "n1", "n2", "s3", "n3", "n4"});
    CHECK(cluster.machine_count() == 6);
    CHECK(cluster.machine_name(0) == "n5");
    CHECK(cluster.machines_below(2) == Cluster::MachineRange{1, 4});
    CHECK(cluster.children(0) == std::vector<std::uint32_t>{1, 2, 6});
    CHECK(Cluster(cluster.nodes()) == cluster);
    check_order(cluster);
    CHECK(Cluster().empty());
    CHECK(Cluster().machine_count() == 0);
}

TEST_CASE("cluster: subtrees of any tree are ranges", "[topo][cluster]") {
    std::mt19937_64 random(14);
    for (int i = 0; i < 200; ++i) {
        const auto switches = static_cast<std::uint32_t>(1 + random() % 12);
        const Cluster cluster =
            random_cluster(random, switches, static_cast<std::uint32_t>(random() % 20));
        check_order(cluster);
        CHECK(Cluster(cluster.nodes()) == cluster);
    }
}

TEST_CASE("cluster: a chain of switches may be as deep as the tree", "[topo][cluster]") {
    std::vector<ClusterNode> nodes = {network_switch("s0", kNoNode)};
    for (std::uint32_t i = 1; i < 100'000; ++i) {
        nodes.push_back(network_switch("s" + std::to_string(i), i - 1));
    }
    nodes.push_back(machine("n0", 99'999));
    const Cluster cluster(std::move(nodes));
    CHECK(cluster.machines_below(99'999).size() == 1);
    const std::vector<std::uint32_t> all = {0};
    CHECK(names_of(cluster.pruned(all)) == std::vector<std::string>{"s99999", "n0"});
}

TEST_CASE("cluster: hosts are found with and without their domain", "[topo][cluster]") {
    const Cluster cluster({network_switch("s", kNoNode), machine("a", 0),
                           machine("b.example.org", 0), machine("c.one", 0), machine("c.two", 0),
                           machine("a-1", 0)});
    CHECK(cluster.find_machine("a") == 0);
    CHECK(cluster.find_machine("a.example.org") == 0);
    CHECK(cluster.find_machine("b") == 1);
    CHECK(cluster.find_machine("b.example.org") == 1);
    CHECK_FALSE(cluster.find_machine("b.example.com"));
    CHECK(cluster.find_machine("c.two") == 3);
    CHECK_FALSE(cluster.find_machine("c"));
    CHECK(cluster.find_machine("a-1") == 4);
    CHECK_FALSE(cluster.find_machine("s"));
    CHECK_FALSE(cluster.find("nobody"));
    CHECK_FALSE(cluster.find_machine(""));
}

TEST_CASE("cluster: names are those that hosts and switches have", "[topo][cluster]") {
    for (const char* good : {"n0", "S-1", "rack_0.row-7", "0", "_x"}) {
        CHECK(is_cluster_name(good));
    }
    for (const char* bad : {"", "-n", ".n", "a b", "a,b", "a[0]", "a\n", "a\"", "\xc3\xa4", "<"}) {
        CHECK_FALSE(is_cluster_name(bad));
    }
    CHECK(is_cluster_name(std::string(255, 'a')));
    CHECK_FALSE(is_cluster_name(std::string(256, 'a')));
}

TEST_CASE("cluster: pruning leaves what joins the machines", "[topo][cluster]") {
    const Cluster cluster = figure1(7);
    const auto pruned = [&](std::vector<std::uint32_t> machines) {
        return names_of(cluster.pruned(machines));
    };
    using Names = std::vector<std::string>;
    CHECK(pruned({5, 1, 5, 1}) == Names{"s1", "s0", "n0", "s3", "n4"});
    CHECK(pruned({0, 2}) == Names{"s1", "n5", "s0", "n1"});
    CHECK(pruned({4, 5}) == Names{"s3", "n3", "n4"});
    CHECK(pruned({4}) == Names{"s3", "n3"});
    CHECK(pruned({}).empty());
    const std::vector<std::uint32_t> two = {4, 5};
    CHECK(cluster.pruned(two).node(0).rate == 0);
    CHECK(cluster.pruned(two).node(1).rate == 7);
}

TEST_CASE("cluster: pruning keeps the path and the rates between any two", "[topo][cluster]") {
    std::mt19937_64 random(15);
    for (int i = 0; i < 100; ++i) {
        const Cluster cluster = random_cluster(random, 8, 12);
        std::vector<std::uint32_t> job;
        for (std::uint32_t m = 0; m < 12; ++m) {
            if (random() % 3 == 0) {
                job.push_back(m);
            }
        }
        const Cluster pruned = cluster.pruned(job);
        check_order(pruned);
        REQUIRE(pruned.machine_count() == job.size());
        CHECK((job.size() < 2 || pruned.children(0).size() > 1));
        const auto path = [](const Cluster& in, std::uint32_t a, std::uint32_t b) {
            std::map<std::string, std::uint64_t> links;
            for (const std::uint32_t link : links_between(in, a, b)) {
                links[in.node(link).name] = in.node(link).rate;
            }
            return links;
        };
        for (std::uint32_t a = 0; a < job.size(); ++a) {
            REQUIRE(pruned.machine_name(a) == cluster.machine_name(job[a]));
            for (std::uint32_t b = 0; b < a; ++b) {
                REQUIRE(path(pruned, a, b) == path(cluster, job[a], job[b]));
            }
        }
    }
}

TEST_CASE("cluster map: hosts in any order find their machines", "[topo][cluster]") {
    std::mt19937_64 random(20);
    for (int i = 0; i < 50; ++i) {
        const Cluster cluster = random_cluster(random, 5, 10);
        std::vector<std::uint32_t> machines = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        std::shuffle(machines.begin(), machines.end(), random);
        machines.resize(random() % 11);
        const ClusterMap map = map_hosts(cluster, machines);
        CHECK(map.empty() == machines.empty());
        CHECK(map.cluster.machine_count() == machines.size());
        for (std::size_t host = 0; host < machines.size(); ++host) {
            REQUIRE(map.cluster.machine_name(map.machine_of_host[host]) ==
                    cluster.machine_name(machines[host]));
        }
    }
}

TEST_CASE("cluster: the hash tells clusters apart", "[topo][cluster]") {
    const Cluster cluster = figure1(100);
    CHECK(cluster.hash() == figure1(100).hash());
    CHECK(cluster.hash() != figure1(101).hash());
    std::vector<ClusterNode> nodes = cluster.nodes();
    nodes[1].name = "n6";
    CHECK(Cluster(nodes).hash() != cluster.hash());
    CHECK(Cluster().hash() != cluster.hash());
}

TEST_CASE("cluster load: the paper's example has load 9", "[topo][cluster]") {
    const Cluster cluster = figure1(12'500'000);
    const AapcLoad load = aapc_load(cluster);
    CHECK(load.max == 9);
    CHECK(load.by_node == std::vector<std::uint64_t>{0, 5, 9, 5, 5, 5, 8, 5, 5});
    CHECK(load.bottlenecks == std::vector<std::uint32_t>{2});
    CHECK(load.total == 30);
    CHECK(load.rates_known);
    CHECK(load.rates_equal);
    CHECK(load.peak() == Approx(6 * 5 * 12'500'000 / 9.0));
    const AapcLoad unknown = aapc_load(figure1());
    CHECK(unknown.bottlenecks == std::vector<std::uint32_t>{2});
    CHECK(unknown.peak() == 0);
    CHECK_FALSE(unknown.rates_known);
}

TEST_CASE("cluster load: the slowest for its load is the bottleneck", "[topo][cluster]") {
    std::vector<ClusterNode> nodes = figure1(1000).nodes();
    nodes[1].rate = 100; // The load of n5 is 5.
    const AapcLoad load = aapc_load(Cluster(nodes));
    CHECK(load.max == 9);
    CHECK(load.bottlenecks == std::vector<std::uint32_t>{1});
    CHECK(load.seconds_per_byte == Approx(0.05));
    CHECK(load.peak() == Approx(600));
    CHECK(load.rates_known);
    CHECK_FALSE(load.rates_equal);
    nodes[2].rate = 0;
    const AapcLoad partly = aapc_load(Cluster(nodes));
    CHECK_FALSE(partly.rates_known);
    CHECK(partly.peak() == Approx(600));
}

TEST_CASE("cluster load: counts what a brute force over all pairs counts", "[topo][cluster]") {
    std::mt19937_64 random(16);
    for (int i = 0; i < 100; ++i) {
        const Cluster cluster = random_cluster(random, 6, 9);
        std::vector<std::uint32_t> ranks;
        for (int m = 0; m < 9; ++m) {
            ranks.push_back(static_cast<std::uint32_t>(random() % 4));
        }
        std::vector<std::uint64_t> counted(cluster.node_count(), 0);
        std::uint64_t total = 0;
        for (std::uint32_t a = 0; a < 9; ++a) {
            for (std::uint32_t b = 0; b < 9; ++b) {
                const std::uint64_t messages = std::uint64_t{ranks[a]} * ranks[b];
                total += a == b ? 0 : messages;
                // Each unordered pair is met twice, once for each direction; the sum is halved
                // below.
                for (const std::uint32_t link : links_between(cluster, a, b)) {
                    counted[link] += messages;
                }
            }
        }
        const AapcLoad load = aapc_load(cluster, ranks);
        CHECK(load.total == total);
        for (std::uint32_t n = 0; n < cluster.node_count(); ++n) {
            REQUIRE(load.by_node[n] * 2 == counted[n]);
        }
        CHECK(load.max == *std::max_element(load.by_node.begin(), load.by_node.end()));
    }
}
