#include "ucg_coll/engine/program.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ucg_coll/engine/arrivals.hpp"
#include "ucg_coll/engine/limits.hpp"
#include "ucg_coll/graph/in_flight.hpp"

namespace ucg::engine {
namespace {

using graph::Op;
using graph::OpKind;
using graph::Repeat;
using graph::Schedule;
using graph::Slice;
using transport::Direction;
using transport::SenderHelp;

bool is_message(const Op& op) {
    return graph::has_peer(op.kind);
}

bool is_outgoing(const Op& op) {
    return op.kind == OpKind::send || op.kind == OpKind::signal;
}

std::uint8_t channel_of(const Op& op) {
    return graph::is_order_only(op.kind) ? transport::kSignalChannel : transport::kDataChannel;
}

/// A slot for each iteration that may be in flight.
std::uint8_t slots_per_message(const Repeat& repeat) {
    return static_cast<std::uint8_t>(graph::iterations_in_flight(repeat));
}

class Lowering {
  public:
    Lowering(const Schedule& schedule, transport::Routes routes, std::uint16_t plan)
        : schedule_(schedule), routes_(routes), plan_(plan),
          message_of_op_(schedule.ops.size(), kNone) {}

    Result<Program> run() {
        if (Status status = check_limits(schedule_); !status.ok()) {
            return status;
        }
        if (Status status = check_routes(); !status.ok()) {
            return status;
        }
        if (Status status = find_memory(); !status.ok()) {
            return status;
        }
        if (Status status = find_board(); !status.ok()) {
            return status;
        }
        find_help();
        program_.input_bytes = schedule_.input_bytes;
        program_.output_bytes = schedule_.output_bytes;
        program_.scratch_bytes = schedule_.scratch_bytes;
        program_.window_bytes = schedule_.window_bytes;
        program_.repeats = schedule_.repeats;
        auto next_repeat = schedule_.repeats.begin();
        for (std::uint32_t i = 0; i < schedule_.ops.size();) {
            if (next_repeat != schedule_.repeats.end() && next_repeat->first_op == i) {
                lower_repeat(*next_repeat);
                i += next_repeat->op_count;
                ++next_repeat;
            } else {
                lower_op(i);
                ++i;
            }
        }
        finish();
        combine_where_it_arrives(program_, schedule_.element_bytes);
        return std::move(program_);
    }

  private:
    static constexpr std::uint32_t kNone = 0xffffffffU;

    Status check_routes() const {
        for (const Op& op : schedule_.ops) {
            if (is_message(op) && routes_[static_cast<std::size_t>(op.peer)] == nullptr) {
                return failure(Code::unreachable, "rank {} has no transport to rank {}",
                               schedule_.rank, op.peer);
            }
        }
        return {};
    }

    Address address(const Slice& slice) {
        Address result;
        result.offset = slice.offset;
        result.length = slice.length;
        result.buffer = slice.buffer;
        result.stride = slice.stride;
        result.base = static_cast<std::uint32_t>(slice.buffer);
        if (slice.buffer == graph::BufferKind::board && slice.owner != schedule_.rank) {
            const std::uint32_t index = board_index(slice.owner);
            program_.boards[index].bytes = std::max(program_.boards[index].bytes, slice.end());
            result.base = kOwnBases + index;
        } else if (slice.owner != schedule_.rank) {
            result.owner = slice.owner;
        }
        result.moves = result.owner != kNoRank || result.stride != graph::Stride::fixed;
        return result;
    }

    std::uint32_t board_index(Rank owner) {
        const auto [at, added] =
            board_index_.try_emplace(owner, static_cast<std::uint32_t>(program_.boards.size()));
        if (added) {
            program_.boards.push_back({owner, 0});
        }
        return at->second;
    }

    /// What senders do about the messages that come: nothing for those that a reduction waits for,
    /// and all they can where this rank receives from several and sends no data itself.
    void find_help() {
        help_.assign(schedule_.ops.size(), gathers() ? SenderHelp::wanted : SenderHelp::spare);
        for (std::uint32_t i = 0; i < schedule_.ops.size(); ++i) {
            if (schedule_.ops[i].kind != OpKind::reduce) {
                continue;
            }
            const graph::IndexRange range = graph::dependency_range(schedule_, i);
            for (std::uint32_t k = range.first; k < range.last; ++k) {
                help_[schedule_.dependencies[k].op] = SenderHelp::unwanted;
            }
        }
    }

