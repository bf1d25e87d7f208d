// What the tests of heaps among forked processes share.
#pragma once

#include <cstring>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UCG_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UCG_TEST_SANITIZED
#endif
#endif

namespace ucg::test {

/// Exchanges a value with all ranks; returns the values in the order of ranks.
template <typename T>
std::vector<T> exchange_values(const ForkedRank& rank, const T& mine) {
    std::vector<T> all;
    for (const std::string& text :
         rank.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
        T value;
        if (text.size() == sizeof(value)) {
            std::memcpy(&value, text.data(), sizeof(value));
            all.push_back(value);
        }
    }
    return all;
}

inline std::vector<shm::HeapAddress> exchange(const ForkedRank& rank,
                                              const shm::HeapAddress& mine) {
    return exchange_values(rank, mine);
}

inline void require_all_ok(const std::vector<RankResult>& results) {
    for (const auto& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}

/// Limits this process to the address space that it uses now.
inline bool take_address_space_away() {
    std::ifstream usage("/proc/self/statm");
    rlim_t pages = 0;
    usage >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
    const rlimit limit = {bytes, bytes};
    return ::setrlimit(RLIMIT_AS, &limit) == 0;
}

} // namespace ucg::test
