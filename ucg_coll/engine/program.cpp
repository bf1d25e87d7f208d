#include "ucg_coll/engine/program.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace ucg::engine {
namespace {

using graph::LoweredSchedule;
using graph::MessagePlan;
using graph::Schedule;
using graph::Step;
using graph::StepKind;
using transport::Direction;
using transport::SenderHelp;
using transport::Transport;

/// Numbers the transports that carry messages of a schedule. `list` has each once, by its number.
struct Carriers {
    const transport::Routes& routes;
    std::vector<Transport*> list = {};

    static std::uint8_t number(Rank peer, void* context) {
        auto& [routes, list] = *static_cast<Carriers*>(context);
        Transport* const route = routes[peer];
        const auto at = std::find(list.begin(), list.end(), route);
        const auto number = static_cast<std::size_t>(at - list.begin());
        UCG_ASSERT(number <= std::numeric_limits<std::uint8_t>::max());
        if (at == list.end()) {
            list.push_back(route);
        }
        return static_cast<std::uint8_t>(number);
    }
};

Status check_routes(const LoweredSchedule& lowered, Rank rank, const transport::Routes& routes) {
    for (const MessagePlan& message : lowered.messages) {
        if (routes[message.peer] == nullptr) {
            return failure(Code::unreachable, "rank {} has no transport to rank {}", rank,
                           message.peer);
        }
    }
    return {};
}

/// Returns whether this rank receives data from several ranks and sends none.
bool gathers(const LoweredSchedule& lowered) {
    std::set<Rank> senders;
    for (const MessagePlan& message : lowered.messages) {
        if (message.signals) {
            continue;
        }
        if (message.outgoing) {
            return false;
        }
        senders.insert(message.peer);
    }
    return senders.size() > 1;
}

/// Returns, by op, whether the sender of a message helps to copy it: not if a reduction waits for
/// it, in any case if this rank gathers, and otherwise if the sender has a processor to spare.
std::vector<SenderHelp> find_help(const Schedule& schedule, const LoweredSchedule& lowered) {
    std::vector<SenderHelp> help(schedule.ops.size(),
                                 gathers(lowered) ? SenderHelp::wanted : SenderHelp::spare);
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        if (!graph::has_operands(schedule.ops[i].kind)) {
            continue;
        }
        const graph::IndexRange range = graph::dependency_range(schedule, i);
        for (std::uint32_t k = range.first; k < range.last; ++k) {
            help[schedule.dependencies[k].op] = SenderHelp::unwanted;
        }
    }
    return help;
}

std::vector<transport::Message> message_slots(const Schedule& schedule,
                                              const LoweredSchedule& lowered, std::uint16_t plan) {
    const std::vector<SenderHelp> help = find_help(schedule, lowered);
    std::vector<transport::Message> slots;
    slots.reserve(lowered.slot_count);
    for (const Step& step : lowered.steps) {
        for (std::uint32_t i = 0; step.kind == StepKind::post && i < step.count; ++i) {
            const MessagePlan& planned = lowered.messages[step.first + i];
            transport::Message message;
            message.bytes = planned.address.length;
            message.peer = planned.peer;
            message.step = planned.first_step;
            message.channel = planned.signals ? transport::kSignalChannel : transport::kDataChannel;
            message.plan = plan;
            message.direction = planned.outgoing ? Direction::send : Direction::recv;
            message.use = graph::message_use(schedule.collective, schedule.rank_count);
            message.segment = planned.address.moves;
            message.sender_help = help[step.op + i];
            slots.insert(slots.end(), planned.mask + 1U, message);
        }
    }
    return slots;
}

bool shares(const Schedule& schedule) {
    return std::any_of(schedule.ops.begin(), schedule.ops.end(),
                       [](const graph::Op& op) { return op.kind == graph::OpKind::share; });
}

/// Returns the peers' memory, which at most one transport reaches; null if none does.
transport::PeerMemory* find_memory(const transport::Routes& routes) {
    for (Transport* route : routes.all()) {
        if (transport::PeerMemory* memory = route == nullptr ? nullptr : route->peer_memory()) {
            return memory;
        }
    }
    return nullptr;
}

/// Returns the Help of the transport within the host, the only one that may have it; null if it has
/// none.
transport::Help* find_help(const transport::Routes& routes) {
    for (Transport* route : routes.all()) {
        if (transport::Help* help = route == nullptr ? nullptr : route->help()) {
            return help;
        }
    }
    return nullptr;
}

Status lay_out_staging(const Schedule& schedule, Program& program) {
    if (!schedule.exposed || program.helped.help != nullptr) {
        return {};
    }
    program.staging = graph::staging_layout(schedule);
    const std::uint64_t there = program.memory == nullptr ? 0 : program.memory->staging().size();
    if (program.staging.total_bytes > there) {
        return failure(Code::unsupported,
                       "rank {}: {} shares {} bytes of scratch and staging buffers with its peers, "
                       "there are {}",
                       schedule.rank, schedule.algorithm, program.staging.total_bytes, there);
    }
    return {};
}

