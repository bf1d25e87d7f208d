// The processes of one run, and how they communicate apart from what is measured: for addresses,
// for a common start, for results. ucx_perftest calls this a run-time environment (RTE).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/types.hpp"

namespace ucg::perftest {

/// One process's view of all processes. Every function but rank() and size() is collective: all
/// ranks call it in the same order. Used by one thread. When a process of the run is lost, the
/// calls of the others fail with unreachable and name it; none waits for ever.
class Runtime {
  public:
    virtual ~Runtime() = default;
    virtual Rank rank() const = 0;
    virtual Rank size() const = 0;

    /// Returns what each rank gives, in rank order; lengths may differ. Calls `progress`, if there
    /// is one, while it waits, so that a peer's one-sided operation can complete.
    virtual Result<std::vector<std::string>> exchange(std::string_view mine,
                                                      const std::function<void()>& progress) = 0;
    Result<std::vector<std::string>> exchange(std::string_view mine) { return exchange(mine, {}); }

    /// Returns when all ranks have called it. `progress` is as in exchange().
    Status barrier(const std::function<void()>& progress = {}) {
        return exchange({}, progress).status();
    }
};

} // namespace ucg::perftest