    bool gathers() const {
        std::set<Rank> senders;
        for (const Op& op : schedule_.ops) {
            if (op.kind == OpKind::send) {
                return false;
            }
            if (op.kind == OpKind::recv) {
                senders.insert(op.peer);
            }
        }
        return senders.size() > 1;
    }

    void lower_repeat(const Repeat& repeat) {
        repeat_ = &repeat;
        count_messages_per_iteration(repeat);
        known_done_.clear(); // What was waited for in one iteration says nothing of the next.
        run_open_ = false;
        const auto first = static_cast<std::uint32_t>(program_.instructions.size());
        for (std::uint32_t i = 0; i < repeat.op_count; ++i) {
            lower_op(repeat.first_op + i);
        }
        Instruction end;
        end.kind = InstructionKind::end_iteration;
        end.in_repeat = true;
        end.first = first;
        program_.instructions.push_back(end);
        for (auto& [key, per_iteration] : per_iteration_) {
            // The body counted one iteration already.
            steps_[key] =
                static_cast<std::uint16_t>(steps_[key] + per_iteration * (repeat.iterations - 1));
        }
        per_iteration_.clear();
        known_done_.clear();
        run_open_ = false;
        repeat_ = nullptr;
    }

    void count_messages_per_iteration(const Repeat& repeat) {
        for (std::uint32_t i = 0; i < repeat.op_count; ++i) {
            const Op& op = schedule_.ops[repeat.first_op + i];
            if (is_message(op)) {
                ++per_iteration_[step_key(op)];
            }
        }
    }

    void lower_op(std::uint32_t index) {
        const Op& op = schedule_.ops[index];
        std::vector<Wait> waits = waits_of(index);
        switch (op.kind) {
        case OpKind::send:
        case OpKind::recv:
        case OpKind::signal:
        case OpKind::await: lower_message(index, waits); break;
        case OpKind::copy:
        case OpKind::reduce:
        case OpKind::publish:
        case OpKind::share:
            run_open_ = false;
            append_local(local_instruction(op), waits);
            break;
        }
    }

    Instruction local_instruction(const Op& op) {
        Instruction instruction;
        instruction.in_repeat = repeat_ != nullptr;
        for (const Rank owner : graph::boards_read(schedule_, op)) {
            instruction.boards_until = std::max(instruction.boards_until, board_index(owner) + 1);
        }
        instruction.target = address(op.target);
        switch (op.kind) {
        case OpKind::copy:
            instruction.kind =
                graph::only_waits(op) ? InstructionKind::wait : InstructionKind::copy;
            break;
        case OpKind::reduce:
            instruction.kind = InstructionKind::reduce;
            instruction.first = static_cast<std::uint32_t>(program_.operands.size());
            instruction.count = op.operand_count;
            for (std::uint32_t i = 0; i < op.operand_count; ++i) {
                program_.operands.push_back(address(schedule_.operands[op.first_operand + i]));
            }
            break;
        case OpKind::publish: instruction.kind = InstructionKind::publish; break;
        case OpKind::share: instruction.kind = InstructionKind::share; break;
        case OpKind::send:
        case OpKind::recv:
        case OpKind::signal:
        case OpKind::await: UCG_ASSERT(!is_message(op)); break;
        }
        if (graph::has_source(op.kind) && instruction.kind != InstructionKind::wait) {
            instruction.source = address(op.source);
        }
        return instruction;
    }

    /// Waits for boards one after the other become one instruction.
    void append_local(const Instruction& instruction, const std::vector<Wait>& waits) {
        const bool joins = instruction.kind == InstructionKind::wait && waits.empty() &&
                           !program_.instructions.empty() &&
                           program_.instructions.back().kind == InstructionKind::wait;
        if (joins) {
            std::uint32_t& until = program_.instructions.back().boards_until;
            until = std::max(until, instruction.boards_until);
            program_.instructions.back().waits = until > 0;
        } else {
            append(instruction, waits);
        }
    }

