// Prints what a breakdown has found, for people and for programs.
#pragma once

#include <string>
#include <string_view>

#include "perf/perftest/breakdown/findings.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::perftest::breakdown {

/// Returns tables of components, and each model as a sum with its error.
std::string text_report(const Findings& findings);

/// Returns one object: facts, and sections with components and models. parse_findings() reads it.
std::string json_report(const Findings& findings);

/// The inverse of json_report(). Fails with invalid_argument and what is wrong where.
ucg::Result<Findings> parse_findings(std::string_view json);

/// Returns all models as bars in SVG, grouped by section.
std::string svg_report(const Findings& findings);

} // namespace ucg::perftest::breakdown
