// One member's part of the schedule.
#include <algorithm>
#include <map>
#include <tuple>

#include "ucg_coll/aapc/listed.hpp"

namespace ucg::aapc {
namespace {

/// Word that must pass between this member and another: after `earlier`, before `later`.
struct Word {
    Position other = 0;
    std::uint64_t earlier = 0; ///< The messages' phases.
    std::uint64_t later = 0;
    std::size_t step = 0; ///< Of this member.
};

/// Drops what other words between the same two already say, so that counting matches the rest.
/// Where one comes of a message that is not later, and is awaited by one that is not earlier, than
/// another's, that other one orders these two as well. Both members see the same words.
void drop_implied(std::vector<Word>& words) {
    std::sort(words.begin(), words.end(), [](const Word& a, const Word& b) {
        return std::tuple(a.other, a.later, b.earlier) < std::tuple(b.other, b.later, a.earlier);
    });
    std::vector<Word> kept;
    for (const Word& word : words) { // By `later`, and of one `later` the last `earlier` first.
        if (kept.empty() || kept.back().other != word.other || kept.back().earlier < word.earlier) {
            kept.push_back(word);
        }
    }
    words = std::move(kept);
}

void sort_steps(std::vector<Step>& steps, Position member) {
    std::sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
        const bool a_receives = a.message.message.target == member;
        const bool b_receives = b.message.message.target == member;
        return std::tuple(a.message.phase, a_receives) < std::tuple(b.message.phase, b_receives);
    });
}

Position signaller_of(Message message, Signaller signaller) {
    return signaller == Signaller::source ? message.source : message.target;
}

/// The step in which the member receives in a phase.
std::uint32_t received_in(const std::vector<Step>& steps, Position member, std::uint64_t phase) {
    const auto place = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
        return std::tuple(step.message.phase, step.message.message.target == member) <
               std::tuple(phase, true);
    });
    return static_cast<std::uint32_t>(place - steps.begin());
}

/// Both lists are of one member.
void add_words(std::vector<Step>& steps, Position member, Signaller signaller,
               std::vector<Word> awaited, std::vector<Word> sent) {
    drop_implied(awaited);
    drop_implied(sent);
    for (const Word& word : awaited) {
        if (word.other != member) {
            steps[word.step].awaits.push_back(word.other);
        } else if (signaller == Signaller::destination) {
            steps[word.step].after.push_back(received_in(steps, member, word.earlier));
        }
    }
    for (const Word& word : sent) {
        if (word.other != member) {
            steps[word.step].signals.push_back(word.other);
        }
    }
}

} // namespace

std::vector<Step> steps_of(const Phases& phases, Position member, Signaller signaller) {
    const Layout& layout = phases.layout();
    std::vector<Step> steps;
    steps.reserve(2 * std::size_t{layout.member_count()});
    for (Position other = 0; other < layout.member_count(); ++other) {
        if (other != member) {
            const bool within = layout.on_one_node(member, other);
            for (const Message message : {Message{other, member}, Message{member, other}}) {
                steps.push_back({{phases.of(message), message}, within, {}, {}, {}});
            }
        }
    }
    sort_steps(steps, member);
    std::vector<Word> awaited;
    std::vector<Word> sent;
    Order order(phases);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Use& own = steps[i].message;
        if (own.message.source == member) {
            for (const Use& earlier : order.before(own)) {
                awaited.push_back(
                    {signaller_of(earlier.message, signaller), earlier.phase, own.phase, i});
            }
        }
        if (signaller_of(own.message, signaller) == member) {
            for (const Use& later : order.after(own)) {
                sent.push_back({later.message.source, own.phase, later.phase, i});
            }
        }
    }
    add_words(steps, member, signaller, std::move(awaited), std::move(sent));
    return steps;
}

std::vector<Step> steps_of(const Listed& listed, Position machine) {
    std::vector<Step> steps;
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
    std::vector<Word> awaited;
    std::vector<Word> sent;
    for (const auto& [earlier, later] : listed.syncs) {
        if (later.message.source == machine) {
            awaited.push_back({earlier.message.source, earlier.phase, later.phase,
                               step_of.at({later.message.source, later.message.target})});
        }
        if (earlier.message.source == machine) {
            sent.push_back({later.message.source, earlier.phase, later.phase,
                            step_of.at({earlier.message.source, earlier.message.target})});
        }
    }
    add_words(steps, machine, Signaller::source, std::move(awaited), std::move(sent));
    return steps;
}

} // namespace ucg::aapc
