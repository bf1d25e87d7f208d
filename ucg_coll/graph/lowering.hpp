// A schedule lowered to a straight line of steps, once for everybody: the engine runs these steps
// with its transports, the simulator prices them, and what verify proves waits as they do.
//
// Issue is in schedule order. Local ops (copy, reduce, publish, share) are complete when they have
// been issued, so dependencies on them vanish; what remains is "before this step, these messages
// must have completed". Messages that follow one another without such a wait are posted together.
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

/// How many iterations of one message or event of a body may be in flight at once; at most 16. One
/// does not start before that of so many iterations earlier has completed, without a dependency
/// that says so. More than the rotation, so that buffers, not this, decide how far they overlap.
constexpr std::uint32_t iterations_in_flight(const Repeat& repeat) {
    return std::bit_ceil(std::max(4U, repeat.rotation + 1));
}

/// What an Address is relative to, by number: the own input, output and scratch, the part of that
/// which no peer names (Schedule::own_scratch_bytes), then the peers' flag slots, in the order of
/// LoweredSchedule::flag_slots.
inline constexpr std::uint32_t kOwnScratchBase = 3;
inline constexpr std::uint32_t kOwnBases = 4;
static_assert(static_cast<std::uint32_t>(BufferKind::scratch) < kOwnScratchBase);

/// Where bytes are, relative to buffers that are known when the collective starts.
struct Address {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t base = 0; ///< Into that table; of a peer's input, output or scratch its rank.
    BufferKind buffer = BufferKind::input;
    Stride stride = Stride::fixed;
    bool of_peer = false; ///< It is a peer's input, output or scratch.
    bool moves = false;   ///< With the iterations, or it is a peer's: more than base and offset.

    bool is_own_scratch() const { return !of_peer && base == kOwnScratchBase; }
    bool is_flag_slot() const { return !of_peer && base >= kOwnBases; }
    bool operator==(const Address&) const = default;
};

/// "This message must have completed." A message outside repeats has one slot; inside, it has
/// `mask + 1` slots used round robin, so that iterations may overlap.
struct Wait {
    std::uint32_t slot = 0;    ///< The first of the message.
    std::uint8_t mask = 0;     ///< Number of its slots - 1; a power of two minus one.
    std::uint8_t distance = 0; ///< Iterations back, for waits within a repeat.
    bool every_slot = false;   ///< All of them: the wait of a step after the repeat.

    bool operator==(const Wait&) const = default;
};

/// Calls visit(slot) for what `wait` waits for in iteration `k`.
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

/// No switch over kinds has a default, here as of ops: a kind that is added does not compile until
/// engine and simulators have said what it does.
enum class StepKind : std::uint8_t {
    post,         ///< Post messages [first, first + count): ops that follow one another.
    copy,         ///< addresses[first + 1] to addresses[first]
    reduce,       ///< The `count` addresses behind addresses[first], in this order, to that one
    reduce_parts, ///< The same; `message` brings one of them, and may be combined where it arrives.
    publish,      ///< addresses[first] to its staging buffer, unless peers reach it in place
    share,        ///< addresses[first] to the own flag slot
    wait, ///< Nothing more than the waits, for flag slots [first, first + count), each an op.
    end_iteration, ///< Back to step `first`, or on after the last iteration.
    finish,        ///< The collective is complete.
};

struct Step {
    StepKind kind = StepKind::finish;
    bool in_repeat = false;
    bool waits = false; ///< For messages, or for flag slots that no step before has waited for.
    std::uint8_t carrier = 0; ///< Of its messages; see Carriers.
    std::uint32_t count = 0;
    std::uint32_t first = 0;
    std::uint32_t first_wait = 0;
    std::uint32_t wait_count = 0;
    std::uint32_t flag_slots_until = 0; ///< Waits for all of these before this one.
    std::uint32_t message = 0;          ///< reduce_parts: of LoweredSchedule::messages,
    std::uint32_t arriving = 0;         ///< and which of the operands that is.
    std::uint32_t op = 0; ///< The (first) op that this is; of the end, how many ops there are.

