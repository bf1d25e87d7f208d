// What a breakdown has found, as a value: for text, JSON, pictures and what-if curves.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "perf/perftest/breakdown/model.hpp"

namespace ucg::perftest::breakdown {

/// Components that belong together, such as those of "UCT over posix/memory".
struct Section {
    std::string title;
    std::vector<Component> components;
    /// Sums of these components, compared with what was observed.
    std::vector<Comparison> comparisons = {};
    std::vector<std::string> notes = {}; ///< What could not be measured, and why.
};

struct Findings {
    /// What was measured where: pairs such as ("processor", "..."), in their order.
    std::vector<std::pair<std::string, std::string>> facts;
    std::vector<Section> sections;
};

} // namespace ucg::perftest::breakdown
