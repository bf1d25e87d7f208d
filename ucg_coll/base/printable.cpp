#include "ucg_coll/base/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace ucg {
namespace {

struct Character {
    std::uint32_t code; ///< The code point; of a byte that is not UTF-8, the byte itself.
    std::size_t bytes;
    bool valid;
};

/// Returns the character that `text` begins with. REQUIRES: text is not empty.
Character first_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const Character wrong = {byte(0), 1, false};
    const std::size_t length = byte(0) < 0x80             ? 1
                               : (byte(0) & 0xe0) == 0xc0 ? 2
                               : (byte(0) & 0xf0) == 0xe0 ? 3
                               : (byte(0) & 0xf8) == 0xf0 ? 4
                                                          : 0;
    if (length == 0 || length > text.size()) {
        return wrong;
    }
    // A form that is longer than the code point needs is not valid UTF-8.
    static constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
    std::uint32_t code = length == 1 ? byte(0) : byte(0) & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) {
            return wrong;
        }
        code = code << 6 | (byte(i) & 0x3fU);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < kLeast[length] || surrogate || code > 0x10ffff ? wrong
                                                                 : Character{code, length, true};
}

bool is_plain(char letter) {
    return (letter >= ' ' && letter <= '~') || letter == '\n' || letter == '\t';
}

} // namespace

std::string printable(std::string_view text, LineBreaks breaks) {
    if (breaks == LineBreaks::keep && std::all_of(text.begin(), text.end(), is_plain)) {
        return std::string(text); // The usual case, kept fast since texts may be long.
    }
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const auto [code, bytes, valid] = first_of(text);
        const bool control = code < ' ' || (code >= 0x7f && code <= 0x9f);
        if (code == '\t' || (code == '\n' && breaks == LineBreaks::keep)) {
            result += text.front();
        } else if (control || !valid) {
            result += fmt::format("\\u{:04x}", code);
        } else {
            result += text.substr(0, bytes);
        }
        text.remove_prefix(bytes);
    }
    return result;
}

} // namespace ucg
