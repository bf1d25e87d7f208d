#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "test/support/catch.hpp"
#include "test/unit/aapc/trees.hpp"

namespace ucg::aapc {
namespace {

using Users = std::map<test::Edge, std::vector<Use>>;

/// The messages that pass each directed edge, by phase; messages within a machine pass none.
Users list_users(const Tree& tree, const Phases& phases) {
    Users users;
    for (const Use& use : all_messages(phases)) {
        const Layout& layout = phases.layout();
        for (const test::Edge edge : test::path(tree, layout.member(use.message.source),
                                                layout.member(use.message.target))) {
            users[edge].push_back(use);
        }
    }
    return users;
}

/// Which messages come before each message, as a square of bits. Synchronisations order them, and
/// each member sends its own messages one after another unless `one_after_another` is false.
class Closure {
  public:
    Closure(const Phases& phases, const std::vector<Sync>& syncs, bool one_after_another = true)
        : messages_(all_messages(phases)), count_(phases.layout().member_count()),
          words_((messages_.size() + 63) / 64), before_(messages_.size() * words_),
          direct_(messages_.size()), number_(std::size_t{count_} * count_) {
        constexpr auto kNobody = std::numeric_limits<std::size_t>::max();
        std::vector<std::size_t> last(count_, kNobody);
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            number_[key(messages_[i])] = i;
            std::size_t& previous = last[messages_[i].message.source];
            if (one_after_another && previous != kNobody) {
                direct_[i].push_back(previous);
            }
            previous = i;
        }
        for (const Sync& sync : syncs) {
            direct_[number(sync.later)].push_back(number(sync.earlier));
        }
        // The messages are in the order of their phases.
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            for (const std::size_t earlier : direct_[i]) {
                for (std::size_t word = 0; word < words_; ++word) {
                    before_[i * words_ + word] |= before_[earlier * words_ + word];
                }
                before_[i * words_ + earlier / 64] |= std::uint64_t{1} << (earlier % 64);
            }
        }
    }

    bool ordered(const Use& earlier, const Use& later) const {
        return ordered(number(earlier), number(later));
    }

    /// Are the two messages ordered even without this synchronisation?
    bool redundant(const Sync& sync) const {
        const std::size_t earlier = number(sync.earlier);
        const std::vector<std::size_t>& direct = direct_[number(sync.later)];
        return std::count(direct.begin(), direct.end(), earlier) > 1 ||
               std::any_of(direct.begin(), direct.end(), [&](std::size_t other) {
                   return other != earlier && ordered(earlier, other);
               });
    }

  private:
    bool ordered(std::size_t earlier, std::size_t later) const {
        return (before_[later * words_ + earlier / 64] >> (earlier % 64) & 1) != 0;
    }
    std::size_t key(const Use& use) const {
        return std::size_t{use.message.source} * count_ + use.message.target;
    }
    std::size_t number(const Use& use) const { return number_[key(use)]; }

    std::vector<Use> messages_;
    std::uint32_t count_;
    std::size_t words_;
    std::vector<std::uint64_t> before_;
    std::vector<std::vector<std::size_t>> direct_;
    std::vector<std::size_t> number_;
};

/// Of all messages that share an edge, does each one come after the one `window` places before it?
bool sufficient(const Users& all, const Closure& closure, std::uint32_t window = 1) {
    return std::all_of(all.begin(), all.end(), [&](const auto& edge_and_users) {
        const std::vector<Use>& users = edge_and_users.second;
        for (std::size_t i = window; i < users.size(); ++i) {
            if (!closure.ordered(users[i - window], users[i])) {
                return false;
            }
        }
        return true;
    });
}

