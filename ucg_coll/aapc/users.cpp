// The messages that pass a link fall into families: the global ones, by the subtree that sends or
// receives them, and the local ones. A family is a sequence of runs of phases. In each run an index
// counts up modulo some number, and the messages of the family that pass the link are those of the
// phases in which the index is in one arc of the circle.
#include "ucg_coll/aapc/users.hpp"

#include <algorithm>

namespace ucg::aapc {
namespace {

/// Phases [begin, end), in which an index counts up from `first`, modulo `modulus`. The phases
/// wanted are those in which it is one of the `wanted` indices from `low` on, likewise modulo
/// `modulus`.
struct Run {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t first = 0;
    std::uint32_t modulus = 1;
    std::uint32_t low = 0;
    std::uint32_t wanted = 1;

    /// Returns the index in a phase, counted from `low`.
    std::uint64_t offset(std::uint64_t phase) const {
        return (phase - begin + first + (modulus - low)) % modulus;
    }
    /// Returns the first wanted phase from `phase` on.
    std::optional<std::uint64_t> first_from(std::uint64_t phase) const {
        std::uint64_t found = std::max(phase, begin);
        if (const std::uint64_t at = offset(found); at >= wanted) {
            found += modulus - at;
        }
        return found < end ? std::optional(found) : std::nullopt;
    }
    /// Returns the last wanted phase up to `phase`.
    std::optional<std::uint64_t> last_to(std::uint64_t phase) const {
        if (phase < begin) {
            return std::nullopt;
        }
        const std::uint64_t last = std::min(phase, end - 1);
        const std::uint64_t at = offset(last);
        const std::uint64_t back = at < wanted ? 0 : at - wanted + 1;
        return last - begin >= back ? std::optional(last - back) : std::nullopt;
    }
};

/// A link and a direction: below the link lie the indices [begin, end) of subtree `subtree`.
struct Place {
    const Phases& phases;
    std::uint32_t subtree;
    std::uint32_t begin;
    std::uint32_t end;
    TreeDirection direction;

    const Layout& layout() const { return phases.layout(); }
    std::uint32_t size() const { return layout().size(subtree); }
    std::uint32_t size(std::uint32_t other) const { return layout().size(other); }
    std::uint32_t count() const { return end - begin; }
};

// A family tells how many runs it has (run_count), what the n-th is (run), and which is the last
// that begins by a phase (run_at); where none does, run_at is 0.

/// Global messages of t_0, which sends and receives in each phase. Steps 1 and 2.
struct GlobalOfFirst {
    const Place& at;

    std::uint64_t run_count() const { return at.layout().member_count() - at.size(); }
    std::uint64_t run_at(std::uint64_t phase) const { return phase / at.size(); }
    Run run(std::uint64_t round) const {
        const std::uint32_t shift =
            at.direction == TreeDirection::up ? 0 : at.phases.receiver_shift(round);
        const std::uint32_t first = (at.phases.first_sender(round) + shift) % at.size();
        const std::uint64_t begin = round * at.size();
        return {begin, begin + at.size(), first, at.size(), at.begin, at.count()};
    }
};

/// Local messages of t_0, numbered by their target. Step 3.
struct LocalOfFirst {
    const Place& at;

    std::uint64_t run_count() const { return at.size() - 1; }
    std::uint64_t run_at(std::uint64_t phase) const {
        return std::min<std::uint64_t>(phase / at.size(), run_count() - 1);
    }
    Run run(std::uint64_t round) const {
        const std::uint32_t size = at.size();
        const std::uint32_t shift = at.phases.receiver_shift(round);
        // The targets of sources below the link form an arc that lies so many before it. Of two
        // arcs of equal length, what one has and the other has not is again one arc.
        const std::uint32_t sources = (at.begin + size - shift) % size;
        const bool up = at.direction == TreeDirection::up;
        const std::uint32_t low = up ? sources : at.begin;
        const std::uint32_t other_ahead = up ? shift : size - shift;
        const std::uint32_t wraps =
            other_ahead + at.count() > size ? other_ahead + at.count() - size : 0;
        const std::uint32_t last = std::min(at.count(), other_ahead);
        const std::uint64_t begin = round * size;
        return {begin, begin + size,         at.phases.first_sender(round),
                size,  (low + wraps) % size, last - wraps};
    }
};

/// Global messages from t_i, i > 0, each sender of which has consecutive phases. Steps 2, 4 and 6.
struct GlobalFrom {
    const Place& at;

