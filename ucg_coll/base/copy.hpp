// Copies of bytes, which are faster than std::memcpy where that is slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ucg {

/// A page, as far as two addresses in different ones may look alike to a processor.
inline constexpr std::uintptr_t kAliasedBytes = 4096;

/// Does the target lie 1 to 31 bytes above the source within a page? There an instruction that
/// copies strings (rep movsb), by which C libraries make copies of some KiB, takes twenty times as
/// long on AMD Zen 3, in whichever pages they are (8 KiB: 3.6 us instead of 0.15; compare glibc's
/// bug 30994). It is an everyday case: large blocks of malloc begin 16 bytes into a page, and what
/// is copied to them lies at the beginning of one.
inline bool lies_little_above(const std::byte* target, const std::byte* source) {
    constexpr std::uintptr_t kSlowDistances = 31;
    const std::uintptr_t distance =
        reinterpret_cast<std::uintptr_t>(target) - reinterpret_cast<std::uintptr_t>(source);
    return distance % kAliasedBytes - 1 < kSlowDistances;
}

/// Below it C libraries copy by vectors.
inline constexpr std::size_t kStringsMin = 2048;

/// The same by whichever of std::memcpy and vectors was faster when it was first called (which
/// takes some 100 us). Any thread may call it.
void copy_little_above(std::byte* target, const std::byte* source, std::size_t bytes);

/// As std::memcpy: they do not overlap.
inline void copy_bytes(std::byte* target, const std::byte* source, std::size_t bytes) {
    if (bytes > kStringsMin && lies_little_above(target, source)) [[unlikely]] {
        copy_little_above(target, source, bytes);
    } else {
        std::memcpy(target, source, bytes);
    }
}

} // namespace ucg
