// Fuzzes the parsers of short texts that people and the kernel write. The first byte selects one:
// placements ('p'), sizes ('s'), rates of links ('r'), lists of CPUs ('c') and CPU quotas ('q').
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "topo/cpus.hpp"
#include "topo/placement.hpp"
#include "topo/rate_text.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::topo {
namespace {

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check_refusal(const Status& status) {
    require(status.code() == Code::invalid_argument && !status.message().empty());
}

/// A placement that is accepted prints back to an equal value, and its levels are consistent.
void check_placement(std::string_view text) {
    const Result<Placement> placement = parse_placement(text);
    if (!placement.ok()) {
        check_refusal(placement.status());
        return;
    }
    const Result<Placement> again = parse_placement(to_text(*placement));
    require(again.ok() && *again == *placement);
    for (Rank rank = 0; rank < placement->rank_count(); ++rank) {
        const auto ranks = placement->ranks_on(placement->host(rank));
        const auto index = static_cast<std::size_t>(placement->index_on_host(rank));
        require(index < ranks.size() && ranks[index] == rank);
        require(placement->distance(ranks.front(), rank) <= Distance::host);
    }
}

void check_size(std::string_view text) {
    const Result<std::uint64_t> size = parse_size(text);
    if (!size.ok()) {
        check_refusal(size.status());
        return;
    }
    const Result<std::uint64_t> again = parse_size(size_text(*size));
    require(again.ok() && *again == *size);
}

void check_rate(std::string_view text) {
    const Result<std::uint64_t> rate = parse_rate(text);
    if (!rate.ok()) {
        check_refusal(rate.status());
        return;
    }
    require(*rate >= kRateMin && *rate <= kRateMax);
    const Result<std::uint64_t> again = parse_rate(rate_text(*rate));
    require(again.ok() && *again == *rate);
}

void check_cpus(std::string_view text) {
    const auto cpus = parse_ranges(text);
    if (cpus) {
        require(std::is_sorted(cpus->begin(), cpus->end()));
        require(parse_ranges(format_ranges(*cpus)) == cpus);
    }
}

void check_quota(std::string_view text) {
    const std::size_t half = text.find(' ') == std::string_view::npos ? 0 : text.find(' ') + 1;
    for (const std::optional<double> quota :
         {parse_cpu_max(text),
          parse_cfs_quota(text.substr(0, half == 0 ? 0 : half - 1), text.substr(half))}) {
        require(!quota || (std::isfinite(*quota) && *quota >= 0));
        require(limit_cpu_count(4, quota) >= 1 && limit_cpu_count(4, quota) <= 4);
    }
}

void check(char what, std::string_view text) {
    switch (what) {
    case 'p': check_placement(text); break;
    case 's': check_size(text); break;
    case 'r': check_rate(text); break;
    case 'c': check_cpus(text); break;
    case 'q': check_quota(text); break;
    default: break;
    }
}

} // namespace
} // namespace ucg::topo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 0) {
        ucg::topo::check(static_cast<char>(data[0]),
                         {reinterpret_cast<const char*>(data) + 1, size - 1});
    }
    return 0;
}