    bool operator==(const Step&) const = default;
};

/// A message or signal, or one that a repeat sends or receives again and again.
struct MessagePlan {
    Address address; ///< Of a signal, no bytes.
    std::uint32_t slot = 0;
    Rank peer = kNoRank;
    std::uint16_t first_step = 0; ///< Which of the messages between these two, on this side and
                                  ///< channel, modulo 2^16.
    std::uint16_t steps_per_iteration = 0;
    std::uint8_t mask = 0; ///< Number of slots - 1.
    bool outgoing = false; ///< A send or a signal.
    bool signals = false;  ///< A signal or its await.

    std::uint32_t slot_at(std::uint64_t k) const {
        return slot + static_cast<std::uint32_t>(k & mask);
    }
    bool operator==(const MessagePlan&) const = default;
};

struct LoweredSchedule {
    std::vector<Step> steps; ///< Ends with `finish`.
    std::vector<Wait> waits;
    std::vector<MessagePlan> messages; ///< In the order of their ops; so are their slots.
    std::vector<Address> addresses;
    std::vector<FlagSlotRead> flag_slots; ///< Each once, in the order of waiting for them.
    std::vector<Repeat> repeats;          ///< As in the schedule: of its ops.
    std::uint32_t slot_count = 0;
    bool helped = false; ///< As in the schedule: peers' buffers are reached by the kernel.

    std::span<const Wait> waits_of(const Step& step) const {
        return {waits.data() + step.first_wait, step.wait_count};
    }
    /// Of a copy or reduction: what it writes, then what it reads; of a publish or share what it
    /// reads. All of one length.
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

/// By what messages to a peer go, as a small number: only messages of one carrier are posted
/// together. The default: all by one.
struct Carriers {
    std::uint8_t (*carrier)(Rank peer, void* context) = nullptr;
    void* context = nullptr;
};

/// Fails with unsupported if the schedule has more of anything than there are numbers for; the
/// message names the rank, the op at which that is so, and the limit.
Status check_limits(const Schedule& schedule);

/// Fails as check_limits() does. REQUIRES: verify accepts the schedules of all ranks, of which this
/// is one, or would as far as check_structure() goes.
Result<LoweredSchedule> lower(const Schedule& schedule, Carriers carriers = {});

/// Do steps that are issued one by one, each once its waits are over, wait for all that `schedule`
/// says? Part of what verify proves. Fails with invalid_argument, naming the op that does not wait.
/// Time and memory as of unroll().
Status verify_lowering(const Schedule& schedule, const LoweredSchedule& lowered);

/// Part of lower(): makes reductions reduce_parts where that changes nothing but who reads what
/// when. Such a one comes next after a receive into scratch has been posted and waits for nothing
/// else, and nobody else reads those bytes; no peer reaches them. Parts of a message are whole
/// cache lines, so elements that do not divide one are left alone.
void combine_where_it_arrives(const Schedule& schedule, LoweredSchedule& lowered);

/// Where somebody is who goes through the steps.
struct Position {
    std::uint64_t iteration = 0; ///< Of the repeat that `step` is in, else 0.
    std::uint32_t step = 0;
    std::uint32_t repeat = 0; ///< The one that `step` is in or before.

    /// From an `end_iteration`.
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

/// How long `address`, of the step at `at`, is there.
inline std::uint64_t length_at(const Address& address, const Position& at,
                               const LoweredSchedule& lowered) {
    return lowered.steps[at.step].in_repeat
               ? lowered.repeats[at.repeat].length_at(address.length, at.iteration)
               : address.length;
}

std::string_view name(StepKind kind);

/// A line for each step and each message of a post: "2: reduce input[0:8] scratch[0:8] ->
/// output[0:8] after slot 1".
std::string to_text(const LoweredSchedule& lowered);

} // namespace ucg::graph
