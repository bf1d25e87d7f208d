#include "tools/times.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

bool take_number(std::string_view& text, double& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || !std::isfinite(number)) {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

Result<double> parse_time_ns(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, double>, 5> kUnits = {
        {{"ps", 1e-3}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
    std::string_view rest = text;
    double number = 0;
    if (take_number(rest, number) && number >= 0) {
        if (rest.empty() && number == 0) {
            return 0.0;
        }
        for (const auto& [unit, ns] : kUnits) {
            if (rest == unit && number * ns <= cost::kFigureMax) {
                return number * ns;
            }
        }
    }
    return failure(Code::invalid_argument,
                   "expected a time that is not negative with its unit (ps, ns, us, ms, s), such "
                   "as 400ns, and no longer than {}s; found '{}'",
                   cost::kFigureMax / 1e9, text);
}

} // namespace ucg::tools