    void lower_message(std::uint32_t index, std::vector<Wait>& waits) {
        const Op& op = schedule_.ops[index];
        MessagePlan plan;
        plan.transport = routes_[static_cast<std::size_t>(op.peer)];
        plan.slot = static_cast<std::uint32_t>(program_.slots.size());
        plan.mask =
            repeat_ != nullptr ? static_cast<std::uint8_t>(slots_per_message(*repeat_) - 1) : 0;
        const StepKey key = step_key(op);
        plan.first_step = steps_[key]++;
        plan.steps_per_iteration = per_iteration_.contains(key) ? per_iteration_[key] : 0;
        if (op.kind == OpKind::send || op.kind == OpKind::recv) {
            plan.address = address(op.kind == OpKind::send ? op.source : op.target);
        }
        add_slots(op, plan);

        const auto number = static_cast<std::uint32_t>(program_.messages.size());
        message_of_op_[index] = number;
        program_.messages.push_back(plan);
        if (repeat_ != nullptr) { // The slot's earlier user must have completed.
            waits.push_back(
                {plan.slot, plan.mask, static_cast<std::uint8_t>(plan.mask + 1), false});
        }
        if (run_open_ && waits.empty() && repeat_ == nullptr &&
            program_.messages[number - 1].transport == plan.transport) {
            ++program_.instructions.back().count;
            return;
        }
        Instruction instruction;
        instruction.kind = InstructionKind::post;
        instruction.in_repeat = repeat_ != nullptr;
        instruction.first = number;
        instruction.count = 1;
        append(instruction, waits);
        run_open_ = true;
    }

    void add_slots(const Op& op, const MessagePlan& plan) {
        transport::Message message;
        message.bytes = plan.address.length;
        message.peer = op.peer;
        message.step = plan.first_step;
        message.channel = channel_of(op);
        message.plan = plan_;
        message.direction = is_outgoing(op) ? Direction::send : Direction::recv;
        message.sender_help = help_[static_cast<std::size_t>(&op - schedule_.ops.data())];
        program_.slots.insert(program_.slots.end(), plan.mask + 1U, message);
    }

    /// The messages that op `index` must wait for and that nothing before it has waited for.
    std::vector<Wait> waits_of(std::uint32_t index) {
        std::vector<Wait> waits;
        const graph::IndexRange range = graph::dependency_range(schedule_, index);
        for (std::uint32_t i = range.first; i < range.last; ++i) {
            const graph::Dependency dependency = schedule_.dependencies[i];
            const std::uint32_t number = message_of_op_[dependency.op];
            const bool within = repeat_ != nullptr && dependency.op >= repeat_->first_op;
            if (within && long_completed(dependency)) {
                continue;
            }
            if (within && dependency.distance > 0 && number == kNone &&
                is_message(schedule_.ops[dependency.op])) {
                waits.push_back(wait_on_later_op(dependency)); // Not lowered yet in this body.
                continue;
            }
            if (number == kNone) {
                continue; // Local ops complete when issued.
            }
            const MessagePlan& plan = program_.messages[number];
            const bool outside = !within && plan.mask > 0;
            const Wait wait{plan.slot, plan.mask, static_cast<std::uint8_t>(dependency.distance),
                            outside};
            if (dependency.distance > 0 || known_done_.insert(plan.slot).second) {
                waits.push_back(wait);
            }
        }
        return waits;
    }

    /// That iteration's slot has been taken again, by one that waited for it. An op that stands
    /// further on in the body has not taken this iteration's yet.
    bool long_completed(const graph::Dependency& dependency) const {
        const bool taken = message_of_op_[dependency.op] != kNone;
        return dependency.distance >= slots_per_message(*repeat_) + (taken ? 0U : 1U);
    }

    /// A wait of an earlier op of the body on a later one of a previous iteration: its slots will
    /// be the ones that come next, in order.
    Wait wait_on_later_op(const graph::Dependency& dependency) const {
        const std::uint8_t count = slots_per_message(*repeat_);
        auto slot = static_cast<std::uint32_t>(program_.slots.size());
        const auto lowered_until = static_cast<std::uint32_t>(
            std::find(message_of_op_.begin() + repeat_->first_op, message_of_op_.end(), kNone) -
            message_of_op_.begin());
        for (std::uint32_t op = lowered_until; op < dependency.op; ++op) {
            if (is_message(schedule_.ops[op]) && message_of_op_[op] == kNone) {
                slot += count;
            }
        }
        return {slot, static_cast<std::uint8_t>(count - 1),
                static_cast<std::uint8_t>(dependency.distance), false};
    }

    void append(Instruction instruction, const std::vector<Wait>& waits) {
        instruction.first_wait = static_cast<std::uint32_t>(program_.waits.size());
        instruction.wait_count = static_cast<std::uint32_t>(waits.size());
        instruction.waits = !waits.empty() || instruction.boards_until > 0;
        program_.waits.insert(program_.waits.end(), waits.begin(), waits.end());
        program_.instructions.push_back(instruction);
    }

    /// The end waits for every message that nothing outside a repeat has waited for.
    void finish() {
        std::vector<Wait> waits;
        for (const MessagePlan& plan : program_.messages) {
            if (known_done_.insert(plan.slot).second) {
                waits.push_back({plan.slot, plan.mask, 0, plan.mask > 0});
            }
        }
        append(Instruction{}, waits);
        program_.exchange = program_.instructions.front().kind == InstructionKind::share &&
                            !program_.instructions.front().waits && program_.messages.empty() &&
                            program_.repeats.empty() && program_.memory == nullptr;
    }

