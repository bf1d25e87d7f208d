#include "ucg_coll/aapc/phases.hpp"

#include <numeric>

namespace ucg::aapc {
namespace {

/// Returns a - b modulo m. REQUIRES: a < m, b < m.
std::uint32_t minus(std::uint32_t a, std::uint32_t b, std::uint32_t m) {
    return a >= b ? a - b : a + (m - b);
}

/// Returns the inverse of a modulo m. REQUIRES: they are coprime.
std::uint64_t inverse(std::uint64_t a, std::uint64_t m) {
    std::int64_t previous = 0;
    std::int64_t current = 1;
    auto high = static_cast<std::int64_t>(m);
    auto low = static_cast<std::int64_t>(a % m);
    while (low > 1) {
        const std::int64_t quotient = high / low;
        previous = std::exchange(current, previous - quotient * current);
        high = std::exchange(low, high - quotient * low);
    }
    const auto modulus = static_cast<std::int64_t>(m);
    return static_cast<std::uint64_t>((current % modulus + modulus) % modulus);
}

} // namespace

Phases::Phases(const Layout& layout)
    : layout_(layout), size_(layout.size(0)),
      count_(std::uint64_t{size_} * (layout.member_count() - size_)) {
    UCG_ASSERT(layout.member_count() > 1);
}

std::uint64_t Phases::group_begin(std::uint32_t i, std::uint32_t j) const {
    if (i < j) {
        const std::uint64_t between = layout_.first(j) - layout_.first(i + 1);
        return layout_.size(i) * between;
    }
    const std::uint64_t between = layout_.first(i + 1) - layout_.first(j + 1);
    return count_ - layout_.size(j) * between;
}

std::uint32_t Phases::first_sender(std::uint64_t round) const {
    // The subtree that t_0 sends to, and the rotations since it began to.
    const std::uint32_t j = layout_.subtree_of(static_cast<Position>(size_ + round));
    const std::uint64_t rounds = size_ + round - layout_.first(j);
    const std::uint32_t rounds_of_rotation =
        layout_.size(j) / std::gcd(size_, layout_.size(j)); // b of section 4.3.
    return static_cast<std::uint32_t>(rounds / rounds_of_rotation);
}

std::uint32_t Phases::receiver_shift(std::uint64_t round) const {
    return static_cast<std::uint32_t>((round + 1) % size_);
}

std::uint32_t Phases::designated_receiver(std::uint32_t j, std::uint64_t phase) const {
    const std::uint32_t size = layout_.size(j);
    return minus(static_cast<std::uint32_t>(phase % size),
                 static_cast<std::uint32_t>(count_ % size), size);
}

std::uint32_t Phases::late_target(std::uint32_t i, std::uint64_t phase) const {
    std::uint32_t begin = 0; // All before it begin by `phase`.
    std::uint32_t end = i;
    while (begin < end) {
        const std::uint32_t middle = begin + (end - begin) / 2;
        if (group_begin(i, middle) <= phase) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin == 0 ? kNone : begin - 1;
}

std::uint32_t Phases::early_source(std::uint32_t j, std::uint64_t phase) const {
    std::uint32_t begin = 0; // From `end` on, all begin by `phase`: j - 1 does in phase 0.
    std::uint32_t end = j - 1;
    while (begin < end) {
        const std::uint32_t middle = begin + (end - begin) / 2;
        if (group_begin(middle, j) <= phase) {
            end = middle;
        } else {
            begin = middle + 1;
        }
    }
    return end;
}

PhaseMessage Phases::message(std::uint32_t i, std::uint64_t source, std::uint32_t j,
                             std::uint64_t target) const {
    return {static_cast<Position>(layout_.first(i) + source),
            static_cast<Position>(layout_.first(j) + target)};
}

/// Returns the message of a phase of t_i -> t_j by the broadcast pattern. Steps 4 and 6.
PhaseMessage Phases::broadcast(std::uint32_t i, std::uint32_t j, std::uint64_t phase) const {
    const std::uint64_t place = phase - group_begin(i, j);
    return message(i, place / layout_.size(j), j, place % layout_.size(j));
}

/// Returns the global message that t_0 sends in a phase. It sends in each phase, to one subtree
/// after the other. Step 1.
PhaseMessage Phases::from_first(std::uint64_t phase) const {
    const std::uint64_t round = phase / size_;
    const std::uint32_t j = layout_.subtree_of(static_cast<Position>(size_ + round));
    const std::uint64_t sender = (first_sender(round) + phase % size_) % size_;
    return message(0, sender, j, designated_receiver(j, phase));
}

/// Returns the global message that t_0 receives in a phase. It receives in each phase, from the
/// smallest subtree first. Step 2.
PhaseMessage Phases::into_first(std::uint64_t phase) const {
    const std::uint64_t round = phase / size_;
    const std::uint64_t before_end = (count_ - 1 - phase) / size_;
    const std::uint32_t i = layout_.subtree_of(static_cast<Position>(size_ + before_end));
    const std::uint64_t receiver =
        (first_sender(round) + phase % size_ + receiver_shift(round)) % size_;
    return message(i, (phase - group_begin(i, 0)) / size_, 0, receiver);
}

std::optional<PhaseMessage> Phases::leaving(std::uint32_t i, std::uint64_t phase) const {
    if (i == 0) {
        return from_first(phase);
    }
    const std::uint64_t early = layout_.first(i + 1) + phase / layout_.size(i);
    if (early < layout_.member_count()) {
        return broadcast(i, layout_.subtree_of(static_cast<Position>(early)), phase);
    }
    const std::uint32_t j = late_target(i, phase);
    if (j == kNone ||
        phase >= group_begin(i, j) + std::uint64_t{layout_.size(i)} * layout_.size(j)) {
        return std::nullopt;
    }
    return j == 0 ? into_first(phase) : broadcast(i, j, phase);
}

std::optional<PhaseMessage> Phases::entering(std::uint32_t j, std::uint64_t phase) const {
    if (j == 0) {
        return into_first(phase);
    }
    const std::uint64_t late = layout_.first(j + 1) + (count_ - 1 - phase) / layout_.size(j);
    if (late < layout_.member_count()) {
        return broadcast(layout_.subtree_of(static_cast<Position>(late)), j, phase);
    }
    const std::uint32_t i = early_source(j, phase);
    if (phase >= group_begin(i, j) + std::uint64_t{layout_.size(i)} * layout_.size(j)) {
        return std::nullopt;
    }
    return i == 0 ? from_first(phase) : broadcast(i, j, phase);
}

std::optional<PhaseMessage> Phases::local(std::uint32_t i, std::uint64_t phase) const {
    if (i == 0) { // Step 3: from who receives a global message to who sends one.
        const std::uint64_t round = phase / size_;
        if (round + 1 >= size_) {
            return std::nullopt;
        }
        const std::uint64_t target = (first_sender(round) + phase % size_) % size_;
        return message(0, (target + receiver_shift(round)) % size_, 0, target);
    }
    // Step 5: the first |M_i| phases of each sender in t_i -> t_i-1 have every designated receiver.
    const std::uint64_t begin = group_begin(i, i - 1);
    const std::uint32_t turn = layout_.size(i - 1);
    if (phase < begin || (phase - begin) % turn >= layout_.size(i)) {
        return std::nullopt;
    }
    const std::uint64_t target = (phase - begin) / turn;
    const std::uint32_t source = designated_receiver(i, phase);
    return source == target ? std::nullopt : std::optional(message(i, source, i, target));
}

std::uint64_t Phases::phase_of_sender(std::uint64_t round, std::uint32_t sender) const {
    return round * size_ + minus(sender, first_sender(round), size_);
}

std::uint64_t Phases::of_local(std::uint32_t i, std::uint32_t source, std::uint32_t target) const {
    if (i == 0) {
        return phase_of_sender(minus(source, target, size_) - 1, target);
    }
    const std::uint64_t begin = group_begin(i, i - 1) + std::uint64_t{target} * layout_.size(i - 1);
    return begin + minus(source, designated_receiver(i, begin), layout_.size(i));
}

/// Returns the phase of a message from t_0 to t_j. In phase x of the group, the source is x plus
/// the number of the rotation, modulo |M_0|, and the target follows from the phase modulo |M_j|. A
/// rotation takes lcm(|M_0|, |M_j|) phases, so that just one of the D = gcd(|M_0|, |M_j|) rotations
/// agrees with both modulo D, and the Chinese remainder theorem tells where in it.
std::uint64_t Phases::of_rotated(std::uint32_t j, std::uint32_t source,
                                 std::uint32_t target) const {
    const std::uint32_t size = layout_.size(j);
    const std::uint32_t divisor = std::gcd(size_, size);
    const std::uint64_t begin = group_begin(0, j);
    // The first phase of the group, counted from its beginning, that has this target.
    const std::uint32_t place = minus(target, designated_receiver(j, begin), size);
    const std::uint32_t rotation = minus(source % divisor, place % divisor, divisor);
    const std::uint32_t start = minus(source, rotation, size_);
    const std::uint64_t turns = size / divisor;
    const std::uint64_t ahead = minus(place, start % size, size) / divisor;
    const std::uint64_t repeats = turns == 1 ? 0 : ahead * inverse(size_ / divisor, turns) % turns;
    return begin + rotation * turns * size_ + start + repeats * size_;
}

std::uint64_t Phases::of(PhaseMessage message) const {
    const std::uint32_t i = layout_.subtree_of(message.source);
    const std::uint32_t j = layout_.subtree_of(message.target);
    const std::uint32_t source = message.source - layout_.first(i);
    const std::uint32_t target = message.target - layout_.first(j);
    if (i == j) {
        return of_local(i, source, target);
    }
    if (i == 0) {
        return of_rotated(j, source, target);
    }
    if (j == 0) {
        const std::uint64_t round = group_begin(i, 0) / size_ + source;
        const std::uint32_t sender = minus(target, receiver_shift(round), size_);
        return phase_of_sender(round, sender);
    }
    return group_begin(i, j) + std::uint64_t{source} * layout_.size(j) + target;
}

} // namespace ucg::aapc
