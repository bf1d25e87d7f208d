// The step of verify that proves, for a network, that messages which pass one link in the same
// direction follow one another, in one row or in as many as the network says. With one row, a link
// carries one message at a time, at its full rate, and no message waits in a switch.
#include <algorithm>

#include "ucg_coll/graph/happens_before.hpp"

namespace ucg::graph::proof {
namespace {

/// Returns, by edge, the sends of messages with bytes that pass it, in an order in which they may
/// start.
std::vector<std::vector<OpRef>> list_users(const World& world) {
    std::vector<std::vector<OpRef>> users(world.network->nodes.size() * 2);
    std::vector<Edge> path;
    for (const Event event : world.events) {
        const Op& op = world.op(event.op);
        if (!event.completes && op.kind == OpKind::send && op.source.length > 0) {
            find_path(*world.network, world.rank_of[event.op], op.peer, path);
            for (const Edge edge : path) {
                users[edge.index()].push_back(event.op);
            }
        }
    }
    return users;
}

/// The fewest rows into which messages can be put so that each message follows the one before it in
/// its row. By Dilworth's theorem their number is that of the largest set of messages of which no
/// two are ordered. The fewest rows have the most pairs of neighbours, so they are found like a
/// maximum matching, by augmenting paths, one message after another.
class Rows {
  public:
    /// REQUIRES: `messages` are in an order in which they may start.
    Rows(const World& world, HappensBefore& before, std::span<const OpRef> messages)
        : world_(world), before_(before), messages_(messages), next_(messages.size(), kNone),
          previous_(messages.size(), kNone), claims_(messages.size(), kNone) {}

    /// Puts the next message into a row. Returns false if there are then more than `most` rows.
    bool add(std::uint32_t most) {
        const std::uint32_t added = count_++;
        if (!find_place(added)) {
            lasts_.push_back(added);
        }
        return lasts_.size() <= most;
    }

  private:
    bool follows(std::uint32_t earlier, std::uint32_t later) {
        const OpRef x = messages_[earlier];
        const OpRef y = messages_[later];
        return earlier < later && (before_.ordered(x, y) || before_.ordered(world_.match[x], y));
    }

    /// Puts `added` behind the last message of a row, or behind a message whose successor finds
    /// another place. Returns false if it needs a row of its own.
    bool find_place(std::uint32_t added) {
        std::fill(claims_.begin(), claims_.end(), kNone);
        displaced_.assign(1, added);
        for (std::size_t i = 0; i < displaced_.size(); ++i) {
            const std::uint32_t message = displaced_[i];
            // The oldest one that fits is taken: later messages may need the younger ones.
            const auto last = std::find_if(lasts_.begin(), lasts_.end(), [&](std::uint32_t one) {
                return follows(one, message);
            });
            if (last != lasts_.end()) {
                settle(*last, message, added);
                lasts_.erase(last);
                lasts_.push_back(added);
                return true;
            }
            for (std::uint32_t earlier = message; earlier-- > 0;) {
                if (claims_[earlier] == kNone && next_[earlier] != kNone &&
                    follows(earlier, message)) {
                    claims_[earlier] = message;
                    displaced_.push_back(next_[earlier]);
                }
            }
        }
        return false;
    }

    /// Puts `message` behind `place`. Then the message that has claimed the place which `message`
    /// left moves there, and so on, until `added` has a place.
    void settle(std::uint32_t place, std::uint32_t message, std::uint32_t added) {
        while (true) {
            const std::uint32_t left = previous_[message];
            next_[place] = message;
            previous_[message] = place;
            if (message == added) {
                return;
            }
            place = left;
            message = claims_[left];
        }
    }

    const World& world_;
    HappensBefore& before_;
    std::span<const OpRef> messages_;
    std::uint32_t count_ = 0;              ///< How many messages are in rows.
    std::vector<std::uint32_t> next_;      ///< By message: the next in its row, or kNone.
    std::vector<std::uint32_t> previous_;  ///< By message: the one before it in its row, or kNone.
    std::vector<std::uint32_t> lasts_;     ///< The last messages of all rows.
    std::vector<std::uint32_t> claims_;    ///< By message: which one is to come right behind it.
    std::vector<std::uint32_t> displaced_; ///< The messages that need a place in this search.
};

Status reject_meeting(const World& world, std::span<const OpRef> users, std::size_t index,
                      Edge edge) {
    const std::string where = describe(*world.network, edge);
    if (world.network->at_once == 1) {
        return reject(world, users[index],
                      fmt::format("contention: may meet the message of {} on {}",
                                  world.describe(users[index - 1]), where));
    }
    return reject(world, users[index],
                  fmt::format("contention: may meet {} other messages at a time on {}",
                              world.network->at_once, where));
}

} // namespace

Status check_contention(World& world) {
    if (world.network == nullptr) {
        return Status();
    }
    HappensBefore before(world);
    const std::vector<std::vector<OpRef>> users = list_users(world);
    for (std::uint32_t index = 0; index < users.size(); ++index) {
        Rows rows(world, before, users[index]);
        for (std::size_t i = 0; i < users[index].size(); ++i) {
            if (!rows.add(world.network->at_once)) {
                return reject_meeting(world, users[index], i, {index / 2, index % 2 == 1});
            }
        }
    }
    return Status();
}

} // namespace ucg::graph::proof
