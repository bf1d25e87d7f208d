#include "ucg_coll/base/similar.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace ucg {
namespace {

/// Returns how many letters must be inserted, left out or changed to turn `from` into `to`.
std::size_t edit_distance(std::string_view from, std::string_view to) {
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < from.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < to.size(); ++j) {
            const std::size_t changed = diagonal + (from[i] == to[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

/// Returns the first name that begins with `typed`; empty if none does or nothing was typed.
std::string_view abbreviated(std::string_view typed, const std::vector<std::string_view>& names) {
    const auto found = std::ranges::find_if(
        names, [typed](std::string_view name) { return name.starts_with(typed); });
    return found == names.end() || typed.empty() ? std::string_view() : *found;
}

} // namespace

std::string_view most_similar(std::string_view typed, const std::vector<std::string_view>& names) {
    constexpr std::size_t kTypedMax = 64; // Longer than any name, even a mistyped one.
    if (typed.size() > kTypedMax) {
        return {};
    }
    std::string_view best;
    const std::size_t dashes = std::min(typed.find_first_not_of('-'), typed.size());
    std::size_t least = std::min<std::size_t>(3, (typed.size() - dashes) / 2) + 1;
    for (const std::string_view name : names) {
        if (const std::size_t edits = edit_distance(typed, name); edits < least) {
            least = edits;
            best = name;
        }
    }
    return best.empty() ? abbreviated(typed, names) : best;
}

} // namespace ucg
