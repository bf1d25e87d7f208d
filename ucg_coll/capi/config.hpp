// The configuration: one table of variables, each settable as UCG_<NAME> in the environment and by
// ucg_config_modify.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::capi {

class Config {
  public:
    /// Returns the defaults, where the environment does not set something else.
    static Result<Config> from_environment();

    /// Sets a variable; `name` is without the prefix, in capitals. Fails with invalid_argument,
    /// naming the variable, the value and what is expected.
    Status set(std::string_view name, std::string_view value);

    /// Returns the variables UCG_* of `environment` (as of environ(7)) that are not in the table,
    /// separated by commas, each with the one that was perhaps meant. Empty where
    /// UCG_WARN_UNUSED_ENV_VARS says so.
    std::string unused_variables(const char* const* environment) const;
    /// Logs the unused variables of this process, if there are any.
    void warn_of_unused_variables() const;

    /// Returns lines "UCG_NAME=value" with a comment above each, as `ucx_info -f` prints.
    std::string to_text() const;

    LogLevel log_level() const;
    bool shm_enabled() const { return lists("TLS", "shm"); }
    bool ucx_enabled() const { return lists("TLS", "ucx"); }
    bool short_lane() const { return value("SHORT_LANE") == "y"; }
    /// Returns the length, in bytes, from which on the kernel copies messages on a host. 0: the
    /// length that the profile names; all ones: the kernel copies none.
    std::uint64_t cma_bytes_min() const;
    bool verify_plans() const { return value("VERIFY") == "y"; }
    /// Do ranks help one another with nonblocking collectives whatever that costs, or do they
    /// never? Where neither is so, the planner decides.
    bool always_helps() const { return value("HELP_PEERS") == "always"; }
    bool never_helps() const { return value("HELP_PEERS") == "never"; }
    /// Do reductions give the same bits wherever their ranks are?
    bool reproducible() const { return value("REPRODUCIBLE") == "placement"; }
    std::uint64_t heap_bytes() const;
    /// Returns how many bytes each rank of a group has for its peers to read.
    std::uint64_t staging_bytes() const;
    std::uint32_t timeout_seconds() const;
    /// Returns how long a wait polls before it sleeps. Empty: the wait decides; the greatest value:
    /// it never sleeps.
    std::optional<std::chrono::nanoseconds> sleep_after() const;
    /// Returns how long a collective may stay at one step before that is reported; empty: for ever.
    std::optional<std::chrono::seconds> stall_after() const;
    /// The setting for load_profile().
    std::string_view profile() const { return value("PROFILE"); }
    /// Returns the paths that follow "file:" among the algorithms of alltoall and alltoallv, each
    /// once.
    std::vector<std::string> phases_files() const;
    /// The setting for load_topology().
    std::string_view topology() const { return value("TOPOLOGY"); }
    /// The setting for load_machine().
    std::string_view machine() const { return value("MACHINE"); }
    /// Returns the algorithm that the user asked for, for requests of that many bytes
    /// (plan::uniform_bytes); empty: the planner chooses.
    std::string_view algorithm(graph::Collective collective, std::uint64_t bytes) const;

    /// How many settings all ranks of a group must have alike, since plans depend on them: the
    /// algorithms, REPRODUCIBLE and HELP_PEERS. What is read from files is compared by itself.
    static constexpr std::size_t kCommonCount = std::size(graph::kCollectives) + 2;
    /// A digest of each of these settings, equal for values that mean the same.
    using CommonDigests = std::array<std::uint32_t, kCommonCount>;
    CommonDigests common_digests() const;
    /// Returns the name of the setting that a digest is of, "UCG_ALLREDUCE".
    static std::string common_name(std::size_t index);
    /// Returns its value as it was set.
    std::string_view common_value(std::size_t index) const;

  private:
    std::string_view value(std::string_view name) const;
    bool lists(std::string_view name, std::string_view item) const;

    std::map<std::string, std::string, std::less<>> values_; // Only what differs from the default.
    std::map<graph::Collective, plan::AlgorithmsBySize> algorithms_; // Of these, parsed.
};

} // namespace ucg::capi
