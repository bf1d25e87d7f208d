// Where the tree of switches between hosts is read from, and when ranks agree on it. This program
// has files and environment variables to itself.
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/inotify.h>
#include <unistd.h>
#include <utility>

#include "test/support/catch.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/topology_agreement.hpp"
#include "ucg_coll/capi/topology_file.hpp"

namespace ucg::capi {
namespace {

using Reason = TopologyVerdict::Reason;

std::string this_host() {
    std::array<char, 256> name = {};
    REQUIRE(::gethostname(name.data(), name.size() - 1) == 0);
    return name.data();
}

/// A temporary folder that SLURM_CONF points into; the destructor restores the variable.
class SlurmFolder {
  public:
    SlurmFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "ucg-slurm-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        folder_ = name;
        ::unsetenv("SLURMD_NODENAME");
        ::setenv("SLURM_CONF", (folder_ / "slurm.conf").c_str(), 1);
    }
    ~SlurmFolder() {
        ::unsetenv("SLURM_CONF");
        ::unsetenv("SLURMD_NODENAME");
        std::filesystem::remove_all(folder_);
    }
    SlurmFolder(const SlurmFolder&) = delete;
    SlurmFolder& operator=(const SlurmFolder&) = delete;

    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
        return (folder_ / name).string();
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

  private:
    std::filesystem::path folder_;
};

const topo::Cluster& two_switches() {
    using Kind = topo::ClusterNode::Kind;
    static const topo::Cluster cluster({{"top", Kind::network_switch, topo::kNoNode},
                                        {"left", Kind::network_switch, 0},
                                        {"right", Kind::network_switch, 0},
                                        {"a", Kind::machine, 1},
                                        {"b", Kind::machine, 1},
                                        {"c", Kind::machine, 2}});
    return cluster;
}

std::vector<TopologyEnd> ends_at(std::vector<std::uint32_t> machines) {
    std::vector<TopologyEnd> ends;
    for (const std::uint32_t machine : machines) {
        ends.push_back({two_switches().hash(), machine, 0});
    }
    return ends;
}

} // namespace

TEST_CASE("topology file: Slurm's own is found, a missing one is no news", "[topology]") {
    const SlurmFolder slurm;
    CHECK(default_topology_path() == slurm.path("topology.conf"));
    CHECK(load_topology("").complaint.empty());
    CHECK(load_topology("").path.empty());
    slurm.file("topology.conf", "SwitchName=s0 Nodes=nobody," + this_host());
    const LoadedTopology loaded = load_topology("");
    CHECK(loaded.path == slurm.path("topology.conf"));
    CHECK(loaded.complaint.empty());
    CHECK(loaded.machine == 1);
    CHECK(link_rate(loaded) == 0);
    CHECK(loaded.host == this_host());
    CHECK(loaded.hash == loaded.cluster.hash());
    CHECK(load_topology("none").cluster.empty());
    CHECK(link_rate(load_topology("none")) == 0);
    slurm.file("topology.conf", "SwitchName=s0 LinkSpeed=100mbit Nodes=nobody," + this_host());
    CHECK(link_rate(load_topology("")) == 12'500'000);
    CHECK(load_topology("none").path.empty());
}

TEST_CASE(
    "topology file: hosts have Slurm's files of their own, or what the controller gave slurmd",
    "[topology]") {
    const SlurmFolder slurm;
    const std::string own = slurm.path("own");
    const std::string given = slurm.path("given");
    const std::array<std::string_view, 2> folders = {own, given};
    std::filesystem::create_directory(own);
    std::filesystem::create_directory(given);
    CHECK(default_topology_path(folders) == slurm.path("topology.conf"));
    for (const bool is_relative : {false, true}) { // A relative path in SLURM_CONF is ignored.
        is_relative ? ::setenv("SLURM_CONF", "slurm.conf", 1) : ::unsetenv("SLURM_CONF");
        CHECK(default_topology_path(folders) == own + "/topology.conf");
        slurm.file("given/topology.conf", "SwitchName=s0 Nodes=n0");
        CHECK(default_topology_path(folders) == given + "/topology.conf");
        slurm.file("own/topology.conf", "SwitchName=s0 Nodes=n0");
        CHECK(default_topology_path(folders) == own + "/topology.conf");
        std::filesystem::remove(own + "/topology.conf");
        std::filesystem::remove(given + "/topology.conf");
    }
    CHECK(kSlurmFolders.front() == "/etc/slurm");
}

TEST_CASE("topology file: what does not count says so, with file and line", "[topology]") {
    const SlurmFolder slurm;
    const LoadedTopology missing = load_topology(slurm.path("nowhere.json"));
    CHECK(missing.complaint ==
          slurm.path("nowhere.json") + ": cannot read the topology: No such file or directory");
    CHECK(missing.hash == 0);
    const std::string wrong = slurm.file("topology.conf", "# One.\nSwitchName=s0 Host=n0\n");
    CHECK(load_topology("").complaint.rfind(wrong + ": line 2: unknown key 'Host'", 0) == 0);
    CHECK(load_topology("").cluster.empty());
}

