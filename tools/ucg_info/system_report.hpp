// What ucg_info --report prints about the system, for reports of faults.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace ucg::tools {

/// The system, what it allows this process, and the environment variables that set up UCG, UCX,
/// Open MPI and PMIx. No other variables are shown.
class SystemReport {
  public:
    SystemReport();

    std::string text() const;
    nlohmann::ordered_json json() const;

  private:
    using Facts = std::vector<std::pair<std::string, std::string>>;

    Facts system_;
    Facts limits_;
    Facts variables_; ///< Sorted by name.
};

} // namespace ucg::tools
