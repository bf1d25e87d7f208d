#include "ucg_coll/base/size_text.hpp"

#include <charconv>

#include "ucg_coll/base/log.hpp"

namespace ucg {

static constexpr std::string_view kUnits = "kMGT"; // A unit's place, from 1, is the power of 1024.

Result<std::uint64_t> parse_size(std::string_view text) {
    const auto wrong = [text] {
        return failure(Code::invalid_argument,
                       "expected a size such as 65536, 64k, 16M or 1G, found '{}'", text);
    };
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    unsigned shift = 0;
    if (unit.size() == 1) {
        const std::size_t index =
            kUnits.find(unit == "K" ? 'k' : unit[0]); // UCX accepts both cases of kilo.
        if (index == std::string_view::npos) {
            return wrong();
        }
        shift = 10 * static_cast<unsigned>(index + 1);
    }
    if (error != std::errc() || unit.size() > 1 || (number << shift) >> shift != number) {
        return wrong();
    }
    return number << shift;
}

std::string size_text(std::uint64_t bytes) {
    std::size_t unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit < kUnits.size()) {
        bytes /= 1024;
        ++unit;
    }
    return unit == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, kUnits[unit - 1]);
}

} // namespace ucg
