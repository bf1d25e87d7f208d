// Breakdowns as stacked bars of per cent, one below another, in one SVG document that can be read
// by itself: the paper's figures 8, 10 and 12 to 16.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "perf/perftest/breakdown/model.hpp"

namespace ucg::perftest::breakdown {

/// One bar: "LLP_post: 175.4 ns" with its parts.
struct Bar {
    std::string title;
    std::vector<Term> terms;
};

/// The bars of a model: its terms, and what passes in which category (figure 15), if there is more
/// than one.
std::vector<Bar> bars_of(const Comparison& comparison);

/// Terms that are not positive are left out. `title` and `subtitle` stand above all.
std::string bars_svg(std::span<const Bar> bars, const std::string& title,
                     const std::string& subtitle);

} // namespace ucg::perftest::breakdown
