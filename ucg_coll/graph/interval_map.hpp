// Internal to ucg_coll/graph: a value for each byte of a buffer, held as sorted stretches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ucg::graph {

/// A map from each byte of a buffer to a value. Stretches are disjoint, sorted, and as long as they
/// can be: two neighbours that continue each other are merged. `T` is small and trivially copyable
/// and has
///   T skip(std::uint64_t bytes) const
///       returns the value of a stretch without its first `bytes`;
///   bool continued_by(const T& next, std::uint64_t bytes) const
///       returns whether a stretch of `bytes` with this value and then one with `next` make one.
///
/// The map is a sorted vector, not a tree: schedules have few stretches per buffer, seldom above a
/// thousand, and moving those is cheaper than allocating nodes.
template <typename T>
class IntervalMap {
  public:
    struct Stretch {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        T value;
    };

    explicit IntervalMap(std::uint64_t bytes = 0, T value = T()) {
        if (bytes > 0) {
            stretches_.push_back({0, bytes, value});
        }
    }

    /// Calls visit(stretch), in order, for each stretch within [begin, end), cut to that range.
    template <typename Visit>
    void visit(std::uint64_t begin, std::uint64_t end, Visit&& visit) const {
        if (begin >= end) {
            return;
        }
        for (std::size_t i = find(begin); i < stretches_.size() && stretches_[i].begin < end; ++i) {
            visit(clip(stretches_[i], begin, end));
        }
    }

    /// Returns the stretches within [begin, end), cut to that range, with offsets counted from
    /// `begin`.
    std::vector<Stretch> read(std::uint64_t begin, std::uint64_t end) const {
        std::vector<Stretch> parts;
        visit(begin, end, [&](Stretch part) {
            part.begin -= begin;
            part.end -= begin;
            parts.push_back(part);
        });
        return parts;
    }

    /// Replaces [begin, begin + length of the parts) by `parts`, whose offsets are counted from
    /// `begin`. REQUIRES: `parts` cover that range without gaps, inside the buffer.
    void write(std::uint64_t begin, const std::vector<Stretch>& parts) {
        if (parts.empty()) {
            return;
        }
        const std::uint64_t end = begin + parts.back().end;
        const std::size_t first = find(begin);
        std::size_t last = first;
        while (last < stretches_.size() && stretches_[last].begin < end) {
            ++last;
        }
        // One neighbour on each side is rewritten, too, so that it can be merged.
        const std::size_t from = first > 0 ? first - 1 : first;
        const std::size_t to = last < stretches_.size() ? last + 1 : last;
        fresh_.clear();
        for (std::size_t i = from; i < to && stretches_[i].begin < begin; ++i) {
            push(clip(stretches_[i], stretches_[i].begin, begin));
        }
        for (Stretch part : parts) {
            part.begin += begin;
            part.end += begin;
            push(part);
        }
        for (std::size_t i = from; i < to; ++i) {
            if (stretches_[i].end > end) {
                push(clip(stretches_[i], end, stretches_[i].end));
            }
        }
        replace(from, to);
    }

  private:
    /// Returns the index of the first stretch that ends behind `offset`.
    std::size_t find(std::uint64_t offset) const {
        const auto at = std::partition_point(stretches_.begin(), stretches_.end(),
                                             [&](const Stretch& s) { return s.end <= offset; });
        return static_cast<std::size_t>(at - stretches_.begin());
    }

    static Stretch clip(const Stretch& stretch, std::uint64_t begin, std::uint64_t end) {
        Stretch part = stretch;
        if (part.begin < begin) {
            part.value = part.value.skip(begin - part.begin);
            part.begin = begin;
        }
        part.end = std::min(part.end, end);
        return part;
    }

    void push(const Stretch& next) {
        if (next.begin == next.end) {
            return;
        }
        if (!fresh_.empty()) {
            Stretch& last = fresh_.back();
            if (last.value.continued_by(next.value, last.end - last.begin)) {
                last.end = next.end;
                return;
            }
        }
        fresh_.push_back(next);
    }

    void replace(std::size_t from, std::size_t to) {
        const std::size_t common = std::min(to - from, fresh_.size());
        const auto at = [](auto& items, std::size_t i) {
            return items.begin() + static_cast<std::ptrdiff_t>(i);
        };
        std::copy_n(fresh_.begin(), common, at(stretches_, from));
        if (common < fresh_.size()) {
            stretches_.insert(at(stretches_, to), at(fresh_, common), fresh_.end());
        } else {
            stretches_.erase(at(stretches_, from + common), at(stretches_, to));
        }
    }

    std::vector<Stretch> stretches_;
    std::vector<Stretch> fresh_; // Scratch of write(), kept for its capacity.
};

} // namespace ucg::graph
