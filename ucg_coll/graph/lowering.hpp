// A schedule lowered to a straight line of steps. All readers of schedules share these steps: the
// engine runs them with its transports, the simulator prices them, and verify proves that they wait
// for all that the schedule says.
//
// Steps are issued in schedule order. Local ops (copy, reduce, publish, share) are complete when
// they have been issued, so dependencies on them vanish; what remains is "before this step, these
// messages must have completed". Messages that follow one another without such a wait are posted
// together.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/flag_slots.hpp"
#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// Returns in how many iterations at once a message or signal of a body may be in flight, at most
/// 16. It does not start in an iteration before it has completed in the iteration that lies so many
/// before, even if no dependency says so. The number is greater than the rotation, so that buffers
/// decide how far iterations overlap, not this limit.
constexpr std::uint32_t iterations_in_flight(const Repeat& repeat) {
    return std::bit_ceil(std::max(4U, repeat.rotation + 1));
}

/// Numbers of the memory that an Address may be relative to: 0 to 2 are the rank's own input,
/// output and scratch, 3 is the part of its scratch that no peer names
/// (Schedule::own_scratch_bytes), and from 4 on come the peers' flag slots, in the order of
/// LoweredSchedule::flag_slots.
inline constexpr std::uint32_t kOwnScratchBase = 3;
inline constexpr std::uint32_t kOwnBases = 4;
static_assert(static_cast<std::uint32_t>(BufferKind::scratch) < kOwnScratchBase);

/// Where bytes are, relative to buffers that become known when the collective starts.
struct Address {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t base = 0; ///< A number as above; if `of_peer`, the peer's rank.
    BufferKind buffer = BufferKind::input;
    Stride stride = Stride::fixed;
    bool of_peer = false; ///< Whether it lies in a peer's input, output or scratch.
    bool moves = false;   ///< Whether it has a stride or is a peer's: base + offset do not find it.

    bool is_own_scratch() const { return !of_peer && base == kOwnScratchBase; }
    bool is_flag_slot() const { return !of_peer && base >= kOwnBases; }
    bool operator==(const Address&) const = default;
};

/// The condition "this message must have completed". A message outside repeats has one slot; a
/// message inside has `mask + 1` slots, which are used round robin so that iterations may overlap.
struct Wait {
    std::uint32_t slot = 0;    ///< The first slot of the message.
    std::uint8_t mask = 0;     ///< Number of its slots - 1; a power of two minus one.
    std::uint8_t distance = 0; ///< How many iterations back, for waits within a repeat.
    bool every_slot = false;   ///< Whether for all its slots: the wait of a step after the repeat.

    bool operator==(const Wait&) const = default;
};

/// Calls visit(slot) for each slot that `wait` waits for in iteration `k`.
template <typename Visit>
void for_each_slot(const Wait& wait, std::uint64_t k, Visit&& visit) {
    if (wait.mask == 0) [[likely]] {
        visit(wait.slot);
    } else if (wait.every_slot) {
        for (std::uint32_t i = 0; i <= wait.mask; ++i) {
            visit(wait.slot + i);
        }
    } else if (k >= wait.distance) {
        visit(wait.slot + static_cast<std::uint32_t>((k - wait.distance) & wait.mask));
    }
}

/// The kinds of steps. As for OpKind, no switch over kinds has a default, so that code with a new
/// kind does not compile until engine and simulators say what it does.
enum class StepKind : std::uint8_t {
    post,         ///< Posts messages [first, first + count), of as many ops in a row.
    copy,         ///< Copies addresses[first + 1] to addresses[first].
    reduce,       ///< Combines the `count` addresses behind addresses[first], in order, into that.
    reduce_parts, ///< Like reduce, but may combine operand `arriving` where `message` arrives.
    publish, ///< Copies addresses[first] to its staging buffer, unless peers reach it in place.
    share,   ///< Copies addresses[first] to the own flag slot.
    wait,    ///< Only waits, for flag slots [first, first + count), of one op each.
    end_iteration, ///< Goes back to step `first`, or on after the last iteration.
    finish,        ///< Ends the collective.
};

/// One step; the kind says what `first` and `count` mean.
struct Step {
    StepKind kind = StepKind::finish;
    bool in_repeat = false;
    bool waits = false; ///< For messages, or for flag slots that no earlier step has waited for.
    std::uint8_t carrier = 0; ///< What carries its messages; see Carriers.
    std::uint32_t count = 0;
    std::uint32_t first = 0;
    std::uint32_t first_wait = 0; ///< Index into LoweredSchedule::waits.
    std::uint32_t wait_count = 0;
    std::uint32_t flag_slots_until = 0; ///< It waits for all LoweredSchedule::flag_slots before it.
    std::uint32_t message = 0;          ///< reduce_parts: index into LoweredSchedule::messages.
    std::uint32_t arriving = 0;         ///< reduce_parts: which operand the message brings.
    std::uint32_t op = 0; ///< The (first) op that the step is; of `finish`, the number of ops.

    bool operator==(const Step&) const = default;
};

