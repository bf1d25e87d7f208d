#include "ucg_coll/graph/expression.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace ucg::graph::proof {

Expression Expressions::combine(Expression left, Expression right) {
    const std::uint64_t key = std::uint64_t{left} << 32 | right;
    const auto [at, is_new] = known_.try_emplace(key, static_cast<Expression>(nodes_.size()));
    if (is_new) {
        nodes_.push_back({left, right});
    }
    return at->second;
}

/// Counts in uses_ how often each part occurs in `expression`. Parts are shared, so occurrences
/// multiply; parents have larger numbers than their children, so one pass from the top counts them.
void Expressions::count_uses(Expression expression) {
    for (const Expression part : reached_) {
        uses_[part] = 0;
    }
    uses_.resize(nodes_.size(), 0);
    reached_.assign(1, expression);
    uses_[expression] = 1;
    for (std::size_t i = 0; i < reached_.size(); ++i) {
        const Node node = nodes_[reached_[i]];
        for (const Expression child : {node.left, node.right}) {
            if (child != kUndefined && uses_[child] == 0) {
                uses_[child] = 1; // Only marks the part as reached; counting follows.
                reached_.push_back(child);
            }
        }
    }
    std::sort(reached_.begin(), reached_.end(), std::greater<>());
    for (const Expression part : reached_) {
        uses_[part] = part == expression ? 1 : 0;
    }
    for (const Expression part : reached_) {
        const Node node = nodes_[part];
        for (const Expression child : {node.left, node.right}) {
            if (child != kUndefined) {
                uses_[child] =
                    static_cast<std::uint8_t>(std::min(2, int{uses_[child]} + int{uses_[part]}));
            }
        }
    }
}

std::optional<std::string> Expressions::find_miscount(Rank first, Rank last) const {
    for (const Expression part : reached_) {
        if (!is_leaf(part)) {
            continue;
        }
        if (rank(part) < first || rank(part) >= last) {
            return fmt::format("has the contribution of rank {}, which does not belong there",
                               rank(part));
        }
        if (uses_[part] > 1) {
            return fmt::format("has the contribution of rank {} more than once", rank(part));
        }
    }
    for (Rank r = first; r < last; ++r) {
        if (uses_[leaf(r)] == 0) {
            return fmt::format("lacks the contribution of rank {}", r);
        }
    }
    return std::nullopt;
}

/// Returns which two ranks `expression` has in the wrong order, if any. REQUIRES: every leaf occurs
/// once, so that the walk takes time in proportion to the ranks.
std::optional<std::string> Expressions::find_disorder(Expression expression) const {
    std::vector<Expression> rest{expression};
    Rank previous = kNoRank;
    while (!rest.empty()) {
        const Expression part = rest.back();
        rest.pop_back();
        if (!is_leaf(part)) {
            rest.push_back(nodes_[part].right);
            rest.push_back(nodes_[part].left);
            continue;
        }
        if (rank(part) < previous) {
            return fmt::format("combines rank {} before rank {}, and the operator does not commute",
                               previous, rank(part));
        }
        previous = rank(part);
    }
    return std::nullopt;
}

std::optional<std::string> Expressions::find_problem(Expression expression, Rank first, Rank last,
                                                     bool commutative) {
    if (is_leaf(expression) && last == first + 1) {
        return expression == leaf(first)
                   ? std::nullopt
                   : std::optional(
                         fmt::format("holds the contribution of rank {}, must be rank {}'s",
                                     rank(expression), first));
    }
    if (proven_.count({expression, first, last}) != 0) {
        return std::nullopt;
    }
    count_uses(expression);
    auto problem = find_miscount(first, last);
    if (!problem && !commutative) {
        problem = find_disorder(expression);
    }
    if (!problem) {
        proven_.insert({expression, first, last});
    }
    return problem;
}

} // namespace ucg::graph::proof
