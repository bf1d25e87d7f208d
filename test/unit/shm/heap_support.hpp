// What the tests of heaps among forked processes share.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"

namespace ucg::test {

/// Addresses of all ranks, in the order of ranks.
inline std::vector<shm::HeapAddress> exchange(const ForkedRank& rank,
                                              const shm::HeapAddress& mine) {
    std::vector<shm::HeapAddress> all;
    for (const std::string& text :
         rank.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
        shm::HeapAddress address;
        if (text.size() == sizeof(address)) {
            std::memcpy(&address, text.data(), sizeof(address));
            all.push_back(address);
        }
    }
    return all;
}

inline void require_all_ok(const std::vector<RankResult>& results) {
    for (const auto& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}

} // namespace ucg::test
