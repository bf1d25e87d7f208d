// One member's part of the schedule.
#include <algorithm>
#include <tuple>

#include "ucg_coll/aapc/order.hpp"

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

std::vector<Step> own_messages(const Phases& phases, Position member) {
    std::vector<Step> steps;
    steps.reserve(2 * std::size_t{phases.layout().member_count()});
    for (Position other = 0; other < phases.layout().member_count(); ++other) {
        if (other != member) {
            for (const Message message : {Message{other, member}, Message{member, other}}) {
                steps.push_back({{phases.of(message), message}, {}, {}, {}});
            }
        }
    }
    std::sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
        const bool a_sends = a.message.message.source == member;
        const bool b_sends = b.message.message.source == member;
        return std::tuple(a.message.phase, a_sends) < std::tuple(b.message.phase, b_sends);
    });
    return steps;
}

Position signaller_of(Message message, Signaller signaller) {
    return signaller == Signaller::source ? message.source : message.target;
}

/// The step in which the member receives in a phase.
std::uint32_t received_in(const std::vector<Step>& steps, std::uint64_t phase) {
    const auto place = std::partition_point(
        steps.begin(), steps.end(), [&](const Step& step) { return step.message.phase < phase; });
    return static_cast<std::uint32_t>(place - steps.begin());
}

} // namespace

std::vector<Step> steps_of(const Phases& phases, Position member, Signaller signaller) {
    std::vector<Step> steps = own_messages(phases, member);
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
    drop_implied(awaited);
    drop_implied(sent);
    for (const Word& word : awaited) {
        if (word.other != member) {
            steps[word.step].awaits.push_back(word.other);
        } else if (signaller == Signaller::destination) {
            steps[word.step].after.push_back(received_in(steps, word.earlier));
        }
    }
    for (const Word& word : sent) {
        if (word.other != member) {
            steps[word.step].signals.push_back(word.other);
        }
    }
    return steps;
}

} // namespace ucg::aapc
