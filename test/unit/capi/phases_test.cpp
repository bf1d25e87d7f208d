// Schedules that are loaded from files: which file is read, and what the ranks agree on.
#include <array>
#include <fstream>
#include <unistd.h>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/phases_file.hpp"

namespace ucg::capi {
namespace {

constexpr std::string_view kList = "aapc 1\nmachines 3\nn0\nn1\nn2.cluster\nphases 2\n"
                                   "0>1 1>2 2>0\n0>2 1>0 2>1\nsyncs 0\n";

class File {
  public:
    explicit File(std::string_view text) {
        const int descriptor = ::mkstemp(name_.data());
        REQUIRE(descriptor >= 0);
        REQUIRE(::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        ::close(descriptor);
    }
    ~File() { ::unlink(name_.data()); }
    std::string path() const { return name_.data(); }

  private:
    std::array<char, 20> name_ = {"/tmp/ucg_phasXXXXXX"};
};

Config with_file(const std::string& algorithms) {
    Config config = Config::from_environment().value();
    REQUIRE(config.set("ALLTOALL", algorithms).ok());
    return config;
}

} // namespace

TEST_CASE("capi: the schedule that is named is read, and the host found in it", "[capi][phases]") {
    const File file(kList);
    const LoadedPhases loaded = load_phases(with_file("file:" + file.path()), "n1.cluster");
    CHECK(loaded.complaint.empty());
    CHECK(loaded.path == file.path());
    REQUIRE(loaded.listed != nullptr);
    CHECK(loaded.machine == 1U);
    CHECK(loaded.hash == aapc::hash_of(*loaded.listed));
    const LoadedPhases large = load_phases(with_file("64k-inf:file:" + file.path()), "n2");
    CHECK(large.machine == 2U);
    CHECK(load_phases(with_file("linear"), "n0").path.empty());
}

TEST_CASE("capi: a schedule that is wrong is a complaint", "[capi][phases]") {
    const File file("aapc 1\nmachines 3\nn0\nn0\n");
    const LoadedPhases loaded = load_phases(with_file("file:" + file.path()), "n0");
    CHECK(loaded.complaint == file.path() + ": line 4: machine n0 is there twice");
    CHECK(phases_end(loaded).complains == 1);
    CHECK_FALSE(load_phases(with_file("file:/nowhere/x.aapc"), "n0").complaint.empty());
}

TEST_CASE("capi: ranks take a schedule that all have, with one rank on each machine",
          "[capi][phases]") {
    const File file(kList);
    const LoadedPhases own = load_phases(with_file("file:" + file.path()), "n0");
    const auto end = [&](std::uint32_t machine) { return TopologyEnd{own.hash, machine, 0}; };
    std::vector<TopologyEnd> ends = {end(2), end(0), end(1)};
    CHECK(agree_on_phases(own, ends).ranks == std::vector<Rank>{1, 2, 0});
    ends[2] = end(0);
    CHECK(agree_on_phases(own, ends).reason ==
          file.path() + ": ranks 1 and 2 are both on machine n0");
    ends[2] = end(TopologyEnd::kMissing);
    CHECK(agree_on_phases(own, ends).speaker == 2);
    ends[2].hash += 1;
    CHECK(agree_on_phases(own, ends).reason ==
          file.path() + ": rank 2 has read another schedule than rank 0");
    ends.pop_back();
    CHECK(agree_on_phases(own, ends).reason ==
          file.path() + ": it is for one rank on each of 3 machines, there are 2 ranks");
    CHECK(agree_on_phases({}, std::vector<TopologyEnd>(3)).reason.empty());
}

} // namespace ucg::capi