/// Checks that this rank reaches all slices of peers that its steps name: it needs a transport that
/// reaches their memory, and, for inputs and outputs, a staging buffer in case they are not reached
/// in place.
Status check_reach(const Schedule& schedule, const Program& program) {
    const auto beyond = [&](const graph::Address& address) {
        const bool by_staging_buffer =
            address.buffer != graph::BufferKind::scratch && !schedule.helped;
        return address.of_peer && program.helped.help == nullptr &&
               (program.memory == nullptr ||
                (by_staging_buffer && schedule.staging_buffer_bytes == 0));
    };
    const auto check = [&](const graph::Address& address, std::uint32_t op) {
        return !beyond(address)
                   ? Status()
                   : failure(Code::unsupported,
                             "rank {}, op {} ({}): names a peer's memory, which needs {}",
                             schedule.rank, op, graph::name(schedule.ops[op].kind),
                             !schedule.exposed           ? "its own to be exposed"
                             : program.memory == nullptr ? "a transport that reaches it"
                                                         : "a staging buffer");
    };
    Status status;
    for (const Step& step : program.lowered.steps) {
        for (const graph::Address& address : program.lowered.addresses_of(step)) {
            status = status.ok() ? check(address, step.op) : status;
        }
        for (std::uint32_t i = 0; step.kind == StepKind::post && i < step.count; ++i) {
            const MessagePlan& message = program.lowered.messages[step.first + i];
            status = status.ok() ? check(message.address, step.op + i) : status;
        }
    }
    return status;
}

/// One transport at the most has flag slots, those of the ranks that it reaches. A rank that
/// reaches nobody by it takes no sequence number: nobody counts them.
Status find_flag_slots(const Schedule& schedule, const transport::Routes& routes,
                       Program& program) {
    const auto has_flag_slots = [](Transport* route) {
        return route != nullptr && route->flag_slots() != nullptr;
    };
    const std::span<Transport* const> all = routes.all();
    const auto at = std::find_if(all.begin(), all.end(), has_flag_slots);
    if (schedule.flag_slots && at != all.end()) {
        program.flag_slots = (*at)->flag_slots();
    }
    const std::uint64_t there = program.flag_slots == nullptr ? 0 : program.flag_slots->bytes_max();
    if (schedule.flag_slot_bytes > there) {
        return failure(Code::unsupported,
                       "rank {}: {} shares {} bytes on a flag slot, there is room for {}",
                       schedule.rank, schedule.algorithm, schedule.flag_slot_bytes, there);
    }
    for (const graph::FlagSlotRead& read : program.lowered.flag_slots) {
        if (program.flag_slots == nullptr || routes[read.owner] != *at) {
            return failure(Code::unsupported,
                           "rank {}: {} reads the flag slot of rank {}, which no transport reaches",
                           schedule.rank, schedule.algorithm, read.owner);
        }
    }
    if (program.flag_slots == nullptr && shares(schedule)) {
        return failure(Code::unsupported, "rank {}: {} shares on a flag slot, and there is none",
                       schedule.rank, schedule.algorithm);
    }
    return {};
}

std::vector<std::uint32_t> slots_in_parts(const LoweredSchedule& lowered) {
    std::vector<std::uint32_t> slots;
    for (const Step& step : lowered.steps) {
        if (step.kind == StepKind::reduce_parts) {
            const MessagePlan& message = lowered.messages[step.message];
            for (std::uint32_t i = 0; i <= message.mask; ++i) {
                slots.push_back(message.slot + i);
            }
        }
    }
    return slots;
}

/// Returns whether a step of this kind may follow the share of an exchange.
bool only_reads_flag_slots(StepKind kind) {
    switch (kind) {
    case StepKind::copy:
    case StepKind::reduce:
    case StepKind::wait:
    case StepKind::finish: return true;
    case StepKind::post:
    case StepKind::reduce_parts:
    case StepKind::publish:
    case StepKind::share:
    case StepKind::end_iteration: return false;
    }
    return false;
}

bool is_exchange(const Program& program) {
    const std::vector<Step>& steps = program.lowered.steps;
    return steps.front().kind == StepKind::share && !steps.front().waits &&
           program.memory == nullptr &&
           std::all_of(steps.begin() + 1, steps.end(),
                       [](const Step& step) { return only_reads_flag_slots(step.kind); });
}

} // namespace

Result<Program> lower(const Schedule& schedule, const transport::Routes& routes, std::uint16_t plan,
                      std::span<const Schedule> of_all) {
    UCG_ASSERT(plan <= transport::kPlanMax);
    Carriers carriers{routes};
    Result<LoweredSchedule> lowered = graph::lower(schedule, {Carriers::number, &carriers});
    if (!lowered) {
        return lowered.status();
    }
    Program program;
    program.lowered = *std::move(lowered);
    program.carriers = std::move(carriers.list);
    program.input_bytes = schedule.input_bytes;
    program.output_bytes = schedule.output_bytes;
    program.scratch_bytes = schedule.scratch_bytes;
    program.own_scratch_bytes = schedule.own_scratch_bytes;
    program.staging_buffer_bytes = schedule.staging_buffer_bytes;
    program.plan = plan;
    if (transport::Help* help = find_help(routes);
        schedule.helped && help != nullptr && !of_all.empty()) {
        program.helped = helped_program(of_all, schedule.rank, *help); // HelpedRun has the scratch.
        program.scratch_bytes = program.own_scratch_bytes = 0;
    }
    program.memory =
        schedule.exposed && program.helped.help == nullptr ? find_memory(routes) : nullptr;
    Status status = check_routes(program.lowered, schedule.rank, routes);
    if (status.ok()) {
        status = check_reach(schedule, program);
    }
    if (status.ok()) {
        status = lay_out_staging(schedule, program);
    }
    if (status.ok()) {
        status = find_flag_slots(schedule, routes, program);
    }
    if (!status.ok()) {
        return status;
    }
    program.slots = message_slots(schedule, program.lowered, plan);
    program.parts = slots_in_parts(program.lowered);
    program.exchange = is_exchange(program);
    return program;
}

} // namespace ucg::engine