/// The synchronisations that the members' steps amount to, with sent and awaited words matched by
/// counting. Where there is a window, the order in which a member sends its own messages is among
/// them.
std::vector<Sync> run_time_syncs(const Phases& phases, Signaller signaller,
                                 std::uint32_t window = 1) {
    std::map<std::pair<Position, Position>, std::vector<Use>> sent;
    std::map<std::pair<Position, Position>, std::size_t> met;
    std::vector<std::vector<MemberStep>> all;
    for (Position member = 0; member < phases.layout().member_count(); ++member) {
        all.push_back(steps_of(phases, member, signaller, window));
        for (const MemberStep& step : all.back()) {
            for (const Signal& signal : step.signals) {
                sent[{member, signal.to}].push_back(all.back()[signal.ended].message);
            }
        }
    }
    std::vector<Sync> syncs;
    for (Position member = 0; member < all.size(); ++member) {
        const std::vector<MemberStep>& steps = all[member];
        for (const MemberStep& step : steps) {
            for (const Position other : step.awaits) {
                const std::size_t count = met[{other, member}]++;
                REQUIRE(count < (sent[{other, member}].size()));
                syncs.push_back({sent[{other, member}][count], step.message});
            }
            for (const std::uint32_t earlier : step.after) {
                if (window > 1 || steps[earlier].message.message.source != member) {
                    syncs.push_back({steps[earlier].message, step.message});
                }
            }
        }
    }
    for (const auto& [pair, words] : sent) {
        REQUIRE(words.size() == met[pair]);
    }
    for (const Sync& sync : syncs) {
        REQUIRE(sync.earlier.phase < sync.later.phase);
    }
    return syncs;
}

void check_users(const Tree& tree) {
    const Layout layout(tree);
    const Phases phases(layout);
    Users users = list_users(tree, phases);
    Order order(phases);
    for (const Use& use : all_messages(phases)) {
        std::set<std::uint64_t> before;
        std::set<std::uint64_t> after;
        for (const test::Edge edge : test::path(tree, layout.member(use.message.source),
                                                layout.member(use.message.target))) {
            const std::vector<Use>& row = users[edge];
            const auto place = std::find(row.begin(), row.end(), use);
            REQUIRE(place != row.end());
            if (place != row.begin()) {
                before.insert((place - 1)->phase);
            }
            if (place + 1 != row.end()) {
                after.insert((place + 1)->phase);
            }
        }
        // The nearest neighbour of a message on any edge is its nearest neighbour on every edge
        // that both pass.
        const std::vector<Use> earlier = order.before(use);
        const std::vector<Use> later = order.after(use);
        REQUIRE(earlier.empty() == before.empty());
        REQUIRE(later.empty() == after.empty());
        REQUIRE((before.empty() || earlier.back().phase == *before.rbegin()));
        REQUIRE((after.empty() || later.front().phase == *after.begin()));
        for (const Use& one : earlier) {
            const std::vector<Use>& back = order.after(one);
            REQUIRE(std::find(back.begin(), back.end(), use) != back.end());
        }
    }
}

} // namespace

TEST_CASE("aapc: neighbours on links are found by arithmetic", "[aapc][order]") {
    std::mt19937_64 random(14);
    for (int i = 0; i < 150; ++i) {
        const auto switches = static_cast<std::uint32_t>(1 + random() % 10);
        const auto machines = static_cast<std::uint32_t>(2 + random() % 15);
        check_users(test::random_tree(random, switches, machines));
        check_users(test::random_tree_of_ranks(random, switches, 2 + machines / 3, 4));
    }
}

TEST_CASE("aapc: the run-time rule orders all that share a link among several ranks of a machine",
          "[aapc][order]") {
    std::mt19937_64 random(15);
    for (int i = 0; i < 200; ++i) {
        const auto switches = static_cast<std::uint32_t>(1 + random() % 8);
        const auto machines = static_cast<std::uint32_t>(2 + random() % 8);
        const Tree tree = test::random_tree_of_ranks(random, switches, machines, 4);
        const Layout layout(tree);
        const Phases phases(layout);
        for (const Signaller signaller : {Signaller::source, Signaller::destination}) {
            const Closure closure(phases, run_time_syncs(phases, signaller));
            REQUIRE(sufficient(list_users(tree, phases), closure));
        }
    }
}

