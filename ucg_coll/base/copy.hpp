// Copying of bytes that is faster than std::memcpy where std::memcpy is slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ucg {

/// Bytes of a page. A processor may confuse two addresses in different pages whose offsets within
/// their pages are equal.
inline constexpr std::uintptr_t kAliasedBytes = 4096;

/// Returns whether target's offset within its page is 1 to 31 bytes above source's, in whichever
/// pages they lie. In that case the instruction that copies strings (rep movsb), by which C
/// libraries make copies of some KiB, takes twenty times as long on AMD Zen 3 (8 KiB: 3.6 us
/// instead of 0.15; compare glibc's bug 30994). The case is common: large blocks of malloc begin
/// 16 bytes into a page, and what is copied to them often lies at the beginning of a page.
inline bool lies_little_above(const std::byte* target, const std::byte* source) {
    constexpr std::uintptr_t kSlowDistances = 31;
    const std::uintptr_t distance =
        reinterpret_cast<std::uintptr_t>(target) - reinterpret_cast<std::uintptr_t>(source);
    return distance % kAliasedBytes - 1 < kSlowDistances;
}

/// Bytes up to which C libraries copy by vector instructions instead of rep movsb.
inline constexpr std::size_t kStringsMin = 2048;

/// Copies like copy_bytes(), for a target that lies_little_above() its source. The first call times
/// std::memcpy and vector instructions, which takes some 100 us, and all calls use the faster one.
/// Thread-safe.
void copy_little_above(std::byte* target, const std::byte* source, std::size_t bytes);

/// Copies like std::memcpy. REQUIRES: source and target do not overlap.
inline void copy_bytes(std::byte* target, const std::byte* source, std::size_t bytes) {
    if (bytes > kStringsMin && lies_little_above(target, source)) [[unlikely]] {
        copy_little_above(target, source, bytes);
        return;
    }
    // Where GCC sees that the length is less than some KiB it makes a loop of 8 bytes instead of a
    // call, which takes 20 ns longer than the C library for 1 KiB.
    asm("" : "+r"(bytes));
    std::memcpy(target, source, bytes);
}

} // namespace ucg
