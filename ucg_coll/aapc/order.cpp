#include "ucg_coll/aapc/order.hpp"

#include <algorithm>
#include <unordered_map>

namespace ucg::aapc {

/// Makes path_ of the links from the source up to, but without, the first one below which the
/// target lies too, and likewise of those down to the target.
void Order::find_path(PhaseMessage message) {
    const Layout& layout = phases_.layout();
    path_.clear();
    if (layout.on_one_node(message.source, message.target)) {
        return;
    }
    const auto climb = [&](Position from, Position to, TreeDirection direction) {
        for (std::uint32_t link = layout.innermost_link(from);
             link != kNone && !layout.link(link).below.contains(to);
             link = layout.link(link).outer) {
            path_.push_back({link, direction, std::nullopt});
        }
    };
    climb(message.source, message.target, TreeDirection::up);
    climb(message.target, message.source, TreeDirection::down);
}

/// Returns whether the candidate is the neighbour on every link of the path that it passes.
bool Order::adjacent_everywhere(const Use& candidate) const {
    return std::all_of(path_.begin(), path_.end(), [&](const MemberStep& step) {
        return !uses(phases_.layout().link(step.link), step.direction, candidate.message) ||
               step.neighbour->phase == candidate.phase;
    });
}

/// Returns the message that is as many messages after `phase`, or before it, as the window has;
/// nothing if there are not so many.
std::optional<Use> Order::neighbour(const MemberStep& step, std::uint64_t phase, bool later) const {
    const TreeLink& link = phases_.layout().link(step.link);
    std::optional<Use> use;
    for (std::uint32_t i = 0; i < window_; ++i) {
        use = later ? next_use(phases_, link, step.direction, phase)
                    : previous_use(phases_, link, step.direction, phase);
        if (!use) {
            return std::nullopt;
        }
        phase = use->phase;
    }
    return use;
}

/// With a window of 1, leaves out messages that are ordered by way of another one. With more, the
/// messages of a link make several rows, and two messages may be in the same row on one link and
/// not on another, so none is left out.
const std::vector<Use>& Order::neighbours(const Use& message, bool later) {
    found_.clear();
    find_path(message.message);
    for (MemberStep& step : path_) {
        step.neighbour = neighbour(step, message.phase, later);
    }
    for (const MemberStep& step : path_) {
        if (step.neighbour && (window_ > 1 || adjacent_everywhere(*step.neighbour)) &&
            std::find(found_.begin(), found_.end(), *step.neighbour) == found_.end()) {
            found_.push_back(*step.neighbour);
        }
    }
    std::sort(found_.begin(), found_.end(), [](const Use& a, const Use& b) {
        return a.phase != b.phase ? a.phase < b.phase : a.message.source < b.message.source;
    });
    return found_;
}

std::vector<Use> all_messages(const Phases& phases) {
    const Position count = phases.layout().member_count();
    std::vector<Use> messages;
    messages.reserve(std::size_t{count} * (count - 1));
    for (Position source = 0; source < count; ++source) {
        for (Position target = 0; target < count; ++target) {
            if (source != target) {
                const PhaseMessage message{source, target};
                messages.push_back({phases.of(message), message});
            }
        }
    }
    std::stable_sort(messages.begin(), messages.end(),
                     [](const Use& a, const Use& b) { return a.phase < b.phase; });
    return messages;
}

namespace {

/// For a message, by source: the phase + 1 of the last message of that source which precedes it or
/// is it; 0 if there is none. Messages of a source follow one another, so all messages of that
/// source with earlier phases precede it as well.
using Reach = std::vector<std::uint64_t>;

/// The Reach of each message that others, which are still to be looked at, come right after.
class Reaches {
  public:
    explicit Reaches(const Phases& phases) : phases_(phases) {}

    const Reach& of(const Use& message) const { return kept_.at(key(message)).reach; }
    /// Says that one of the messages that come right after `message` has been looked at. After the
    /// last of them, what is known of `message` is dropped.
    void release(const Use& message) {
        const auto place = kept_.find(key(message));
        if (--place->second.awaited == 0) {
            kept_.erase(place);
        }
    }
    void keep(const Use& message, Reach reach, std::size_t awaited) {
        if (awaited > 0) {
            kept_.emplace(key(message), Kept{std::move(reach), awaited});
        }
    }

  private:
    struct Kept {
        Reach reach;
        std::size_t awaited = 0;
    };
    std::uint64_t key(const Use& message) const {
        return std::uint64_t{message.message.source} * phases_.layout().member_count() +
               message.message.target;
    }
    const Phases& phases_;
    std::unordered_map<std::uint64_t, Kept> kept_;
};

} // namespace

std::vector<Sync> minimal_syncs(const Phases& phases) {
    std::vector<Sync> syncs;
    Order order(phases);
    Reaches reaches(phases);
    for (const Use& message : all_messages(phases)) {
        const std::vector<Use> before = order.before(message);
        Reach reach(phases.layout().member_count(), 0);
        // The latest first: what an earlier one reaches, it may reach by way of a later one.
        for (std::size_t i = before.size(); i-- > 0;) {
            const Use& earlier = before[i];
            const bool by_another = reach[earlier.message.source] > earlier.phase;
            if (!by_another && earlier.message.source != message.message.source) {
                syncs.push_back({earlier, message});
            }
            const Reach& known = reaches.of(earlier);
            for (std::size_t source = 0; source < reach.size(); ++source) {
                reach[source] = std::max(reach[source], known[source]);
            }
            reaches.release(earlier);
        }
        reach[message.message.source] = message.phase + 1;
        reaches.keep(message, std::move(reach), order.after(message).size());
    }
    return syncs;
}

} // namespace ucg::aapc
