// Algorithms asked for by name, maybe another one for each range of sizes, as values and as text:
//
//   ring                                     for every size
//   0-4k:recursive_multiplying:a8,a4;1M-inf:ring
//   0-4k:recursive_multiplying;ring          ring for the sizes that no range has
//
// A range includes its first size and excludes its end, so that ranges which meet do not overlap.
// Sizes are written as in base/size_text.hpp; inf means that there is no end. For requests that the
// text does not cover the planner chooses. Sizes are compared with uniform_bytes() of a request, so
// that all ranks decide alike.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/graph/graph.hpp"

namespace ucg::plan {

class AlgorithmsBySize {
  public:
    static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

    /// An algorithm ("name" or "name:argument") for requests of begin .. end - 1 bytes.
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = kNoEnd;
        std::string algorithm;
        bool operator==(const Range&) const = default;
    };

    AlgorithmsBySize() = default;
    /// REQUIRES: `ranges` rise and do not overlap; none is empty.
    AlgorithmsBySize(std::vector<Range> ranges, std::string otherwise)
        : ranges_(std::move(ranges)), otherwise_(std::move(otherwise)) {}

    /// Returns the algorithm that was asked for at that size; empty if none was and the planner
    /// chooses. The result is a view of this object's text.
    std::string_view algorithm(std::uint64_t bytes) const;

    const std::vector<Range>& ranges() const { return ranges_; }
    /// The algorithm for sizes in no range; may be empty.
    std::string_view otherwise() const { return otherwise_; }
    /// Returns ranges that rise and cover all sizes, with the algorithm of each, which may be
    /// empty. Neighbours have different ones, so that objects which ask for the same have equal
    /// ranges.
    std::vector<Range> all_sizes() const;
    bool operator==(const AlgorithmsBySize&) const = default;

  private:
    std::vector<Range> ranges_;
    std::string otherwise_;
};

/// Do all ranks know the length of such a request? If not, it has no ranges of sizes.
bool sizes_are_uniform(graph::Collective collective);

/// Reads the text above; an empty one asks for nothing. Fails with invalid_argument, naming the
/// position (from 0), what was expected there and what was found; also for ranges that overlap, and
/// for any range of a collective without uniform sizes. Does not look whether such algorithms exist
/// and serve a request: plan() does.
Result<AlgorithmsBySize> parse_algorithms_by_size(graph::Collective collective,
                                                  std::string_view text);

/// Returns the text that parse_algorithms_by_size() reads, with the ranges in rising order.
std::string to_text(const AlgorithmsBySize& algorithms);

} // namespace ucg::plan
