// Draws breakdowns as stacked bars of per cent, one below another, in one SVG document that needs
// no other file: the paper's figures 8, 10 and 12 to 16.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "perf/perftest/breakdown/model.hpp"

namespace ucg::perftest::breakdown {

/// One bar: a title such as "LLP_post: 175.4 ns", and the terms that are its parts.
struct Bar {
    std::string title;
    std::vector<Term> terms;
};

/// Returns the bars of a model: one with its terms, and one with the time in each category (figure
/// 15) if there is more than one category.
std::vector<Bar> bars_of(const Comparison& comparison);

/// Returns the document. Terms that are not positive are left out. `title` and `subtitle` stand
/// above the bars.
std::string bars_svg(std::span<const Bar> bars, const std::string& title,
                     const std::string& subtitle);

} // namespace ucg::perftest::breakdown
