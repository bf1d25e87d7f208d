// The steps of one member.
#include <algorithm>
#include <map>
#include <tuple>

#include "ucg_coll/aapc/listed.hpp"

namespace ucg::aapc {
namespace {

/// A signal that must pass between this member and another: after the message `earlier` has ended,
/// before the message `later` begins.
struct Word {
    Position other = 0;
    std::uint64_t earlier = 0; ///< The phases of the two messages.
    std::uint64_t later = 0;
    std::size_t step = 0; ///< This member's step that waits or has ended.
};

void sort_words(std::vector<Word>& words) {
    std::sort(words.begin(), words.end(), [](const Word& a, const Word& b) {
        return std::tuple(a.other, a.later, b.earlier) < std::tuple(b.other, b.later, a.earlier);
    });
}

/// Drops words that other words between the same two members imply, so that counting matches the
/// rest. If the message `earlier` of one word is not later than that of another, and its `later` is
/// not earlier than the other's, that other word orders these two messages as well. Both members
/// see the same words. REQUIRES: words are sorted, and members send one message after another.
void drop_implied(std::vector<Word>& words) {
    std::vector<Word> kept;
    for (const Word& word : words) { // By `later`, and of one `later` the last `earlier` first.
        if (kept.empty() || kept.back().other != word.other || kept.back().earlier < word.earlier) {
            kept.push_back(word);
        }
    }
    words = std::move(kept);
}

void sort_steps(std::vector<MemberStep>& steps, Position member) {
    std::sort(steps.begin(), steps.end(), [&](const MemberStep& a, const MemberStep& b) {
        const bool a_receives = a.message.message.target == member;
        const bool b_receives = b.message.message.target == member;
        return std::tuple(a.message.phase, a_receives) < std::tuple(b.message.phase, b_receives);
    });
}

Position signaller_of(PhaseMessage message, Signaller signaller) {
    return signaller == Signaller::source ? message.source : message.target;
}

/// Returns the step in which the member sends or receives in a phase.
std::uint32_t step_in(const std::vector<MemberStep>& steps, Position member, std::uint64_t phase,
                      bool receives) {
    const auto place =
        std::partition_point(steps.begin(), steps.end(), [&](const MemberStep& step) {
            return std::tuple(step.message.phase, step.message.message.target == member) <
                   std::tuple(phase, receives);
        });
    return static_cast<std::uint32_t>(place - steps.begin());
}

/// The words of one member.
struct Words {
    std::vector<Word> awaited;
    std::vector<Word> sent;
};

/// Writes a member's words into its steps.
class Assignment {
  public:
    Assignment(std::vector<MemberStep>& steps, Position member, Signaller signaller,
               std::uint32_t window)
        : steps_(steps), member_(member), signaller_(signaller), window_(window),
          sends_before_(steps.size(), 0) {
        for (std::uint32_t i = 0; i < steps_.size(); ++i) {
            sends_before_[i] = static_cast<std::uint32_t>(sends_.size());
            if (steps_[i].message.message.source == member_ && !steps_[i].within_node) {
                sends_.push_back(i);
            }
        }
    }

    void add(Words words) {
        sort_words(words.awaited);
        sort_words(words.sent);
        if (window_ == 1) {
            drop_implied(words.awaited);
            drop_implied(words.sent);
        }
        follow_own();
        for (const Word& word : words.awaited) {
            await(word);
        }
        place(words.sent);
    }

  private:
    /// Makes each send wait for the one before it by the window, so that as many messages of its
    /// own are under way at once as the window has.
    void follow_own() {
        for (std::size_t i = window_; i < sends_.size(); ++i) {
            steps_[sends_[i]].after.push_back(sends_[i - window_]);
        }
    }

    void await(const Word& word) {
        MemberStep& step = steps_[word.step];
        if (word.other != member_) {
            step.awaits.push_back(word.other);
            return;
        }
        const bool received = signaller_ == Signaller::destination;
        const std::uint32_t earlier = step_in(steps_, member_, word.earlier, received);
        if (received ||
            std::find(step.after.begin(), step.after.end(), earlier) == step.after.end()) {
            step.after.push_back(earlier);
        }
    }

