#include "tools/ucg_sim/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace ucg::tools {

namespace {

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t comma = text.find(',');
        parts.push_back(text.substr(0, comma));
        if (comma == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(comma + 1);
    }
}

Result<double> parse_number(std::string_view text) {
    std::string_view rest = text;
    double number = 0;
    if (!take_number(rest, number) || !rest.empty()) {
        return failure(Code::invalid_argument, "expected a number, found '{}'", text);
    }
    return number;
}

struct Form {
    std::string_view name;
    sim::Distribution::Kind kind;
    std::size_t count; ///< The number of parameters.
    std::string_view example;
};

constexpr std::array kForms = {
    Form{"uniform", sim::Distribution::Kind::uniform, 2, "uniform:0ns,100ns"},
    Form{"exponential", sim::Distribution::Kind::exponential, 1, "exponential:50ns"},
    Form{"normal", sim::Distribution::Kind::normal, 2, "normal:100ns,20ns"},
    Form{"pareto", sim::Distribution::Kind::pareto, 2, "pareto:10ns,2.5"},
};

Result<sim::Distribution> parse_parameters(const Form& form, std::string_view text) {
    const std::vector<std::string_view> parts = split(text);
    if (text.empty() || parts.size() != form.count) {
        return failure(Code::invalid_argument, "expected the form {}, found '{}:{}'", form.example,
                       form.name, text);
    }
    sim::Distribution distribution{form.kind};
    const Result<double> first = parse_time_ns(parts[0]);
    if (!first) {
        return first.status();
    }
    distribution.first = *first;
    if (form.count == 2) {
        const Result<double> second = form.kind == sim::Distribution::Kind::pareto
                                          ? parse_number(parts[1])
                                          : parse_time_ns(parts[1]);
        if (!second) {
            return second.status();
        }
        distribution.second = *second;
    }
    const Status status = sim::check(distribution);
    return status.ok() ? Result<sim::Distribution>(distribution) : status;
}

} // namespace

Result<std::vector<double>> parse_times_ns(std::string_view text) {
    std::vector<double> times;
    for (const std::string_view part : split(text)) {
        const Result<double> time = parse_time_ns(part);
        if (!time) {
            return time.status();
        }
        times.push_back(*time);
    }
    return times;
}

Result<std::vector<LateRank>> parse_late_ranks(std::string_view text) {
    std::vector<LateRank> ranks;
    for (const std::string_view part : split(text)) {
        const std::size_t equals = std::min(part.find('='), part.size());
        LateRank late;
        const char* const end = part.data() + equals;
        const auto [stop, error] = std::from_chars(part.data(), end, late.rank);
        if (error != std::errc() || stop != end || late.rank < 0 || equals == part.size()) {
            return failure(Code::invalid_argument,
                           "expected a rank and how late it is, such as 3=5us; found '{}'", part);
        }
        const Result<double> ns = parse_time_ns(part.substr(equals + 1));
        if (!ns) {
            return ns.status();
        }
        late.ns = *ns;
        ranks.push_back(late);
    }
    return ranks;
}

Result<sim::Distribution> parse_distribution(std::string_view text) {
    if (text == "none") {
        return sim::Distribution{};
    }
    const std::size_t colon = text.find(':');
    for (const Form& form : kForms) {
        if (text.substr(0, colon) == form.name) {
            return parse_parameters(form, colon == std::string_view::npos ? std::string_view()
                                                                          : text.substr(colon + 1));
        }
    }
    return failure(Code::invalid_argument,
                   "expected none, uniform:LOW,HIGH, exponential:MEAN, normal:MEAN,DEVIATION or "
                   "pareto:SCALE,SHAPE; found '{}'",
                   text);
}

std::string time_text(double ns) {
    return fmt::format("{} ns", ns);
}

} // namespace ucg::tools
