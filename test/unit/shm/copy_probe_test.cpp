#include <cmath>

#include "shm/copy_probe.hpp"
#include "shm/peer_copy.hpp"
#include "test/support/catch.hpp"

namespace ucg::shm {
namespace {

TEST_CASE("shm/copy probe: costs wherever the kernel permits copies", "[shm]") {
    const Result<KernelCopies> seen = probe_kernel_copies();
    REQUIRE(seen.ok() == can_read(own_access_ticket()));
    if (seen.ok()) {
        CHECK(std::isfinite(seen->fixed_ns));
        CHECK(std::isfinite(seen->per_byte_ns));
        CHECK(seen->fixed_ns >= 0);
        CHECK(seen->per_byte_ns >= 0);
    }
}

} // namespace
} // namespace ucg::shm
