#include <filesystem>
#include <fstream>
#include <string>
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
    }
    ~FakeRoot() { std::filesystem::remove_all(root_); }

    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    const std::string& path() const { return root_; }

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

TEST_CASE("shm/budget: what cannot be read limits nothing", "[shm]") {
    const auto budget = memory_budget("/nowhere");
    CHECK(budget.total == ~std::uint64_t{0});
    CHECK(budget.available == ~std::uint64_t{0});
}
