// Writes the results of a run as one JSON document.
#pragma once

#include "perf/perftest/report.hpp"
#include "perf/perftest/run.hpp"

namespace ucg::perftest {

/// Return one test's settings and statistics as the text of an object.
std::string json_of(const Job& job, const PrimitiveRow& row, std::string_view details);
std::string json_of(const Job& job, const CollectiveRow& row, std::string_view details);

/// Returns all results, preceded by what they depend on: machine, versions, launcher.
std::string json_document(const Runtime& runtime, const Session& session,
                          const std::vector<std::string>& results);

} // namespace ucg::perftest
