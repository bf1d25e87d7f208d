#include <filesystem>
#include <fstream>
#include <linux/mempolicy.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/budget.hpp"
#include "test/support/catch.hpp"

namespace {

using ucg::shm::memory_budget;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

/// A temporary file tree that stands for /proc and /sys.
class FakeRoot {
  public:
    FakeRoot() {
        std::string name = (std::filesystem::temp_directory_path() / "ucg-budget-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        root_ = name;
        write("/proc/meminfo", "MemTotal: 1048576 kB\nMemFree: 1 kB\nMemAvailable: 524288 kB\n");
        write("/proc/self/mountinfo", mount("/", "/sys/fs/cgroup", "cgroup2") +
                                          mount("/", "/sys/fs/cgroup/memory", "cgroup"));
    }
    ~FakeRoot() { std::filesystem::remove_all(root_); }

    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    const std::string& path() const { return root_; }

    /// Returns a line of mountinfo about control groups.
    static std::string mount(const std::string& root, const std::string& point,
                             const std::string& type) {
        return "36 35 0:32 " + root + " " + point + " rw,relatime shared:9 - " + type + " " + type +
               " rw,memory\n";
    }
    /// Writes a memory node's file.
    void write_node(int node, std::uint64_t free_mebi, std::uint64_t file_mebi) const {
        const std::string name = "Node " + std::to_string(node) + " ";
        write("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo",
              name + "MemTotal:  524288 kB\n" + name +
                  "MemFree: " + std::to_string(free_mebi * 1024) + " kB\n" + name +
                  "Active:  9 kB\n" + name + "Active(file): 0 kB\n" + name +
                  "Inactive(file):  " + std::to_string(file_mebi * 1024) + " kB\n");
    }

  private:
    std::string root_;
};

} // namespace

TEST_CASE("shm/budget: without control groups the machine is the limit", "[shm]") {
    const FakeRoot root;
    const auto budget = memory_budget(root.path());
    CHECK(budget.total == 1024 * kMebi);
    CHECK(budget.available == 512 * kMebi);
}

TEST_CASE("shm/budget: version 2 groups limit, up to the root, and their cache counts as free",
          "[shm]") {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "0::/job/step\n");
    root.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
    root.write("/sys/fs/cgroup/job/memory.max", std::to_string(64 * kMebi) + "\n");
    root.write("/sys/fs/cgroup/job/memory.current", std::to_string(60 * kMebi) + "\n");
    root.write("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file " +
                                                     std::to_string(30 * kMebi) + "\nactive_file " +
                                                     std::to_string(10 * kMebi) + "\n");
    const auto budget = memory_budget(root.path());
    CHECK(budget.total == 64 * kMebi);
    CHECK(budget.available == 44 * kMebi);
}

TEST_CASE("shm/budget: version 1 groups limit", "[shm]") {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "5:cpu,memory:/box\n3:cpuset:/other\n");
    root.write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(32 * kMebi));
    root.write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(31 * kMebi));
    // In a group without a limit, the memory that others hold is not subtracted.
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "9223372036854771711");
    const auto budget = memory_budget(root.path());
    CHECK(budget.total == 32 * kMebi);
    CHECK(budget.available == kMebi);
}

TEST_CASE("shm/budget: a group is not filled beyond where the kernel slows it down", "[shm]") {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "0::/user\n");
    root.write("/sys/fs/cgroup/user/memory.max", "max\n");
    root.write("/sys/fs/cgroup/user/memory.high", std::to_string(48 * kMebi) + "\n");
    root.write("/sys/fs/cgroup/user/memory.current", std::to_string(40 * kMebi) + "\n");
    auto budget = memory_budget(root.path());
    CHECK(budget.total == 48 * kMebi);
    CHECK(budget.available == 8 * kMebi);
    root.write("/sys/fs/cgroup/user/memory.max", std::to_string(44 * kMebi) + "\n");
    budget = memory_budget(root.path());
    CHECK(budget.total == 44 * kMebi);
    CHECK(budget.available == 4 * kMebi);
}