/// A send, recv, signal or await. One in a repeat stands for the messages of all iterations.
struct MessagePlan {
    Address address;        ///< A signal has no bytes.
    std::uint32_t slot = 0; ///< The first of its slots.
    Rank peer = kNoRank;
    std::uint16_t first_step = 0; ///< How many messages come before it between the two ranks in
                                  ///< its direction and channel, modulo 2^16.
    std::uint16_t steps_per_iteration = 0; ///< By how much that number grows per iteration.
    std::uint8_t mask = 0;                 ///< Number of slots - 1.
    bool outgoing = false;                 ///< Whether it is a send or a signal.
    bool signals = false;                  ///< Whether it is a signal or its await.

    std::uint32_t slot_at(std::uint64_t k) const {
        return slot + static_cast<std::uint32_t>(k & mask);
    }
    bool operator==(const MessagePlan&) const = default;
};

struct LoweredSchedule {
    std::vector<Step> steps; ///< Ends with `finish`.
    std::vector<Wait> waits;
    std::vector<MessagePlan> messages; ///< In the order of their ops, in which slots are numbered.
    std::vector<Address> addresses;
    std::vector<FlagSlotRead> flag_slots; ///< Each once, in the order in which steps wait for them.
    std::vector<Repeat> repeats;          ///< As in the schedule: their indexes are those of ops.
    std::uint32_t slot_count = 0;
    bool helped = false; ///< As in the schedule: ranks reach peers' buffers by the kernel.

    std::span<const Wait> waits_of(const Step& step) const {
        return {waits.data() + step.first_wait, step.wait_count};
    }
    /// Returns the addresses of a step, which all have one length: for a copy or reduction what it
    /// writes, then what it reads; for a publish or share what it reads; none for other kinds.
    std::span<const Address> addresses_of(const Step& step) const {
        switch (step.kind) {
        case StepKind::copy:
        case StepKind::reduce:
        case StepKind::reduce_parts: return {addresses.data() + step.first, step.count + 1U};
        case StepKind::publish:
        case StepKind::share: return {addresses.data() + step.first, 1};
        case StepKind::post:
        case StepKind::wait:
        case StepKind::end_iteration:
        case StepKind::finish: break;
        }
        return {};
    }
    bool operator==(const LoweredSchedule&) const = default;
};

/// A function that numbers what carries messages to a peer, and its context. Only messages of one
/// carrier are posted together. By default one carrier carries all.
struct Carriers {
    std::uint8_t (*carrier)(Rank peer, void* context) = nullptr;
    void* context = nullptr;
};

/// Fails with unsupported if the schedule has more of anything than a lowered schedule can number;
/// the message names the rank, the op at which a limit is exceeded, and the limit.
Status check_limits(const Schedule& schedule);

/// Returns `schedule` lowered. Fails as check_limits() does. REQUIRES: verify accepts the schedules
/// of all ranks, of which this is one; check_structure() alone suffices.
Result<LoweredSchedule> lower(const Schedule& schedule, Carriers carriers = {});

/// Checks that steps which are issued one by one, each once its waits are over, wait for all that
/// `schedule` says, and that reduce_parts is as combine_where_it_arrives() says. This is part of
/// what verify proves. Fails with invalid_argument, naming the op that does not wait, or that reads
/// what is not there. Takes as much time and memory as unroll().
Status verify_lowering(const Schedule& schedule, const LoweredSchedule& lowered);

/// Part of lower(): turns reductions into reduce_parts where this changes only when bytes are read,
/// and by whom. Such a reduction waits only for a receive into scratch, which was posted before it
/// without a wait in between; nothing else reads the received bytes, and no peer reaches them.
/// Parts of a message are whole cache lines, so a schedule whose elements do not divide a cache
/// line stays as it is.
void combine_where_it_arrives(const Schedule& schedule, LoweredSchedule& lowered);

/// A position in the steps, for whoever goes through them.
struct Position {
    std::uint64_t iteration = 0; ///< Of the repeat that `step` is in, else 0.
    std::uint32_t step = 0;
    std::uint32_t repeat = 0; ///< The repeat that `step` is in, or the next one.

    bool operator==(const Position&) const = default;

    /// Goes on from a step of kind `end_iteration`: back to the body, or behind the repeat.
    void end_iteration(const LoweredSchedule& lowered) {
        if (++iteration < lowered.repeats[repeat].iterations) {
            step = lowered.steps[step].first;
        } else {
            iteration = 0;
            ++repeat;
            ++step;
        }
    }
};

/// Returns the length, in the iteration of `at`, of `address`, which the step at `at` names.
inline std::uint64_t length_at(const Address& address, const Position& at,
                               const LoweredSchedule& lowered) {
    return lowered.steps[at.step].in_repeat
               ? lowered.repeats[at.repeat].length_at(address.length, at.iteration)
               : address.length;
}

std::string_view name(StepKind kind);

/// Returns a text with a line for each step and for each message of a post: "2: reduce input[0:8]
/// scratch[0:8] -> output[0:8] after slot 1".
std::string to_text(const LoweredSchedule& lowered);

} // namespace ucg::graph
