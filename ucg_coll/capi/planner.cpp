#include "ucg_coll/capi/planner.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "ucg_coll/capi/proof.hpp"

namespace ucg::capi {
namespace {

std::unique_ptr<const plan::LoadedSchedule> loaded_for(const LoadedPhases& phases,
                                                       const std::vector<Rank>& ranks) {
    if (ranks.empty()) {
        return nullptr;
    }
    return std::make_unique<const plan::LoadedSchedule>(
        plan::LoadedSchedule{phases.path, phases.listed, ranks});
}

std::size_t bytes_of(const graph::Blocks& blocks) {
    return (blocks.bytes.size() + blocks.offsets.size()) * sizeof(std::uint64_t) +
           blocks.peers.size() * sizeof(Rank);
}

std::size_t bytes_of(const Planned& planned) {
    const graph::Schedule& schedule = planned.schedule;
    return sizeof(Planned) + bytes_of(planned.request.send) + bytes_of(planned.request.receive) +
           planned.request.rooms.size() * sizeof(graph::EdgeRoom) +
           schedule.ops.size() * sizeof(graph::Op) +
           schedule.dependencies.size() * sizeof(graph::Dependency) +
           schedule.operands.size() * sizeof(graph::Slice) +
           schedule.repeats.size() * sizeof(graph::Repeat);
}

std::optional<topo::Placement> reproducible_for(const Config& config, Rank rank_count) {
    if (!config.reproducible()) {
        return std::nullopt;
    }
    return plan::reproducible_placement(rank_count);
}

} // namespace

Planner::Planner(const Config& config, const LoadedPhases& phases, Remarks& remarks,
                 PlanningFacts facts, bool threaded)
    : config_(config), remarks_(remarks), facts_(std::move(facts)),
      network_(plan::network_between(facts_.placement, facts_.cluster)),
      loaded_(loaded_for(phases, facts_.ranks_of_phases)),
      reproducible_(reproducible_for(config, facts_.placement.rank_count())),
      plan_facts_{facts_.placement,
                  facts_.profile,
                  plan::shared_memory(facts_.placement, facts_.profile, facts_.staging_bytes,
                                      facts_.buffers_in_heap, facts_.flag_slot_bytes,
                                      facts_.kernel_copies && !config.never_helps()),
                  facts_.ranks_per_cpu,
                  reproducible_ ? &*reproducible_ : nullptr,
                  network_.get(),
                  loaded_.get()},
      mutex_(threaded) {}

/// Nobody waits while a plan is made, or proved: so two threads may make the same plan at once.
Result<std::shared_ptr<const Planned>> Planner::plan(const graph::Request& request,
                                                     std::uint64_t hash, std::string_view name) {
    {
        const std::lock_guard lock(mutex_);
        if (std::shared_ptr<const Planned> known = find(request, hash)) {
            return known;
        }
    }
    Result<std::shared_ptr<const Planned>> made = make(request, name);
    if (!made.ok()) {
        return made;
    }
    const std::lock_guard lock(mutex_);
    if (std::shared_ptr<const Planned> known = find(request, hash)) {
        return known;
    }
    keep(hash, *made);
    return made;
}

Result<std::shared_ptr<const Planned>> Planner::make(const graph::Request& request,
                                                     std::string_view name) const {
    Result<graph::Schedule> schedule = schedule_for(request, name);
    if (!schedule.ok()) {
        return schedule.status();
    }
    if (config_.verify_plans()) {
        if (Status status = prove(request, schedule->algorithm, name); !status.ok()) {
            return status;
        }
    }
    const bool moved = moves_what_peers_read(request, schedule->algorithm);
    return std::make_shared<const Planned>(Planned{request, std::move(*schedule), moved});
}

std::shared_ptr<const Planned> Planner::find(const graph::Request& request,
                                             std::uint64_t hash) const {
    const auto [first, last] = plans_.equal_range(hash);
    for (auto entry = first; entry != last; ++entry) {
        if (entry->second->request == request) {
            return entry->second;
        }
    }
    return nullptr;
}

void Planner::keep(std::uint64_t hash, std::shared_ptr<const Planned> planned) {
    const std::size_t bytes = bytes_of(*planned);
    if (bytes > kBytesMax / 8) {
        return;
    }
    while (bytes_ + bytes > kBytesMax) {
        drop_half();
    }
    bytes_ += bytes;
    plans_.emplace(hash, std::move(planned));
}

/// Drops every second plan, beginning with the first, so that one alone goes too.
void Planner::drop_half() {
    bool keep = false;
    for (auto entry = plans_.begin(); entry != plans_.end();) {
        if (std::exchange(keep, !keep)) {
            ++entry;
        } else {
            bytes_ -= bytes_of(*entry->second);
            entry = plans_.erase(entry);
        }
    }
}

Result<graph::Schedule> Planner::schedule_for(const graph::Request& request,
                                              std::string_view name) const {
    const std::string_view wanted =
        config_.algorithm(request.collective, plan::uniform_bytes(request));
    if (!wanted.empty()) {
        Result<graph::Schedule> forced = plan::plan(facts(), request, facts_.rank, wanted);
        if (forced.ok()) {
            return forced;
        }
        // Asked on all ranks: any of them may be rank 0 of another group.
        const bool first = remarks_.first(request.collective, wanted);
        if (facts_.rank == 0) {
            log(first ? LogLevel::warn : LogLevel::debug, "{}: {}; the planner chooses instead",
                name, forced.status().message());
        }
    }
    const std::string_view helped = helped_if_wanted(request);
    Result<graph::Schedule> chosen = plan::plan(facts(), request, facts_.rank, helped);
    // What the request demands may leave an algorithm without what it needs.
    return chosen.ok() || helped.empty() ? std::move(chosen)
                                         : plan::plan(facts(), request, facts_.rank);
}

/// Returns the algorithm by which ranks help one another, if that is wanted always and serves; else
/// nothing.
std::string_view Planner::helped_if_wanted(const graph::Request& request) const {
    if (!request.nonblocking || !config_.always_helps()) {
        return {};
    }
    const auto rows = plan::algorithms();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const plan::Algorithm& each) {
        return each.collective == request.collective && each.helped &&
               each.eligible(facts(), request);
    });
    return row == rows.end() ? std::string_view() : row->name;
}