TEST_CASE("shm/budget: groups are looked for below the root and the point of their mount",
          "[shm]") {
    const FakeRoot root;
    const std::string limit = std::to_string(32 * kMebi) + "\n";
    SECTION("version 2, in a container that has not got a namespace of its own") {
        root.write("/proc/self/cgroup", "0::/docker/x/job7\n");
        root.write("/proc/self/mountinfo",
                   FakeRoot::mount("/docker/x", "/sys/fs/cgroup", "cgroup2"));
        root.write("/sys/fs/cgroup/job7/memory.max", limit);
    }
    SECTION("version 1, mounted elsewhere, behind a mount with a long line") {
        root.write("/proc/self/cgroup", "3:cpuset:/other\n5:memory:/docker/x/job7\n");
        root.write("/proc/self/mountinfo",
                   "1 2 0:3 / / rw - overlay overlay rw,lowerdir=" + std::string(20000, 'd') +
                       "\n" + FakeRoot::mount("/docker/x", "/control\\040groups", "cgroup"));
        root.write("/control groups/job7/memory.limit_in_bytes", limit);
    }
    SECTION("a group that another container's mount hides") {
        root.write("/proc/self/cgroup", "0::/../y/job7\n");
        root.write("/proc/self/mountinfo", FakeRoot::mount("/", "/sys/fs/cgroup", "cgroup2"));
        root.write("/sys/fs/cgroup/memory.max", limit);
    }
    SECTION("a name that only begins as the mount's root does") {
        root.write("/proc/self/cgroup", "0::/docker/xy\n");
        root.write("/proc/self/mountinfo",
                   FakeRoot::mount("/docker/x", "/sys/fs/cgroup", "cgroup2"));
        root.write("/sys/fs/cgroup/y/memory.max", "0\n");
        root.write("/sys/fs/cgroup/memory.max", limit);
    }
    CHECK(memory_budget(root.path()).total == 32 * kMebi);
}

TEST_CASE("shm/budget: a process that may not use all memory nodes has what the others have",
          "[shm]") {
    const FakeRoot root;
    root.write("/sys/devices/system/node/has_memory", "0-1,3\n");
    root.write_node(0, 100, 30);
    root.write_node(1, 10, 5);
    root.write_node(3, 20, 0);
    SECTION("some of them, by its cpuset") {
        root.write("/proc/self/status", "Name: x\nMems_allowed:\ta\nMems_allowed_list:\t1,3\n");
        CHECK(memory_budget(root.path()).total == 1024 * kMebi);
        CHECK(memory_budget(root.path()).available == 35 * kMebi);
        root.write("/proc/self/status", "Mems_allowed_list:\t1\n");
        CHECK(memory_budget(root.path()).total == 512 * kMebi);
        CHECK(memory_budget(root.path()).available == 15 * kMebi);
    }
    SECTION("one of them, by the policy of its thread") {
        root.write("/proc/self/status", "Mems_allowed_list:\t0-3\n");
        const unsigned long first = 1;
        if (::syscall(SYS_set_mempolicy, MPOL_BIND, &first, 8 * sizeof(first)) == 0) {
            const auto budget = memory_budget(root.path());
            ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
            CHECK(budget.available == 130 * kMebi);
        }
    }
    SECTION("one of which nothing is known") {
        root.write("/sys/devices/system/node/has_memory", "0-1,3,5\n");
        root.write("/proc/self/status", "Mems_allowed_list:\t1,5\n");
        CHECK(memory_budget(root.path()).available == 512 * kMebi);
    }
    SECTION("all") {
        root.write("/proc/self/status", "Mems_allowed_list:\t0-7\n");
        CHECK(memory_budget(root.path()).available == 512 * kMebi);
    }
}

TEST_CASE("shm/budget: what cannot be read limits nothing", "[shm]") {
    const auto budget = memory_budget("/nowhere");
    CHECK(budget.total == ~std::uint64_t{0});
    CHECK(budget.available == ~std::uint64_t{0});
}
