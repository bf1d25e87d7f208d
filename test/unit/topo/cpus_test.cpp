#include <algorithm>
#include <map>

#include "test/support/catch.hpp"
#include "topo/cgroup.hpp"
#include "topo/cpus.hpp"

using namespace ucg::topo;

namespace {

using Files = std::map<std::string, std::string>;

ReadFile reader(const Files& files) {
    return [&files](const std::string& path) -> std::optional<std::string> {
        const auto found = files.find(path);
        return found == files.end() ? std::nullopt : std::optional(found->second);
    };
}

constexpr const char* kMountV2 =
    "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

constexpr const char* kMountV1 =
    "30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:4 - tmpfs tmpfs ro,mode=755\n"
    "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

} // namespace

TEST_CASE("topo: a CPU quota of cgroup version 2", "[topo][cpus]") {
    CHECK(parse_cpu_max("150000 100000\n") == 1.5);
    CHECK(parse_cpu_max("20000 10000") == 2.0);
    CHECK(parse_cpu_max("max 100000\n") == std::nullopt);
    CHECK(parse_cpu_max("") == std::nullopt);
    CHECK(parse_cpu_max("100000") == std::nullopt);
    CHECK(parse_cpu_max("100000 0") == std::nullopt);
    CHECK(parse_cpu_max("-5 100000") == std::nullopt);
    CHECK(parse_cpu_max("99999999999999999999 1") == std::nullopt);
}

TEST_CASE("topo: a CPU quota of cgroup version 1", "[topo][cpus]") {
    CHECK(parse_cfs_quota("50000\n", "100000\n") == 0.5);
    CHECK(parse_cfs_quota("-1\n", "100000\n") == std::nullopt);
    CHECK(parse_cfs_quota("x", "100000\n") == std::nullopt);
    CHECK(parse_cfs_quota("50000", "") == std::nullopt);
}

TEST_CASE("topo: a quota rounds down to whole CPUs, but not to none", "[topo][cpus]") {
    CHECK(limit_cpu_count(8, std::nullopt) == 8);
    CHECK(limit_cpu_count(8, 3.0) == 3);
    CHECK(limit_cpu_count(8, 1.5) == 1);
    CHECK(limit_cpu_count(8, 0.1) == 1);
    CHECK(limit_cpu_count(2, 1e12) == 2);
    CHECK(limit_cpu_count(0, std::nullopt) == 1);
    CHECK(limit_cpu_count(kNoCpuQuota, std::nullopt) == kNoCpuQuota);
    CHECK(limit_cpu_count(kNoCpuQuota, 1.5) == 1);
}

TEST_CASE("topo: the directories of a process's cgroups", "[topo][cpus]") {
    using Directories = std::vector<CgroupDirectory>;
    SECTION("version 2, up to the root") {
        CHECK(cpu_cgroup_directories("0::/user.slice/job\n", kMountV2) ==
              Directories{{2, "/sys/fs/cgroup/user.slice/job"},
                          {2, "/sys/fs/cgroup/user.slice"},
                          {2, "/sys/fs/cgroup"}});
    }
    SECTION("version 1, the hierarchy with the cpu controller") {
        CHECK(
            cpu_cgroup_directories("5:memory:/m\n4:cpu,cpuacct:/job\n", kMountV1) ==
            Directories{{1, "/sys/fs/cgroup/cpu,cpuacct/job"}, {1, "/sys/fs/cgroup/cpu,cpuacct"}});
    }
    SECTION("a container that mounts its own group only") {
        const std::string mounts =
            "1 0 0:1 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        CHECK(cpu_cgroup_directories("4:cpu:/docker/abc/step\n", mounts) ==
              Directories{{1, "/sys/fs/cgroup/cpu/step"}, {1, "/sys/fs/cgroup/cpu"}});
        CHECK(cpu_cgroup_directories("4:cpu:/docker/abcdef\n", mounts) ==
              Directories{{1, "/sys/fs/cgroup/cpu"}});
    }
    SECTION("a group outside the namespace") {
        CHECK(cpu_cgroup_directories("0::/../../other\n", kMountV2) ==
              Directories{{2, "/sys/fs/cgroup"}});
    }
    SECTION("a mount point with a blank") {
        CHECK(cpu_cgroup_directories("0::/\n", "1 0 0:1 / /my\\040group rw - cgroup2 none rw\n") ==
              Directories{{2, "/my group"}});
    }
    SECTION("a path with a colon") {
        CHECK(cpu_cgroup_directories("0::/a:b\n", kMountV2).front().path == "/sys/fs/cgroup/a:b");
    }
    SECTION("lines that are not understood") {
        CHECK(cpu_cgroup_directories("", "").empty());
        CHECK(cpu_cgroup_directories("0::/\n", "nonsense\n1 2 3 - cgroup2\n").empty());
        CHECK(cpu_cgroup_directories("nonsense\n:\n", kMountV2).empty());
    }
}

TEST_CASE("topo: the tightest quota up the hierarchy counts", "[topo][cpus]") {
    Files files = {{"/proc/self/cgroup", "0::/a/b\n"},
                   {"/proc/self/mountinfo", kMountV2},
                   {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"}};
    SECTION("none") {
        CHECK(cpu_quota(reader(files)) == std::nullopt);
    }
    SECTION("the parent's") {
        files["/sys/fs/cgroup/a/cpu.max"] = "200000 100000\n";
        CHECK(cpu_quota(reader(files)) == 2.0);
        files["/sys/fs/cgroup/a/b/cpu.max"] = "300000 100000\n";
        CHECK(cpu_quota(reader(files)) == 2.0);
        files["/sys/fs/cgroup/a/b/cpu.max"] = "200000 100000\n";
        CHECK(tightest_cpu_quota(reader(files))->directory == "/sys/fs/cgroup/a");
        files["/sys/fs/cgroup/a/b/cpu.max"] = "50000 100000\n";
        CHECK(cpu_quota(reader(files)) == 0.5);
        CHECK(tightest_cpu_quota(reader(files))->directory == "/sys/fs/cgroup/a/b");
    }
    SECTION("no such files") {
        CHECK(cpu_quota(reader({})) == std::nullopt);
    }
    SECTION("both versions mounted") {
        files["/proc/self/cgroup"] = "4:cpu,cpuacct:/job\n0::/\n";
        files["/proc/self/mountinfo"] = std::string(kMountV1) + kMountV2;
        files["/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us"] = "400000\n";
        files["/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us"] = "100000\n";
        CHECK(cpu_quota(reader(files)) == 4.0);
    }
}

TEST_CASE("topo: this process may use a CPU", "[topo][cpus]") {
    const std::vector<std::uint32_t> cpus = usable_cpus();
    REQUIRE_FALSE(cpus.empty());
    CHECK(std::is_sorted(cpus.begin(), cpus.end()));
    CHECK(usable_cpu_count() >= 1);
    CHECK(usable_cpu_count() <= cpus.size());
}

TEST_CASE("topo: what the cgroups of this process grant", "[topo][cpus]") {
    const std::optional<CpuQuota> quota = tightest_cpu_quota(read_file);
    const CpuGrant grant = cpu_grant();
    CHECK((grant.cpus == kNoCpuQuota) == !quota.has_value());
    CHECK((grant.group == 0) == !quota.has_value());
    CHECK(cpu_grant().group == grant.group);
}

TEST_CASE("topo: ranges of numbers", "[topo][cpus]") {
    CHECK(format_ranges({}).empty());
    CHECK(format_ranges({7}) == "7");
    CHECK(format_ranges({0, 1, 2, 8, 10, 11}) == "0-2,8,10-11");
}
