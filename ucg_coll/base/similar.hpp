// Guesses which name was meant by a mistyped one.
#pragma once

#include <string_view>
#include <vector>

namespace ucg {

/// Returns the name into which `typed` turns when the fewest letters are inserted, left out or
/// changed; the first one of several. If that takes more than three letters, or more than half of
/// `typed` (leading dashes not counted), it returns the first name that begins with `typed`, and an
/// empty text if no name does or `typed` has more than 64 letters.
std::string_view most_similar(std::string_view typed, const std::vector<std::string_view>& names);

} // namespace ucg
