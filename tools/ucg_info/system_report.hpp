// What ucg_info --report tells of the system, for a report of a fault.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace ucg::tools {

/// The system, what it allows this process, and the variables by which users steer UCG, UCX, Open
/// MPI and PMIx. Values of others are not shown.
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
