// What a group plans by, and what it has planned by that: shared by all groups of a process that
// would plan alike. Programs make thousands of communicators of the same ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/phases_file.hpp"
#include "ucg_coll/capi/remarks.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/plan/network/network.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::capi {

/// All that a group's plans depend on, apart from what is the same for all groups of a context. A
/// plain value, alike on all ranks except for `rank`.
struct PlanningFacts {
    Rank rank = 0;
    topo::Placement placement;
    topo::ClusterMap cluster;          ///< The switches between the hosts; empty: not known.
    std::vector<Rank> ranks_of_phases; ///< Index: machine of the context's phases; empty: not used.
    cost::Profile profile;
    /// As in WiredGroup.
    std::uint64_t flag_slot_bytes = 0;
    std::uint64_t staging_bytes = 0;
    bool buffers_in_heap = false; ///< All ranks' malloc is served from the shared heap.
    bool kernel_copies = false;
    double ranks_per_cpu = 1; ///< Those of the group, on the fullest machine.

    bool operator==(const PlanningFacts&) const = default;
};

/// A schedule, and what the marks of its messages tell in addition to the request.
struct Planned {
    graph::Request request;
    graph::Schedule schedule;
    bool moved = false; ///< MPI_IN_PLACE moves buffers that peers read: all ranks have to say it.
};

/// Any thread may use it.
class Planner {
  public:
    /// All arguments but the facts must outlive it. `phases`: those that the context has loaded.
    Planner(const Config& config, const LoadedPhases& phases, Remarks& remarks, PlanningFacts facts,
            bool threaded);
    Planner(const Planner&) = delete; // plan::Facts refer to the members.
    Planner& operator=(const Planner&) = delete;

    bool is_for(const PlanningFacts& facts) const { return facts_ == facts; }
    /// Valid as long as the planner.
    const plan::Facts& facts() const { return plan_facts_; }
    const topo::Placement& placement() const { return facts_.placement; }

    /// Returns the plan of `request`, by the algorithm that the user asked for where it serves,
    /// else by the planner's choice; proved, if the user asked for that. `hash` is equal for equal
    /// requests. `name` is the group's, for messages.
    Result<std::shared_ptr<const Planned>> plan(const graph::Request& request, std::uint64_t hash,
                                                std::string_view name);
    /// Returns the schedules of all ranks by that algorithm, in rank order, as far as this rank
    /// knows their requests. Ranks that help one another need them.
    Result<std::vector<graph::Schedule>> plan_all(const graph::Request& request,
                                                  std::string_view algorithm) const;
    /// Returns the algorithm that serves an alltoallv whose blocks have so many bytes in the mean.
    std::string_view choice_for_blocks(std::uint64_t mean_bytes) const;
    /// Does that algorithm of a neighbourhood collective need rooms?
    bool has_rooms(std::string_view algorithm) const;
    /// Is an algorithm that needs rooms chosen, by the user or the planner, where so much goes
    /// between hosts?
    bool uses_rooms(const graph::Crossing& crossing) const;

  private:
    /// Bytes of schedules that are kept. Beyond them half of the schedules are dropped, and one
    /// that takes more than an eighth is not kept at all: groups hold programs, and these are what
    /// runs.
    static constexpr std::size_t kBytesMax = std::size_t{4} << 20;

    std::shared_ptr<const Planned> find(const graph::Request& request, std::uint64_t hash) const;
    Result<std::shared_ptr<const Planned>> make(const graph::Request& request,
                                                std::string_view name) const;
    void keep(std::uint64_t hash, std::shared_ptr<const Planned> planned);
    void drop_half();
    Result<graph::Schedule> schedule_for(const graph::Request& request,
                                         std::string_view name) const;
    std::string_view helped_if_wanted(const graph::Request& request) const;
    bool moves_what_peers_read(const graph::Request& request, std::string_view algorithm) const;
    Status prove(const graph::Request& request, std::string_view algorithm,
                 std::string_view name) const;

    const Config& config_;
    Remarks& remarks_;
    const PlanningFacts facts_;
    const std::unique_ptr<const plan::Network> network_;       ///< Null: links are not known.
    const std::unique_ptr<const plan::LoadedSchedule> loaded_; ///< Null: none for these ranks.
    const std::optional<topo::Placement>
        reproducible_; ///< What reductions are planned by, if asked.
    const plan::Facts plan_facts_;

    OptionalMutex mutex_; ///< Guards what follows.
    std::unordered_multimap<std::uint64_t, std::shared_ptr<const Planned>> plans_; // By hash.
    std::size_t bytes_ = 0; ///< Memory that the plans take, roughly.
};

} // namespace ucg::capi
