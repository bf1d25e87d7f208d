#include <random>

#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/cost/single_copies.hpp"

namespace ucg::cost {
namespace {

TEST_CASE("cost/single copies: what was built in holds unless it is clearly wrong", "[cost]") {
    const Profile zen = builtin_costs({"AuthenticAMD", 25, 17}).profile;
    for (const Profile& profile : {zen, default_profile()}) {
        const CmaModel& cma = profile.memory.cma;
        CHECK(single_copy_bytes_min(profile, cma.fixed_ns, cma.per_byte_ns) == cma.bytes_min);
    }
}

TEST_CASE("cost/single copies: a kernel that copies otherwise leads to another length", "[cost]") {
    CHECK(single_copy_bytes_min(default_profile(), 20000, 0.06) == 4 << 20);
    CHECK(single_copy_bytes_min(default_profile(), 6000, 0.05) == 64 << 10);
    CHECK(single_copy_bytes_min(default_profile(), 300, 0.02) == 16 << 10);
    const Profile zen = builtin_costs({"AuthenticAMD", 25, 17}).profile;
    CHECK(single_copy_bytes_min(zen, 300, 0.03) == 16 << 10);
    CHECK(single_copy_bytes_min(zen, 1500, 0.03) == 64 << 10);
}

TEST_CASE("cost/single copies: fifty starts lead to one length", "[cost]") {
    std::mt19937 random(13); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same in each run.
    std::uniform_real_distribution<double> disturbed(0.8, 1.3);
    const Profile zen = builtin_costs({"AuthenticAMD", 25, 17}).profile;
    for (const Profile& profile : {zen, default_profile()}) {
        const CmaModel& cma = profile.memory.cma;
        for (int start = 0; start < 50; ++start) {
            const double slower = disturbed(random);
            CHECK(single_copy_bytes_min(profile, cma.fixed_ns * slower, cma.per_byte_ns * slower) ==
                  cma.bytes_min);
        }
    }
    // As measured on a Zen 3, quiet and while its cores were busy with other things.
    const Profile zen3 = builtin_costs({"AuthenticAMD", 25, 1}).profile;
    for (int start = 0; start < 50; ++start) {
        const double slower = disturbed(random);
        CHECK(single_copy_bytes_min(zen3, 2000 * slower, 0.12 * slower) ==
              zen3.memory.cma.bytes_min);
    }
}

TEST_CASE("cost/single copies: a disturbed look is not taken for a fast kernel", "[cost]") {
    const Profile profile = builtin_costs({"AuthenticAMD", 26, 2}).profile;
    for (const double per_byte_ns : {0.0, 0.001, 0.01}) {
        CHECK(single_copy_bytes_min(profile, 1000, per_byte_ns) == profile.memory.cma.bytes_min);
    }
}

} // namespace
} // namespace ucg::cost
