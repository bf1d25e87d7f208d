#include "test/support/catch.hpp"
#include "topo/topo.hpp"

namespace ucg::topo {
namespace {

TEST_CASE("topo/processor: family and model out of the signature", "[topo]") {
    CHECK(processor_from_signature("AuthenticAMD", 0x00a10f11) ==
          Processor{"AuthenticAMD", 25, 17}); // EPYC 9004
    CHECK(processor_from_signature("GenuineIntel", 0x000806f8) ==
          Processor{"GenuineIntel", 6, 143}); // Xeon, Sapphire Rapids
    CHECK(processor_from_signature("GenuineIntel", 0x00000f29) == Processor{"GenuineIntel", 15, 2});
}

TEST_CASE("topo/processor: this one is the same each time", "[topo]") {
    const Processor first = this_processor();
    CHECK((first.vendor.empty() || first.vendor.size() == 12));
    for (int i = 0; i < 50; ++i) {
        CHECK(this_processor() == first);
    }
}

} // namespace
} // namespace ucg::topo
