#include <algorithm>
#include <cstddef>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/base/copy.hpp"

namespace ucg {
namespace {

/// Memory whose first byte lies at the beginning of a page.
class Pages {
  public:
    explicit Pages(std::size_t bytes) : memory_(bytes + kAliasedBytes) {}
    std::byte* data() {
        const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
        return memory_.data() + (kAliasedBytes - start % kAliasedBytes) % kAliasedBytes;
    }

  private:
    std::vector<std::byte> memory_;
};

} // namespace

TEST_CASE("a target lies little above its source by their places within pages") {
    Pages pages(4 * kAliasedBytes);
    const std::byte* const source = pages.data() + kAliasedBytes + 100;
    for (const std::byte* other : {source - kAliasedBytes, source, source + kAliasedBytes}) {
        CHECK_FALSE(lies_little_above(other, source));
        CHECK(lies_little_above(other + 1, source));
        CHECK(lies_little_above(other + 31, source));
        CHECK_FALSE(lies_little_above(other + 32, source));
        CHECK_FALSE(lies_little_above(other - 1, source));
    }
}

TEST_CASE("bytes are copied wherever source and target lie, and no others") {
    constexpr std::size_t kLongest = 5000;
    constexpr std::byte kUntouched{0xee};
    Pages from(kLongest + 64);
    Pages to(kLongest + 128);
    for (std::size_t i = 0; i < kLongest + 64; ++i) {
        from.data()[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    for (const std::size_t bytes : {0UL, 1UL, 63UL, 2048UL, 2049UL, 4096UL, 4997UL}) {
        for (std::size_t above = 0; above < 64; above += 3) {
            for (const std::size_t start : {0UL, 17UL}) {
                CAPTURE(bytes, above, start);
                std::byte* const target = to.data() + start + above;
                const std::byte* const source = from.data() + start;
                std::fill_n(to.data(), kLongest + 128, kUntouched);
                copy_bytes(target, source, bytes);
                CHECK(std::equal(source, source + bytes, target));
                CHECK(std::all_of(to.data(), target, [&](std::byte b) { return b == kUntouched; }));
                CHECK(std::all_of(target + bytes, to.data() + kLongest + 128,
                                  [&](std::byte b) { return b == kUntouched; }));
            }
        }
    }
}

} // namespace ucg
