#include "ucg_coll/graph/verify.hpp"

#include <algorithm>
#include <utility>

#include "ucg_coll/graph/flag_slots.hpp"
#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/print.hpp"
#include "ucg_coll/graph/staging.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph {

namespace proof {

std::span<const Dependency> World::dependencies(OpRef ref) const {
    const Schedule& schedule = program_of(ref);
    const IndexRange range = dependency_range(schedule, index(ref));
    return std::span(schedule.dependencies).subspan(range.first, range.last - range.first);
}

std::span<const Slice> World::operands(OpRef ref) const {
    return operands_of(program_of(ref), op(ref));
}

World::Origin World::origin(OpRef ref) const {
    const auto rank = static_cast<std::size_t>(rank_of[ref]);
    std::uint64_t at = origins.empty() ? index(ref) : origins[rank][index(ref)];
    for (const Repeat& repeat : subject[rank].repeats) {
        const std::uint64_t copies = repeat.op_count * repeat.iterations;
        if (at < repeat.first_op) {
            break;
        }
        if (at < repeat.first_op + copies) {
            const std::uint64_t within = at - repeat.first_op;
            return {repeat.first_op + within % repeat.op_count, within / repeat.op_count};
        }
        at -= copies - repeat.op_count;
    }
    return {at, std::nullopt};
}

std::string World::describe_op(OpRef ref) const {
    const Origin at = origin(ref);
    const std::string iteration =
        at.iteration ? fmt::format(" iteration {}", *at.iteration) : std::string();
    return fmt::format("op {}{} ({})", at.op, iteration, op_text(program_of(ref), op(ref)));
}

std::string World::describe(OpRef ref) const {
    return fmt::format("rank {}, {}", rank_of[ref], describe_op(ref));
}

std::uint64_t buffer_bytes(const Schedule& schedule, BufferKind buffer) {
    switch (buffer) {
    case BufferKind::input: return schedule.input_bytes;
    case BufferKind::output: return schedule.output_bytes;
    case BufferKind::scratch: return schedule.scratch_bytes;
    case BufferKind::flag_slot: return schedule.flag_slot_bytes;
    }
    return 0;
}

Status reject(const World& world, OpRef op, std::string_view reason) {
    return failure(Code::invalid_argument, "{}: {}", world.describe(op), reason);
}

namespace {

Status check_requests(std::span<const Schedule> schedules, std::span<const Request> requests) {
    if (schedules.empty()) {
        return Status(Code::invalid_argument, "no schedules");
    }
    if (requests.size() != 1 && requests.size() != schedules.size()) {
        return failure(Code::invalid_argument, "{} requests for {} schedules", requests.size(),
                       schedules.size());
    }
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        const Request& request = requests.size() == 1 ? requests[0] : requests[i];
        const auto rank = static_cast<Rank>(i);
        if (request.rank_count != static_cast<Rank>(schedules.size())) {
            return failure(Code::invalid_argument,
                           "rank {}: the request is for {} ranks, there are {} schedules", rank,
                           request.rank_count, schedules.size());
        }
        const Status status = validate(request, rank);
        if (!status.ok()) {
            return failure(Code::invalid_argument, "rank {}, request {}", rank, status.message());
        }
    }
    return Status();
}

/// Writes the repeats out and numbers the ops of all ranks.
Status lay_out(World& world) {
    const std::size_t ranks = world.originals.size();
    world.unrolled.reserve(ranks); // Pointers into it must stay valid.
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        const Schedule& original = world.originals[i];
        if (original.repeats.empty()) {
            world.programs.push_back(&original);
        } else {
            world.unrolled.push_back(unroll(original));
            world.programs.push_back(&world.unrolled.back());
        }
        world.base.push_back(static_cast<OpRef>(total));
        total += world.programs.back()->ops.size();
        if (total >= kNone / 2) { // Two events per op are numbered with 32 bits.
            return Status(Code::invalid_argument, "too many ops to verify together");
        }
        world.rank_of.resize(total, static_cast<Rank>(i));
    }
    world.base.push_back(static_cast<OpRef>(total));
    return Status();
}

/// Checks that staging buffers are equally long on all ranks, since peers compute places in them.
Status check_staging_buffers(const World& world) {
    const Schedule& first = world.originals.front();
    for (const Schedule& schedule : world.originals) {
        if (schedule.staging_buffer_bytes != first.staging_buffer_bytes) {
            return failure(
                Code::invalid_argument,
                "rank {}: staging_buffer_bytes is {}, rank {} has {}: it is the same on all "
                "ranks",
                schedule.rank, schedule.staging_buffer_bytes, first.rank,
                first.staging_buffer_bytes);
        }
    }
    return Status();
}

/// Checks that the ranks' requests agree, and each rank's schedule and its lowering by themselves.
Status check_each(const World& world) {
    Status status = check_agreement(world);
    for (Rank rank = 0; status.ok() && rank < world.rank_count(); ++rank) {
        const Schedule& schedule = world.originals[static_cast<std::size_t>(rank)];
        status = check_structure(schedule, world.request(rank), rank);
        if (status.ok()) {
            status = verify_lowering(schedule, lower(schedule).value());
        }
    }
    return status;
}

Status prove(World world) {
    Status status;
    for (const auto step : {lay_out, check_ops, match_messages, order_events, check_order,
                            check_lifetime, check_contention, check_meaning}) {
        if (status.ok()) {
            status = step(world);
        }
    }
    return status;
}

Status prove_all(World world) {
    std::span<const Schedule>& schedules = world.originals;
    Status status;
    for (const auto step : {check_staging_buffers, check_flag_slots, check_each, check_helped}) {
        if (status.ok()) {
            status = step(world);
        }
    }
    std::vector<Schedule> rewritten;
    if (status.ok() && schedules.front().flag_slots) {
        rewritten = with_messages(schedules, world.origins);
        schedules = rewritten;
    }
    if (status.ok()) {
        status = prove(world);
    }
    if (status.ok() && schedules.front().staging_buffer_bytes > 0) {
        const std::vector<Schedule> staged = with_staging_buffers(schedules);
        schedules = staged;
        if (const Status by_staging_buffer = prove(world); !by_staging_buffer.ok()) {
            status = failure(by_staging_buffer.code(), "by way of staging buffers: {}",
                             by_staging_buffer.message());
        }
    }
    return status;
}

} // namespace
} // namespace proof

Status verify(std::span<const Schedule> schedules, std::span<const Request> requests,
              SharesMemory shares_memory, const void* context, const SwitchTree* network) {
    if (Status status = proof::check_requests(schedules, requests); !status.ok()) {
        return status;
    }
    if (network != nullptr) {
        if (Status status = check(*network, static_cast<Rank>(schedules.size())); !status.ok()) {
            return status;
        }
    }
    proof::World world;
    world.subject = schedules;
    world.originals = schedules;
    world.requests = requests;
    world.shares_memory = shares_memory;
    world.context = context;
    world.network = network;
    return proof::prove_all(std::move(world));
}

} // namespace ucg::graph