TEST_CASE("topology file: one of Slurm's plugin topology/block is no news, unless it is named",
          "[topology]") {
    const SlurmFolder slurm;
    const std::string blocks =
        slurm.file("topology.conf", "BlockName=b0 Nodes=n[0-3]\nBlockSizes=4\n");
    CHECK(load_topology("").complaint.empty());
    CHECK(load_topology("").path.empty());
    CHECK(load_topology(blocks).complaint ==
          blocks + ": line 1: 'BlockName' is of Slurm's plugin topology/block, whose files tell of "
                   "no switches");
}

TEST_CASE("topology file: Slurm's own is not read where Slurm has a topology.yaml", "[topology]") {
    const SlurmFolder slurm;
    const std::string file = slurm.file("topology.conf", "SwitchName=s0 Nodes=" + this_host());
    CHECK(load_topology("").machine == 0);
    CHECK_FALSE(load_topology("").is_named);
    slurm.file("topology.yaml", "---\n");
    CHECK(load_topology("").path.empty());
    CHECK(load_topology("").complaint.empty());
    CHECK(load_topology("").cluster.empty());
    CHECK(load_topology(file).machine == 0);
    CHECK(load_topology(file).is_named);
    // The folder that has either is the one that Slurm reads.
    ::unsetenv("SLURM_CONF");
    const std::string own = slurm.path("own");
    const std::string given = slurm.path("given");
    const std::array<std::string_view, 2> folders = {own, given};
    std::filesystem::create_directory(own);
    std::filesystem::create_directory(given);
    slurm.file("given/topology.conf", "SwitchName=s0 Nodes=n0");
    CHECK(default_topology_path(folders) == given + "/topology.conf");
    slurm.file("own/topology.yaml", "---\n");
    CHECK(default_topology_path(folders) == own + "/topology.conf");
}

TEST_CASE("topology file: a group on one host does not read it", "[topology]") {
    const SlurmFolder slurm;
    const std::string file = slurm.file("topology.conf", "SwitchName=s0 Nodes=" + this_host());
    const int watch = ::inotify_init1(IN_NONBLOCK);
    REQUIRE(watch >= 0);
    REQUIRE(::inotify_add_watch(watch, file.c_str(), IN_OPEN) >= 0);
    const auto was_opened = [watch] {
        std::array<char, 4096> events;
        return ::read(watch, events.data(), events.size()) > 0;
    };
    ucg_context_h context = nullptr;
    REQUIRE(ucg_context_create(nullptr, nullptr, &context) == UCG_OK);
    ucg_group_params_t params = {};
    params.size = 1;
    params.oob_allgather = [](void*, const void* send, void* receive, std::size_t bytes) {
        std::memcpy(receive, send, bytes);
        return 0;
    };
    ucg_group_h group = nullptr;
    REQUIRE(ucg_group_create(context, &params, &group) == UCG_OK);
    ucg_group_destroy(group);
    ucg_context_destroy(context);
    CHECK_FALSE(was_opened());
    CHECK(load_topology("").path == file);
    CHECK(was_opened());
    ::close(watch);
}

TEST_CASE("topology file: Slurm's name for this host counts where its own is not there",
          "[topology]") {
    const SlurmFolder slurm;
    slurm.file("topology.conf", "SwitchName=s0 Nodes=nobody-[0-2]");
    CHECK_FALSE(load_topology("").machine);
    ::setenv("SLURMD_NODENAME", "nobody-2", 1);
    CHECK(load_topology("").machine == 2);
    slurm.file("topology.conf", "SwitchName=s0 Nodes=nobody-[0-2]," + this_host());
    CHECK(load_topology("").machine == 3);
}

TEST_CASE("topology agreement: hosts are found, by host and pruned", "[topology]") {
    // Ranks 0 and 2 are on host 0, which is machine b; rank 1 is on host 1, which is machine a.
    const topo::Placement placement({{.host = 0}, {.host = 1}, {.host = 0}});
    const TopologyVerdict verdict =
        agree_on_topology(two_switches(), ends_at({1, 0, 1}), placement);
    CHECK(verdict.reason == Reason::none);
    REQUIRE_FALSE(verdict.map.empty());
    CHECK(verdict.map.machine_of_host == std::vector<std::uint32_t>{1, 0});
    CHECK(verdict.map.cluster.node(0).name == "left");
    const topo::Placement three({{.host = 0}, {.host = 1}, {.host = 2}});
    CHECK(agree_on_topology(two_switches(), ends_at({2, 0, 1}), three).map.cluster ==
          two_switches());
}

