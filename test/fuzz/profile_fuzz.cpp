// Fuzzes the parser of cost profiles: whatever is accepted must print and parse back to the same
// value, and pricing with it must not crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ucg_coll/cost/cost.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const ucg::Result<ucg::cost::Profile> profile = ucg::cost::parse_toml(input);
    if (profile.ok()) {
        const ucg::Result<ucg::cost::Profile> again =
            ucg::cost::parse_toml(ucg::cost::to_toml(*profile));
        if (!again.ok() || !(*again == *profile) || hash_of(*again) != hash_of(*profile)) {
            std::abort();
        }
        static_cast<void>(ucg::cost::copy_ns(profile->memory, size));
        static_cast<void>(ucg::cost::reduce_ns(profile->memory, 4, size));
    }
    return 0;
}