    /// One transport at the most reaches the memory of peers.
    Status find_memory() {
        for (transport::Transport* route : routes_) {
            if (schedule_.exposed && route != nullptr && program_.memory == nullptr) {
                program_.memory = route->peer_memory();
            }
        }
        if (Status status = check_reach(); !status.ok()) {
            return status;
        }
        if (!schedule_.exposed) {
            return {};
        }
        program_.staging = graph::staging_layout(schedule_);
        const std::uint64_t there =
            program_.memory == nullptr ? 0 : program_.memory->staging().size();
        if (program_.staging.total_bytes > there) {
            return failure(Code::unsupported,
                           "rank {}: {} shares {} bytes of scratch and windows with its peers, "
                           "there are {}",
                           schedule_.rank, schedule_.algorithm, program_.staging.total_bytes,
                           there);
        }
        return {};
    }

    /// Peers' slices are reached: scratch by ranks that expose theirs, input and output by windows.
    Status check_reach() const {
        for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
            const Op& op = schedule_.ops[i];
            const auto beyond = [&](const Slice& slice) {
                const bool own = slice.owner == schedule_.rank;
                const bool by_window = slice.buffer != graph::BufferKind::scratch;
                return !own && slice.buffer != graph::BufferKind::board &&
                       (program_.memory == nullptr || (by_window && schedule_.window_bytes == 0));
            };
            const auto operands =
                std::span(schedule_.operands)
                    .subspan(op.first_operand, op.kind == OpKind::reduce ? op.operand_count : 0);
            if ((graph::has_source(op.kind) && beyond(op.source)) ||
                (graph::has_target(op.kind) && beyond(op.target)) ||
                std::any_of(operands.begin(), operands.end(), beyond)) {
                return failure(Code::unsupported,
                               "rank {}, op {} ({}): names a peer's memory, which needs {}",
                               schedule_.rank, i, graph::name(op.kind),
                               !schedule_.exposed           ? "its own to be exposed"
                               : program_.memory == nullptr ? "a transport that reaches it"
                                                            : "a window");
            }
        }
        return {};
    }

    /// One transport has the boards of all peers.
    Status find_board() {
        program_.plan = plan_;
        if (!schedule_.boards) {
            return {};
        }
        transport::Transport* common = nullptr;
        for (Rank peer = 0; peer < schedule_.rank_count; ++peer) {
            transport::Transport* route = routes_[static_cast<std::size_t>(peer)];
            if (peer == schedule_.rank) {
                continue;
            }
            if (route == nullptr || (common != nullptr && route != common)) {
                return failure(Code::unsupported,
                               "rank {}: {} needs boards, and no one transport reaches all ranks",
                               schedule_.rank, schedule_.algorithm);
            }
            common = route;
        }
        program_.board = common == nullptr ? nullptr : common->board();
        const std::uint64_t there = program_.board == nullptr ? 0 : program_.board->bytes_max();
        if (program_.board == nullptr || schedule_.board_bytes > there) {
            return failure(Code::unsupported,
                           "rank {}: {} shares {} bytes on a board, there is room for {}",
                           schedule_.rank, schedule_.algorithm, schedule_.board_bytes, there);
        }
        return {};
    }

    using StepKey = std::tuple<Rank, bool, std::uint8_t>;
    static StepKey step_key(const Op& op) { return {op.peer, is_outgoing(op), channel_of(op)}; }

    const Schedule& schedule_;
    transport::Routes routes_;
    std::uint16_t plan_;
    Program program_;
    std::vector<std::uint32_t> message_of_op_;
    std::map<Rank, std::uint32_t> board_index_; // Into Program::boards.
    std::vector<SenderHelp> help_;              // Index: op; meaningful for messages.
    std::map<StepKey, std::uint16_t> steps_;
    std::map<StepKey, std::uint16_t> per_iteration_;
    std::set<std::uint32_t> known_done_; // Slots that an earlier instruction has waited for.
    const Repeat* repeat_ = nullptr;
    bool run_open_ = false; // The last instruction is a post that may grow.
};

} // namespace

Result<Program> lower(const graph::Schedule& schedule, transport::Routes routes,
                      std::uint16_t plan) {
    UCG_ASSERT(plan <= transport::kPlanMax);
    return Lowering(schedule, routes, plan).run();
}

} // namespace ucg::engine
