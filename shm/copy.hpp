// Copies into shared memory, chosen by what the destination's cache lines are doing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Copies at most 48 bytes without a call: two moves that may overlap cover each size class.
inline void copy_short(std::byte* target, const std::byte* source, std::size_t bytes) {
    if (bytes >= 16) {
        std::memcpy(target, source, 16);
        if (bytes > 32) {
            std::memcpy(target + 16, source + 16, 16);
        }
        std::byte last[16];
        std::memcpy(last, source + bytes - 16, 16);
        std::memcpy(target + bytes - 16, last, 16);
    } else if (bytes >= 8) {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        std::memcpy(&first, source, 8);
        std::memcpy(&last, source + bytes - 8, 8);
        std::memcpy(target, &first, 8);
        std::memcpy(target + bytes - 8, &last, 8);
    } else if (bytes >= 4) {
        std::uint32_t first = 0;
        std::uint32_t last = 0;
        std::memcpy(&first, source, 4);
        std::memcpy(&last, source + bytes - 4, 4);
        std::memcpy(target, &first, 4);
        std::memcpy(target + bytes - 4, &last, 4);
    } else {
        for (std::size_t i = 0; i < bytes; ++i) {
            target[i] = source[i];
        }
    }
}

/// Fetches the cache line of `address` to be written: it leaves every other cache.
inline void prefetch_for_write(const void* address) {
#if defined(__x86_64__)
    // The builtin asks for a shared copy unless the compiler may assume more than x86-64, whose
    // processors without the instruction do nothing.
    asm volatile("prefetchw (%0)" : : "r"(address));
#else
    __builtin_prefetch(address, 1);
#endif
}

/// Fetches the lines of `bytes` bytes to be written. A sender that has sent something calls it for
/// the buffer that it writes next, whose lines a receiver's cache has: they come while the sender
/// waits or its caller computes, instead of one after the other with the stores. Two ranks of two
/// Sapphire Rapids cores that exchange 2 or 4 KiB again and again then take 0.6 to 0.75 of the
/// time.
inline void prefetch_for_write(const std::byte* lines, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += kCacheLine) {
        prefetch_for_write(lines + i);
    }
}

/// Fetches lines that another core has written, if they are few, so that all are on their way
/// before the copy of the first ends. Of more than 2 KiB the processor's own prefetchers bring the
/// rest sooner (Sapphire Rapids, 4 KiB from the other core: 0.75 us, and 0.84 with this).
inline void prefetch_short_read(const std::byte* lines, std::size_t bytes) {
    constexpr std::size_t kShort = 2048;
    if (bytes > kShort) {
        return;
    }
    for (std::size_t i = 0; i < bytes; i += kCacheLine) {
        __builtin_prefetch(lines + i);
    }
}

/// Moves the lines of `bytes` bytes that were just written from this core's caches to one that
/// other cores share, from where these read them sooner, if the processor can (CLDEMOTE). `lines`
/// is aligned to a cache line.
inline void demote(const std::byte* lines, std::size_t bytes) {
#if defined(__x86_64__)
    for (std::size_t i = 0; i < bytes; i += kCacheLine) {
        // Written as bytes for assemblers that do not know it. Other processors do nothing.
        asm volatile(".byte 0x0f, 0x1c, 0x00" : : "a"(lines + i) : "memory");
    }
#else
    static_cast<void>(lines);
    static_cast<void>(bytes);
#endif
}

/// Maps the page of `address` and those around it. To be called before memory of a segment is
/// written for the first time: for a read the kernel maps the pages around it as well, writable
/// where the mapping is shared, for a write that one page alone (sixteen pages in 3 us against 29).
inline void map_around(const void* address) {
    static_cast<void>(*static_cast<const volatile std::byte*>(address));
}

/// Copies past the caches (non-temporal stores) where the processor can, and orders the copy before
/// every later store. For targets whose lines another core's cache holds: an ordinary store must
/// first take each line away from there.
void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes);

} // namespace ucg::shm