/// Does MPI_IN_PLACE move buffers that peers read? Then all ranks have to give it, or none;
/// messages carry the same bytes wherever they come from, so that scans, which have no other
/// algorithms, may differ. Rank 0's program decides, so that all ranks agree. Of the collectives
/// with block vectors only an allgatherv has algorithms that read peers' buffers.
bool Planner::moves_what_peers_read(const graph::Request& request,
                                    std::string_view algorithm) const {
    const bool reads_buffers = !graph::has_block_vectors(request.collective) ||
                               request.collective == graph::Collective::allgatherv;
    if (!request.in_place || graph::rooted(request.collective) || !reads_buffers) {
        return false;
    }
    const Result<graph::Schedule> first = plan::plan(facts(), request, 0, algorithm);
    return first.ok() && first->exposed;
}

Result<std::vector<graph::Schedule>> Planner::plan_all(const graph::Request& request,
                                                       std::string_view algorithm) const {
    const std::vector<graph::Request> requests = requests_of_all(request, facts_.rank);
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        Result<graph::Schedule> schedule =
            plan::plan(facts(), requests[static_cast<std::size_t>(rank)], rank, algorithm);
        if (!schedule.ok()) {
            return schedule.status();
        }
        schedules.push_back(std::move(*schedule));
    }
    return schedules;
}

/// Proves the plans of all ranks, as far as this one knows what they ask for.
Status Planner::prove(const graph::Request& request, std::string_view algorithm,
                      std::string_view name) const {
    const std::string_view assumed = what_is_assumed(request.collective);
    if (!assumed.empty() && remarks_.first(request.collective, "UCG_VERIFY") && facts_.rank == 0) {
        log(LogLevel::warn, "{}: UCG_VERIFY: {}: {}", name, graph::name(request.collective),
            assumed);
    }
    const std::vector<graph::Request> requests = requests_of_all(request, facts_.rank);
    const Result<std::vector<graph::Schedule>> planned = plan_all(request, algorithm);
    if (!planned.ok()) {
        return planned.status();
    }
    const std::vector<graph::Schedule>& schedules = *planned;
    const auto same_host = [](Rank a, Rank b, const void* placement) {
        return static_cast<const topo::Placement*>(placement)->same_host(a, b);
    };
    const std::optional<graph::SwitchTree> links =
        plan::links_to_prove(facts(), schedules.front().algorithm);
    return graph::verify(schedules, requests, same_host, &facts_.placement,
                         links ? &*links : nullptr);
}

std::string_view Planner::choice_for_blocks(std::uint64_t mean_bytes) const {
    graph::Request request;
    request.collective = graph::Collective::alltoallv;
    request.rank_count = facts_.placement.rank_count();
    request.bytes = mean_bytes;
    return plan::choose(facts(), request).name;
}

namespace {

graph::Request neighborhood(Rank rank_count, const graph::Crossing& crossing) {
    graph::Request request;
    request.collective = graph::Collective::neighbor_alltoallv;
    request.rank_count = rank_count;
    request.crossing = crossing;
    return request;
}

} // namespace

bool Planner::has_rooms(std::string_view algorithm) const {
    const plan::Algorithm* row = plan::find_algorithm(graph::Collective::neighbor_alltoallv,
                                                      plan::split_algorithm(algorithm).name);
    return row == nullptr || // The planner chooses.
           !row->eligible(facts(), neighborhood(facts_.placement.rank_count(), {}));
}

bool Planner::uses_rooms(const graph::Crossing& crossing) const {
    const std::string_view wanted = config_.algorithm(graph::Collective::neighbor_alltoallv, 0);
    const graph::Request request = neighborhood(facts_.placement.rank_count(), crossing);
    const plan::Algorithm* row = plan::find_algorithm(graph::Collective::neighbor_alltoallv,
                                                      plan::split_algorithm(wanted).name);
    const bool asked_for = row != nullptr && row->eligible(facts(), request);
    return has_rooms(asked_for ? row->name : plan::choose(facts(), request).name);
}

} // namespace ucg::capi