    /// Returns the step in which the member signals that a message of its own has ended. It is not
    /// before the window is full: a member that waits for the end of a message in order to signal
    /// it could have begun another one. But it is before any message in the phase of the message
    /// that waits for the signal, or later: otherwise members would wait for one another in a
    /// circle.
    std::uint32_t place_of(const Word& word) const {
        const auto ended = static_cast<std::uint32_t>(word.step);
        if (window_ == 1) {
            return ended;
        }
        const std::size_t full = sends_before_[ended] + window_ - 1;
        const std::uint32_t first_later = step_in(steps_, member_, word.later, false);
        return std::min(full < sends_.size() ? sends_[full] : first_later, first_later - 1);
    }

    /// Writes the signals. Words for one member keep the order in which it awaits them.
    void place(const std::vector<Word>& words) {
        struct Placed {
            std::uint32_t step;
            Signal signal;
            std::uint32_t ready; ///< The last step for which this word waits, or one before it.
        };
        std::vector<Placed> all;
        for (const Word& word : words) {
            if (word.other == member_) {
                continue;
            }
            const auto ended = static_cast<std::uint32_t>(word.step);
            Placed placed{place_of(word), {word.other, ended}, ended};
            if (!all.empty() && all.back().signal.to == word.other) {
                placed.step = std::max(placed.step, all.back().step);
                placed.ready = std::max(placed.ready, all.back().ready);
            }
            all.push_back(placed);
        }
        std::stable_sort(all.begin(), all.end(),
                         [](const Placed& a, const Placed& b) { return a.ready < b.ready; });
        for (const Placed& placed : all) {
            steps_[placed.step].signals.push_back(placed.signal);
        }
    }

    std::vector<MemberStep>& steps_;
    Position member_;
    Signaller signaller_;
    std::uint32_t window_;
    std::vector<std::uint32_t> sends_;        ///< Steps that send to other nodes.
    std::vector<std::uint32_t> sends_before_; ///< By step: how many of sends_ are before it.
};

} // namespace

std::vector<MemberStep> steps_of(const Phases& phases, Position member, Signaller signaller,
                                 std::uint32_t window) {
    UCG_ASSERT(window == 1 || (window > 0 && signaller == Signaller::source));
    const Layout& layout = phases.layout();
    std::vector<MemberStep> steps;
    steps.reserve(2 * std::size_t{layout.member_count()});
    for (Position other = 0; other < layout.member_count(); ++other) {
        if (other != member) {
            const bool within = layout.on_one_node(member, other);
            for (const PhaseMessage message :
                 {PhaseMessage{other, member}, PhaseMessage{member, other}}) {
                steps.push_back({{phases.of(message), message}, within, {}, {}, {}});
            }
        }
    }
    sort_steps(steps, member);
    Words words;
    Order order(phases, window);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Use& own = steps[i].message;
        if (own.message.source == member) {
            for (const Use& earlier : order.before(own)) {
                words.awaited.push_back(
                    {signaller_of(earlier.message, signaller), earlier.phase, own.phase, i});
            }
        }
        if (signaller_of(own.message, signaller) == member) {
            for (const Use& later : order.after(own)) {
                words.sent.push_back({later.message.source, own.phase, later.phase, i});
            }
        }
    }
    Assignment(steps, member, signaller, window).add(std::move(words));
    return steps;
}

std::vector<MemberStep> steps_of(const Listed& listed, Position machine) {
    std::vector<MemberStep> steps;
    for (const Use& use : listed.messages) {
        if (use.message.source == machine || use.message.target == machine) {
            steps.push_back({use, false, {}, {}, {}});
        }
    }
    sort_steps(steps, machine);
    std::map<std::pair<Position, Position>, std::size_t> step_of;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        step_of[{steps[i].message.message.source, steps[i].message.message.target}] = i;
    }
    Words words;
    for (const auto& [earlier, later] : listed.syncs) {
        if (later.message.source == machine) {
            words.awaited.push_back({earlier.message.source, earlier.phase, later.phase,
                                     step_of.at({later.message.source, later.message.target})});
        }
        if (earlier.message.source == machine) {
            words.sent.push_back({later.message.source, earlier.phase, later.phase,
                                  step_of.at({earlier.message.source, earlier.message.target})});
        }
    }
    Assignment(steps, machine, Signaller::source, 1).add(std::move(words));
    return steps;
}

} // namespace ucg::aapc