    std::uint64_t run_count() const { return at.layout().subtree_count() - 1; }
    /// Returns the subtree to which the n-th run sends: t_i+1, ..., t_k-1, t_0, ..., t_i-1.
    std::uint32_t target(std::uint64_t n) const {
        const std::uint64_t j = at.subtree + 1 + n;
        return static_cast<std::uint32_t>(j <= run_count() ? j : j - run_count() - 1);
    }
    std::uint64_t run_at(std::uint64_t phase) const {
        const std::uint64_t later = run_count() - at.subtree; // Subtrees after t_i.
        if (const std::uint32_t j = at.phases.late_target(at.subtree, phase); j != kNone) {
            return later + j;
        }
        const std::uint64_t place = at.layout().first(at.subtree + 1) + phase / at.size();
        return place < at.layout().member_count()
                   ? at.layout().subtree_of(static_cast<Position>(place)) - at.subtree - 1
                   : (later > 0 ? later - 1 : 0);
    }
    Run run(std::uint64_t n) const {
        const std::uint32_t j = target(n);
        const std::uint64_t group = at.phases.group_begin(at.subtree, j);
        const std::uint64_t turn = at.size(j);
        return {group + at.begin * turn, group + at.end * turn, 0, 1, 0, 1};
    }
};

/// Global messages into t_j, j > 0, whose members receive one after the other. Steps 1, 4 and 6.
struct GlobalInto {
    const Place& at;

    std::uint64_t run_count() const { return at.layout().subtree_count() - 1; }
    /// Returns the subtree from which the n-th run comes: t_j-1, ..., t_0, t_k-1, ..., t_j+1.
    std::uint32_t source(std::uint64_t n) const {
        return static_cast<std::uint32_t>(n < at.subtree ? at.subtree - 1 - n
                                                         : run_count() + at.subtree - n);
    }
    std::uint64_t run_at(std::uint64_t phase) const {
        const std::uint64_t place =
            at.layout().first(at.subtree + 1) + (at.phases.count() - 1 - phase) / at.size();
        if (place < at.layout().member_count()) {
            const std::uint32_t i = at.layout().subtree_of(static_cast<Position>(place));
            return run_count() + at.subtree - i;
        }
        return at.subtree - 1 - at.phases.early_source(at.subtree, phase);
    }
    Run run(std::uint64_t n) const {
        const std::uint32_t i = source(n);
        const std::uint64_t begin = at.phases.group_begin(i, at.subtree);
        const std::uint32_t first = i == 0 ? at.phases.designated_receiver(at.subtree, begin) : 0;
        const std::uint64_t end = begin + std::uint64_t{at.size(i)} * at.size();
        return {begin, end, first, at.size(), at.begin, at.count()};
    }
};

/// Local messages of t_i, i > 0: a run for each target on the wanted side of the link. Step 5.
struct LocalOf {
    const Place& at;

