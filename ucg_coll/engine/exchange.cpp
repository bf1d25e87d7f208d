// The short path: a program that shares something first and then only reads what its peers have
// shared, started while nothing else is in progress. Most short collectives on one host are that;
// whatever has to wait goes on as any other program.
#include <cstring>

#include "ucg_coll/engine/engine.hpp"

namespace ucg::engine {

inline void Execution::fold_boards(const Instruction& instruction) {
    std::byte* const* const bases = bases_.data();
    const Address* address = program_.operands.data() + instruction.first;
    const std::byte** const operands = operands_.data();
    std::uint32_t i = 0;
    do { // At least two.
        operands[i] = bases[address->base] + address->offset;
        ++address;
    } while (++i < instruction.count);
    const Address& target = instruction.target;
    reduction_.combine(reduction_.context, operands, instruction.count,
                       bases[target.base] + target.offset, target.length);
}

/// What follows the share, once all boards are there: no address moves.
inline void Execution::read_boards() {
    const Instruction* const instructions = program_.instructions.data();
    for (const Instruction* at = instructions + 1;; ++at) {
        if (at->kind == InstructionKind::finish) {
            state_ = ExecutionState::done;
            return;
        }
        if (at->kind == InstructionKind::reduce) {
            if (reduction_.foreign()) [[unlikely]] {
                state_ = ExecutionState::operator_due;
                cursor_ = static_cast<std::uint32_t>(at - instructions);
                boards_seen_ = static_cast<std::uint32_t>(exchange_.reads.size());
                return;
            }
            fold_boards(*at);
        } else if (at->kind == InstructionKind::copy) {
            std::memcpy(bases_[at->target.base] + at->target.offset,
                        bases_[at->source.base] + at->source.offset, at->target.length);
        }
    }
}

inline void Execution::exchange() {
    const Address& source = program_.instructions.front().source;
    exchange_.data = bases_[source.base] + source.offset;
    const std::size_t seen = program_.board->exchange(exchange_);
    if (seen == exchange_.reads.size()) [[likely]] {
        read_boards();
    } else {
        await_exchange(seen);
    }
}

/// Some peers have not shared anything yet, or there was no room to share: advance() goes on, and
/// what it needs none of those for is done at once.
void Execution::await_exchange(std::size_t seen) {
    const bool shared = seen != transport::kNotShared;
    state_ = program_.board->broken() ? ExecutionState::failed : ExecutionState::running;
    cursor_ = shared ? 1 : 0;
    boards_seen_ = shared ? static_cast<std::uint32_t>(seen) : 0;
    if (shared && state_ == ExecutionState::running) {
        advance();
    }
}

void Engine::exchange(Execution& execution) {
    UCG_DEBUG_ASSERT(!execution.in_progress());
    execution.sequence_ = next_sequence_;
    execution.exchange_.turn.sequence = next_sequence_++;
    execution.exchange_.turn.turn = next_turn_++;
    execution.exchange();
    if (execution.in_progress()) {
        execution.next_ = nullptr;
        append(execution);
    } else if (execution.state_ == ExecutionState::failed) [[unlikely]] {
        abandon();
    }
}

} // namespace ucg::engine
