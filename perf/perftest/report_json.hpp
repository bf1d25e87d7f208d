// The results of a run as one JSON document.
#pragma once

#include "perf/perftest/report.hpp"
#include "perf/perftest/run.hpp"

namespace ucg::perftest {

/// One test's settings and statistics, as an object's text.
std::string json_of(const Job& job, const PrimitiveRow& row, std::string_view details);
std::string json_of(const Job& job, const CollectiveRow& row, std::string_view details);

/// All of them behind what they depend on: machine, versions, launcher.
std::string json_document(const Runtime& runtime, const Session& session,
                          const std::vector<std::string>& results);

} // namespace ucg::perftest
