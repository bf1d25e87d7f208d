// The time in which messages go down or up a k-nomial tree, by the path that takes longest.
// Subtrees whose size is a power of the radix are priced once; the class `Steps` of the caller
// prices single messages. Nothing here allocates.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

/// The price of a message between a member and one of its children.
struct TreeMessage {
    double alone_ns = 0; ///< The message by itself.
    double next_ns = 0;  ///< What a message adds that follows another one of the same member.
    /// Whether messages to one member arrive at the same time; else it takes one after the other.
    bool overlaps = true;
    /// How long a sender that has nothing else to do would take to copy the message by itself. It
    /// begins before its receiver comes, and then each copies half of the rest. 0: the sender does
    /// not copy.
    double pushed_ns = 0;
};

/// A child of a member, with its subtree.
struct TreeChild {
    Rank span = 1;    ///< The size of a whole subtree of its level.
    Rank members = 1; ///< The size of its own subtree, at most `span`.
    bool of_root = false;
    unsigned before = 0; ///< How many siblings are sent to before it: all nearer and all earlier.
    // For messages of which each is as long as its subtree has members, with one member as the
    // unit:
    Rank members_before = 0; ///< The length of all that is sent to these siblings.
    double busy_before = 0;  ///< How long the sender copies that, each message with its receiver.
    bool is_leaf() const { return members == 1; }
};

/// The price of a k-nomial tree. All times are in nanoseconds.
template <typename Steps>
class KnomialPrice {
  public:
    /// `steps`, which must outlive this, has message(TreeChild), which returns a TreeMessage, and
    /// at_node(members), the time of other work of a member whose subtree has so many members.
    /// up_ns() also needs at_level(span, children), the time of work once the children of one span
    /// have sent; down_ns() needs level(span), the level of the Link to children of that span.
    KnomialPrice(unsigned radix, const Steps& steps)
        : radix_(static_cast<std::int64_t>(radix)), steps_(steps) {
        whole_.fill(kUnknown);
    }

    /// Returns the time until the last of `count` members has what the root sends. Members send to
    /// the largest subtrees first.
    double down_ns(Rank count) { return down(count, true); }
    /// Returns the time until the root has what all `count` members send. Members receive from the
    /// smallest subtrees first.
    double up_ns(Rank count) { return up(count, true); }

  private:
    static constexpr double kUnknown = -1;

    double down(std::int64_t members, bool root) {
        double& known = place(members, root);
        if (known != kUnknown) {
            return known;
        }
        std::int64_t span = 1;
        while (span * radix_ < members) {
            span *= radix_;
        }
        double sent_ns = 0;
        double last_ns = 0;
        Told before;
        for (bool first = true; span > 0 && members > 1; span /= radix_, first = false) {
            if (first || steps_.level(span) != steps_.level(span * radix_)) {
                before = nearer(members, span);
            }
            for_each_child(members, span, root, [&](TreeChild child) {
                child.before = before.children;
                child.members_before = before.members;
                child.busy_before = before.busy;
                before.add(child);
                const TreeMessage message = steps_.message(child);
                last_ns =
                    std::max(last_ns, sent_ns + message.alone_ns + down(child.members, false));
                sent_ns += message.next_ns;
            });
        }
        return keep(members, root,
                    std::max(last_ns, sent_ns + steps_.at_node(static_cast<Rank>(members))));
    }

    /// What a member has sent to some of its children; see TreeChild.
    struct Told {
        unsigned children = 0;
        Rank members = 0;
        double busy = 0;

        void add(const TreeChild& child) {
            ++children;
            members += child.members;
            busy = std::max(busy, (busy + child.members) / 2); // Each copies half of the rest.
        }
    };
    /// Returns what is sent to children that are nearer than those of that span. They are sent to
    /// later, but what takes a shorter way arrives first.
    Told nearer(std::int64_t members, std::int64_t span) const {
        const std::size_t far = steps_.level(span);
        Told told;
        for (; span > 0; span /= radix_) {
            if (steps_.level(span) != far) {
                for_each_child(members, span, false,
                               [&](const TreeChild& child) { told.add(child); });
            }
        }
        return told;
    }

    double up(std::int64_t members, bool root) {
        if (const double known = place(members, root); known != kUnknown) {
            return known;
        }
        double ns = steps_.at_node(static_cast<Rank>(members));
        for (std::int64_t span = 1; span < members; span *= radix_) {
            unsigned children = 0;
            for_each_child(members, span, root, [&](const TreeChild& child) {
                const TreeMessage message = steps_.message(child);
                const double sent_ns = up(child.members, false);
                ns = message.overlaps ? std::max(ns + message.next_ns, sent_ns + message.alone_ns)
                                      : taken_ns(ns, sent_ns, message);
                ++children;
            });
            ns += steps_.at_level(span, children);
        }
        return keep(members, root, ns);
    }

    /// Returns when a receiver that is free at `ns` has a message that was sent at `sent_ns`.
    static double taken_ns(double ns, double sent_ns, const TreeMessage& message) {
        if (message.pushed_ns == 0 || ns <= sent_ns) {
            return std::max(ns, sent_ns) + message.alone_ns;
        }
        return ns + std::max(0.0, message.pushed_ns - (ns - sent_ns)) / 2;
    }

    template <typename Visit>
    void for_each_child(std::int64_t members, std::int64_t span, bool root, Visit visit) const {
        for (std::int64_t at = span; at < members && at < span * radix_; at += span) {
            visit(TreeChild{static_cast<Rank>(span),
                            static_cast<Rank>(std::min(span, members - at)), root});
        }
    }

    /// Returns where the price of a subtree is kept, if it is whole and below the root. Others
    /// occur only once: for them it returns a place whose value is unknown.
    double& place(std::int64_t members, bool root) {
        std::size_t level = 0;
        std::int64_t span = 1;
        while (span < members) {
            span *= radix_;
            ++level;
        }
        none_ = kUnknown;
        return !root && span == members ? whole_[level] : none_;
    }
    double keep(std::int64_t members, bool root, double ns) { return place(members, root) = ns; }

    std::int64_t radix_;
    const Steps& steps_;
    std::array<double, std::numeric_limits<Rank>::digits + 1> whole_{};
    double none_ = kUnknown;
};

} // namespace ucg::plan