TEST_CASE("topology agreement: of several trees the one counts that all hosts are in",
          "[topology]") {
    const SlurmFolder slurm;
    slurm.file("topology.conf", "SwitchName=cpu Switches=leaf[0-1]\n"
                                "SwitchName=leaf0 Nodes=n[0-1]\n"
                                "SwitchName=leaf1 Nodes=n2\n"
                                "SwitchName=gpu Nodes=g[0-1]," +
                                    this_host() + "\n");
    const LoadedTopology loaded = load_topology("");
    CHECK(loaded.complaint.empty());
    REQUIRE(loaded.machine);
    const auto agree = [&](const std::vector<const char*>& hosts) {
        std::vector<TopologyEnd> ends;
        for (const char* host : hosts) {
            ends.push_back(topology_end(loaded));
            ends.back().machine = loaded.cluster.find_machine(host).value();
        }
        return agree_on_topology(
            loaded.cluster, ends,
            topo::Placement::regular(static_cast<std::uint32_t>(ends.size()), 1));
    };
    const TopologyVerdict cpus = agree({"n2", "n0"});
    CHECK(cpus.reason == Reason::none);
    CHECK(cpus.map.machine_of_host == std::vector<std::uint32_t>{1, 0});
    CHECK(cpus.map.cluster.node(0).name == "cpu");
    CHECK(agree({"g1", "g0"}).map.cluster.node(0).name == "gpu");
    const TopologyVerdict both = agree({"n0", "n1", "g0"});
    CHECK(both.map.empty());
    CHECK(both.reason == Reason::several_trees);
    CHECK(both.speaker == 2);
    CHECK(both.other == 0);
    CHECK(explain(both, loaded)
              .find(loaded.path + ": switches form several trees, and host '" + loaded.host +
                    "' of rank 2 is in another one than that of "
                    "rank 0. All ranks do without") == 0);
}

TEST_CASE("topology agreement: all ranks do without for one reason that one rank tells",
          "[topology]") {
    const topo::Placement placement = topo::Placement::regular(3, 1);
    const auto agree = [&](const std::vector<TopologyEnd>& ends) {
        const TopologyVerdict verdict = agree_on_topology(two_switches(), ends, placement);
        CHECK(verdict.map.empty());
        return std::tuple(verdict.reason, verdict.speaker, verdict.other);
    };
    const auto is = [](Reason reason, Rank speaker, Rank other) {
        return std::tuple(reason, speaker, other);
    };
    CHECK(agree({{}, {}, {}}) == is(Reason::none, kNoRank, kNoRank));
    std::vector<TopologyEnd> ends = ends_at({0, 1, TopologyEnd::kMissing});
    CHECK(agree(ends) == is(Reason::unknown_host, 2, kNoRank));
    CHECK(agree(ends_at({0, 1, 0})) == is(Reason::shared_machine, 2, 0));
    ends[1].hash = 7;
    CHECK(agree(ends) == is(Reason::different, 0, 1));
    ends[2].complains = 1;
    CHECK(agree(ends) == is(Reason::bad_file, 2, kNoRank));
    // With one host there is no network between the ranks, so nothing is reported.
    CHECK(agree_on_topology(two_switches(), ends, topo::Placement::one_host(3)).reason ==
          Reason::none);
}

TEST_CASE("topology agreement: the reason is a warning only where a rank's setting names a file",
          "[topology]") {
    const topo::Placement placement = topo::Placement::regular(3, 1);
    LoadedTopology loaded;
    loaded.complaint = "/etc/slurm/topology.conf: line 2: no";
    std::vector<TopologyEnd> ends(3, topology_end(loaded));
    const auto level = [&] { return agree_on_topology({}, ends, placement).level; };
    CHECK(level() == LogLevel::info);
    loaded.is_named = true;
    ends[1] = topology_end(loaded);
    CHECK(level() == LogLevel::warn);
}

TEST_CASE("topology agreement: the line names file, host, reason and remedy", "[topology]") {
    LoadedTopology loaded;
    loaded.path = "/etc/cluster.json";
    loaded.host = "n7";
    TopologyVerdict verdict;
    verdict.speaker = 3;
    verdict.other = 4;
    const auto text = [&](Reason reason) {
        verdict.reason = reason;
        const std::string line = explain(verdict, loaded);
        CHECK(line.find("UCG_TOPOLOGY") != std::string::npos);
        return line.substr(0, line.find(". All ranks"));
    };
    CHECK(text(Reason::unknown_host) == "/etc/cluster.json: host 'n7' of rank 3 is not in it");
    CHECK(text(Reason::different) ==
          "/etc/cluster.json: rank 4 has another topology than rank 3, or none");
    CHECK(text(Reason::shared_machine) == "/etc/cluster.json: host 'n7' of rank 3 is the machine "
                                          "of rank 4, which is another host");
    loaded.complaint = "/etc/cluster.json: line 2: no";
    CHECK(text(Reason::bad_file) == loaded.complaint);
    loaded.path = "";
    CHECK(text(Reason::different) == "rank 4 has a topology file, rank 3 has none");
}

} // namespace ucg::capi
