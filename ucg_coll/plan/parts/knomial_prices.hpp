// What goes down or up a k-nomial tree, by the path that takes longest. Subtrees of whole powers
// are priced once; Steps say what one message costs. Nothing here allocates.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

/// A message between a member and one of its children.
struct TreeMessage {
    double alone_ns = 0; ///< By itself.
    double next_ns = 0;  ///< What it adds to one before it of the same member.
    /// Do messages to one member come at the same time? Else it takes one after the other.
    bool overlaps = true;
    /// How long a sender that has nothing else to do copies it by itself, before and while its
    /// receiver does; 0: it does not.
    double pushed_ns = 0;
};

/// A child's subtree: `members` of it, at most `span`.
struct TreeChild {
    Rank span = 1;
    Rank members = 1;
    bool of_root = false;
    unsigned before = 0; ///< Siblings that are told before it: all nearer ones, and earlier ones.
    // What is as long as subtrees have members, in that unit:
    Rank members_before = 0; ///< All that is sent to them.
    double busy_before = 0;  ///< For how long its sender copies that, each with its receiver.
    bool is_leaf() const { return members == 1; }
};

template <typename Steps>
class KnomialPrice {
  public:
    /// Steps: message(TreeChild); at_node(members), of one's own; at_level(span, children),
    /// upwards; downwards level(span), at which of the levels of a Link children of that span are.
    KnomialPrice(unsigned radix, const Steps& steps)
        : radix_(static_cast<std::int64_t>(radix)), steps_(steps) {
        whole_.fill(kUnknown);
    }

    /// Until the last member has what the root sends: to the largest subtrees first.
    double down_ns(Rank count) { return down(count, true); }
    /// Until the root has what all send: from the smallest subtrees first.
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

    struct Told {
        unsigned children = 0;
        Rank members = 0;
        double busy = 0;

        void add(const TreeChild& child) {
            ++children;
            members += child.members;
            busy = std::max(busy, (busy + child.members) / 2); // By then it has copied so much.
        }
    };
    /// Children that are nearer than those of that span. They are sent to later, but what is on
    /// a shorter way comes first.
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

    /// The receiver comes to a copy at `ns`, which was there at `sent_ns`.
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

    /// Of subtrees below the root that are whole; what else there is comes once.
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
