// Letters of names, which are ASCII: the functions of <cctype> depend on the program's locale, and
// in Turkish the upper case of i is another letter than I.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace ucg {

/// Returns the text with a to z as A to Z.
inline std::string ascii_upper(std::string_view text) {
    std::string upper(text);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return upper;
}

} // namespace ucg
