// What a process has said already, so that it says it once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/graph/collective.hpp"

namespace ucg::capi {

/// Messages that make sense once in the life of a process.
enum class Once {
    step_down,
    profile_conflict,
    bad_profile,
    no_tune,
    no_topology,
    no_phases,
    unknown_host,
    no_group,
    variables,
    count
};

/// Any thread may use it. Its lock is taken after all others, and none under it.
class Remarks {
  public:
    /// `name`: that of the context, with which each message begins.
    Remarks(std::string name, bool threaded) : name_(std::move(name)), mutex_(threaded) {}

    const std::string& name() const { return name_; }
    /// Returns true the first time that it is asked for this message.
    bool first(Once message) { return !told_[static_cast<std::size_t>(message)].exchange(true); }
    /// Like first(), for what is to be said of a collective and a setting or its value, such as an
    /// algorithm that the user asked for and that does not serve.
    bool first(graph::Collective collective, std::string_view about) {
        const std::lock_guard lock(mutex_);
        return of_collectives_.emplace(collective, about).second;
    }

  private:
    const std::string name_;
    std::array<std::atomic<bool>, static_cast<std::size_t>(Once::count)> told_ = {};
    OptionalMutex mutex_; ///< Guards what follows.
    std::set<std::pair<graph::Collective, std::string>> of_collectives_;
};

} // namespace ucg::capi
