// A context and a group for tests of the C API whose ranks are processes (fork_ranks.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "test/support/fork_ranks.hpp"
#include "ucg/ucg.h"

namespace ucg::test {

/// A process's context, and its group of all ranks over shared memory.
struct ForkedGroup {
    /// Variables of the configuration and their values.
    using Settings = std::initializer_list<std::pair<const char*, const char*>>;

    ucg_context_h context = nullptr;
    ucg_group_h group = nullptr; ///< Null if it could not be made.

    explicit ForkedGroup(const ForkedRank& rank, Settings settings = {},
                         const ucg_context_params_t* context_params = nullptr) {
        ucg_config_h config = nullptr;
        ucg_config_read(&config);
        ucg_config_modify(config, "TLS", "shm");
        for (const auto& [variable, value] : settings) {
            ucg_config_modify(config, variable, value);
        }
        ucg_context_create(context_params, config, &context);
        ucg_config_release(config);
        ucg_group_params_t params = {};
        params.rank = static_cast<std::uint32_t>(rank.rank());
        params.size = static_cast<std::uint32_t>(rank.size());
        params.oob_allgather = allgather;
        params.oob_arg = const_cast<ForkedRank*>(&rank);
        if (ucg_group_create(context, &params, &group) != UCG_OK) {
            group = nullptr;
        }
    }
    ~ForkedGroup() {
        if (group != nullptr) {
            ucg_group_destroy(group);
        }
        ucg_context_destroy(context);
    }
    ForkedGroup(const ForkedGroup&) = delete;
    ForkedGroup& operator=(const ForkedGroup&) = delete;

  private:
    static int allgather(void* argument, const void* send, void* receive, std::size_t bytes) {
        const auto& rank = *static_cast<const ForkedRank*>(argument);
        const std::vector<std::string> all = rank.exchange({static_cast<const char*>(send), bytes});
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].size() != bytes) {
                return -1; // A rank has ended.
            }
            std::memcpy(static_cast<char*>(receive) + i * bytes, all[i].data(), bytes);
        }
        return 0;
    }
};

/// A group that some of the ranks make.
struct PartGroup {
    ucg_group_h group = nullptr; ///< Null if it could not be made.

    /// Makes the group of so many ranks from `first` on. All ranks of the job call it at a time,
    /// those of another group, too; the groups need not have the same number of exchanges.
    PartGroup(const ForkedRank& rank, ucg_context_h context, int first, int size)
        : rank_(rank), first_(static_cast<std::size_t>(first)),
          size_(static_cast<std::size_t>(size)) {
        ucg_group_params_t params = {};
        params.rank = static_cast<std::uint32_t>(rank.rank() - first);
        params.size = static_cast<std::uint32_t>(size);
        params.oob_allgather = allgather;
        params.oob_arg = this;
        if (ucg_group_create(context, &params, &group) != UCG_OK) {
            group = nullptr;
        }
        const std::string made = "made";
        std::vector<std::string> all;
        do {
            all = rank.exchange(made);
        } while (std::count(all.begin(), all.end(), made) < rank.size());
    }
    ~PartGroup() {
        if (group != nullptr) {
            ucg_group_destroy(group);
        }
    }
    PartGroup(const PartGroup&) = delete;
    PartGroup& operator=(const PartGroup&) = delete;

  private:
    static int allgather(void* argument, const void* send, void* receive, std::size_t bytes) {
        const auto& self = *static_cast<const PartGroup*>(argument);
        const std::vector<std::string> all =
            self.rank_.exchange({static_cast<const char*>(send), bytes});
        for (std::size_t i = 0; i < self.size_; ++i) {
            std::memcpy(static_cast<char*>(receive) + i * bytes, all[self.first_ + i].data(),
                        bytes);
        }
        return 0;
    }

    const ForkedRank& rank_;
    std::size_t first_;
    std::size_t size_;
};

} // namespace ucg::test