TEST_CASE("aapc: with a window, a link carries so many messages at a time", "[aapc][order]") {
    std::mt19937_64 random(16);
    for (int i = 0; i < 200; ++i) {
        const auto switches = static_cast<std::uint32_t>(1 + random() % 8);
        const auto machines = static_cast<std::uint32_t>(2 + random() % 12);
        const Tree tree = i % 2 == 0
                              ? test::random_tree(random, switches, machines)
                              : test::random_tree_of_ranks(random, switches, 2 + machines / 3, 4);
        const Layout layout(tree);
        const Phases phases(layout);
        const Users users = list_users(tree, phases);
        for (const std::uint32_t window : {2, 3, 5}) {
            const Closure closure(phases, run_time_syncs(phases, Signaller::source, window), false);
            REQUIRE(sufficient(users, closure, window));
            REQUIRE((phases.count() < 9 || !sufficient(users, closure, 1)));
        }
    }
}

TEST_CASE("aapc: with a window, word of a message goes out when the window is full or before what "
          "waits for it",
          "[aapc][order]") {
    std::mt19937_64 random(17);
    for (int i = 0; i < 50; ++i) {
        const Tree tree =
            test::random_tree(random, 4, static_cast<std::uint32_t>(3 + random() % 9));
        const Layout layout(tree);
        const Phases phases(layout);
        for (Position member = 0; member < layout.member_count(); ++member) {
            const std::vector<MemberStep> steps = steps_of(phases, member, Signaller::source, 3);
            for (std::size_t step = 0; step < steps.size(); ++step) {
                for (const Signal& signal : steps[step].signals) {
                    REQUIRE(signal.ended <= step);
                    REQUIRE(steps[signal.ended].message.message.source == member);
                }
                for (const std::uint32_t earlier : steps[step].after) {
                    REQUIRE(earlier < step);
                    REQUIRE(steps[earlier].message.message.source == member);
                }
            }
        }
    }
}

TEST_CASE("aapc: without any one of the generator's synchronisations two messages may meet",
          "[aapc][order]") {
    for (std::uint32_t machines = 2; machines <= 7; ++machines) {
        for (const Tree& tree : test::every_tree(machines)) {
            const Layout layout(tree);
            const Phases phases(layout);
            const Users users = list_users(tree, phases);
            const std::vector<Sync> syncs = minimal_syncs(phases);
            REQUIRE(sufficient(users, Closure(phases, syncs)));
            for (std::size_t i = 0; i < syncs.size(); ++i) {
                std::vector<Sync> fewer = syncs;
                fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
                REQUIRE_FALSE(sufficient(users, Closure(phases, fewer)));
            }
        }
    }
}

TEST_CASE("aapc: synchronisations are enough, the generator's all needed, those of the run time "
          "few more",
          "[aapc][order][thorough]") {
    std::mt19937_64 random(20050406);
    for (int i = 0; i < 1000; ++i) {
        const auto machines = static_cast<std::uint32_t>(2 + random() % 63);
        const Tree tree =
            test::random_tree(random, static_cast<std::uint32_t>(1 + random() % 20), machines);
        const Layout layout(tree);
        const Phases phases(layout);
        const Users users = list_users(tree, phases);
        const std::vector<Sync> least = minimal_syncs(phases);
        const Closure closure(phases, least);
        REQUIRE(sufficient(users, closure));
        REQUIRE(std::none_of(least.begin(), least.end(),
                             [&](const Sync& sync) { return closure.redundant(sync); }));
        const std::vector<Sync> used = run_time_syncs(phases, Signaller::source);
        REQUIRE(sufficient(users, Closure(phases, used)));
        REQUIRE(used.size() <= least.size() + least.size() * 15 / 100);
        if (i % 10 == 0) {
            const auto told = run_time_syncs(phases, Signaller::destination);
            REQUIRE(sufficient(users, Closure(phases, told)));
        }
    }
}

} // namespace ucg::aapc