    std::uint64_t run_count() const {
        return at.direction == TreeDirection::up ? at.size() - at.count() : at.count();
    }
    std::uint32_t target(std::uint64_t n) const {
        if (at.direction == TreeDirection::down) {
            return static_cast<std::uint32_t>(at.begin + n);
        }
        return static_cast<std::uint32_t>(n < at.begin ? n : n + at.count());
    }
    std::uint64_t run_at(std::uint64_t phase) const {
        const std::uint64_t begin = at.phases.group_begin(at.subtree, at.subtree - 1);
        const std::uint64_t turn = phase < begin ? 0 : (phase - begin) / at.size(at.subtree - 1);
        if (at.direction == TreeDirection::up) {
            const std::uint64_t skipped =
                turn < at.begin ? 0 : std::min(turn + 1 - at.begin, std::uint64_t{at.count()});
            return turn + 1 > skipped ? turn - skipped : 0;
        }
        return turn < at.begin ? 0 : std::min<std::uint64_t>(turn - at.begin, at.count() - 1);
    }
    Run run(std::uint64_t n) const {
        const std::uint64_t begin = at.phases.group_begin(at.subtree, at.subtree - 1) +
                                    std::uint64_t{target(n)} * at.size(at.subtree - 1);
        const std::uint32_t first = at.phases.designated_receiver(at.subtree, begin);
        const bool up = at.direction == TreeDirection::up;
        return {begin,
                begin + at.size(),
                first,
                at.size(),
                up ? at.begin : at.end % at.size(),
                up ? at.count() : at.size() - at.count()};
    }
};

template <typename Family>
std::optional<std::uint64_t> first_from(const Family& family, std::uint64_t phase) {
    for (std::uint64_t n = family.run_at(phase); n < family.run_count(); ++n) {
        if (const auto found = family.run(n).first_from(phase)) {
            return found;
        }
    }
    return std::nullopt;
}

template <typename Family>
std::optional<std::uint64_t> last_to(const Family& family, std::uint64_t phase) {
    for (std::uint64_t n = family.run_at(phase) + 1; n-- > 0;) {
        if (const auto found = family.run(n).last_to(phase)) {
            return found;
        }
    }
    return std::nullopt;
}

/// Calls `look` with the families of the messages that pass the link: global, local.
template <typename Look>
void for_families(const Place& place, Look look) {
    const bool has_local = place.count() < place.size();
    if (place.subtree == 0) {
        look(GlobalOfFirst{place});
        if (has_local) {
            look(LocalOfFirst{place});
        }
        return;
    }
    if (place.direction == TreeDirection::up) {
        look(GlobalFrom{place});
    } else {
        look(GlobalInto{place});
    }
    if (has_local) {
        look(LocalOf{place});
    }
}

Place place_of(const Phases& phases, const TreeLink& link, TreeDirection direction) {
    const std::uint32_t subtree = phases.layout().subtree_of(link.below.begin);
    const Position first = phases.layout().first(subtree);
    return {phases, subtree, link.below.begin - first, link.below.end - first, direction};
}

/// Returns the message that passes the link in a phase. REQUIRES: one does.
PhaseMessage user(const Phases& phases, const TreeLink& link, TreeDirection direction,
                  std::uint64_t phase) {
    const std::uint32_t subtree = phases.layout().subtree_of(link.below.begin);
    const auto global = direction == TreeDirection::up ? phases.leaving(subtree, phase)
                                                       : phases.entering(subtree, phase);
    if (global && uses(link, direction, *global)) {
        return *global;
    }
    const auto local = phases.local(subtree, phase);
    UCG_ASSERT(local && uses(link, direction, *local));
    return *local;
}

} // namespace

std::optional<Use> previous_use(const Phases& phases, const TreeLink& link, TreeDirection direction,
                                std::uint64_t phase) {
    std::optional<std::uint64_t> found;
    if (phase > 0) {
        for_families(place_of(phases, link, direction), [&](const auto& family) {
            found = std::max(found, last_to(family, phase - 1)); // Nothing is less than any phase.
        });
    }
    if (!found) {
        return std::nullopt;
    }
    return Use{*found, user(phases, link, direction, *found)};
}

std::optional<Use> next_use(const Phases& phases, const TreeLink& link, TreeDirection direction,
                            std::uint64_t phase) {
    std::optional<std::uint64_t> found;
    if (phase + 1 < phases.count()) {
        for_families(place_of(phases, link, direction), [&](const auto& family) {
            const auto next = first_from(family, phase + 1);
            if (next && (!found || *next < *found)) {
                found = next;
            }
        });
    }
    if (!found) {
        return std::nullopt;
    }
    return Use{*found, user(phases, link, direction, *found)};
}

} // namespace ucg::aapc
