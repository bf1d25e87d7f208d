// Internal to ucg_coll/graph: expressions over the ranks' contributions, for verify.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::graph::proof {

/// The number of an expression: a rank's contribution, or the operator applied to two expressions.
/// Equal expressions have equal numbers. An expression stands for a whole vector: byte p of
/// (a op b) is made of bytes p of a and b, and of nothing else, so that vectors may be cut anywhere
/// without new expressions.
using Expression = std::uint32_t;
inline constexpr Expression kUndefined = 0;

/// All expressions that occur when the programs of `rank_count` ranks run.
class Expressions {
  public:
    explicit Expressions(Rank rank_count)
        : leaves_(static_cast<Expression>(rank_count)), nodes_(std::size_t{leaves_} + 1) {}

    static Expression leaf(Rank rank) { return static_cast<Expression>(rank) + 1; }

    /// Returns left op right, with the operands in this order. A reduction of k operands is
    /// combined from the left.
    Expression combine(Expression left, Expression right);

    /// Returns why `expression` does not consist of the contributions of ranks [first, last), each
    /// exactly once, and in this order unless `commutative`; nothing if it does.
    std::optional<std::string> find_problem(Expression expression, Rank first, Rank last,
                                            bool commutative);

  private:
    struct Node {
        Expression left = kUndefined;
        Expression right = kUndefined;
    };

    bool is_leaf(Expression expression) const { return expression <= leaves_; }
    Rank rank(Expression leaf) const { return static_cast<Rank>(leaf) - 1; }
    void count_uses(Expression expression);
    std::optional<std::string> find_miscount(Rank first, Rank last) const;
    std::optional<std::string> find_disorder(Expression expression) const;

    Expression leaves_;
    std::vector<Node> nodes_; // By expression; children have smaller numbers.
    std::unordered_map<std::uint64_t, Expression> known_;
    std::vector<std::uint8_t> uses_;  // By expression: its uses as count_uses() found; 2 is "more".
    std::vector<Expression> reached_; // The parts of the expression that count_uses() was given.
    std::set<std::tuple<Expression, Rank, Rank>> proven_; // Those without a problem.
};

} // namespace ucg::graph::proof
