// Fuzzes the parser of algorithms by size; the first byte selects the collective. A list that is
// accepted has the ranges that its type promises, answers by them, and prints back to an equal
// value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ucg_coll/plan/algorithms_by_size.hpp"

namespace {

using ucg::graph::Collective;
using ucg::plan::AlgorithmsBySize;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

/// Checks that ranges rise and do not overlap, that none is empty, and that each answers for all of
/// its sizes and for no other.
void check_ranges(const AlgorithmsBySize& list) {
    std::uint64_t previous_end = 0;
    for (const AlgorithmsBySize::Range& range : list.ranges()) {
        require(range.begin >= previous_end && range.begin < range.end);
        require(!range.algorithm.empty());
        require(list.algorithm(range.begin) == range.algorithm);
        require(list.algorithm(range.end - 1) == range.algorithm);
        if (range.begin > previous_end) {
            require(list.algorithm(previous_end) == list.otherwise());
            require(list.algorithm(range.begin - 1) == list.otherwise());
        }
        previous_end = range.end;
    }
    if (previous_end < AlgorithmsBySize::kNoEnd) {
        require(list.algorithm(previous_end) == list.otherwise());
    }
}

void check(Collective collective, std::string_view text) {
    const auto list = ucg::plan::parse_algorithms_by_size(collective, text);
    if (!list.ok()) {
        require(list.status().code() == ucg::Code::invalid_argument);
        require(!list.status().message().empty());
        return;
    }
    require(ucg::plan::sizes_are_uniform(collective) || list->ranges().empty());
    check_ranges(*list);
    const auto again = ucg::plan::parse_algorithms_by_size(collective, to_text(*list));
    require(again.ok() && *again == *list);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 0) {
        const auto& collectives = ucg::graph::kCollectives;
        check(collectives[data[0] % collectives.size()],
              {reinterpret_cast<const char*>(data) + 1, size - 1});
    }
    return 0;
}
