// What somebody perhaps meant who mistyped a name.
#pragma once

#include <string_view>
#include <vector>

namespace ucg {

/// The first of the names that take the fewest letters to insert, leave out or change. Where that
/// is more than three letters or half of what was typed, the first that begins with what was typed;
/// empty if none does.
std::string_view most_similar(std::string_view typed, const std::vector<std::string_view>& names);

} // namespace ucg
