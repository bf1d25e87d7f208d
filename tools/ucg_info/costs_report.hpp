// What ucg_info prints about the costs by which algorithms are chosen.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/single_copies.hpp"

namespace ucg::tools {

/// The costs by which algorithms are chosen here, with the origin of each figure.
class CostsReport {
  public:
    explicit CostsReport(const capi::Config& config);

    std::string text() const;
    Status status() const { return status_; } ///< Why there are no costs; success if there are.
    nlohmann::ordered_json json() const;

  private:
    bool tuned() const;
    static const char* origin(bool measured) { return measured ? "measured" : "built in"; }
    /// Returns the origin of a figure and of the one where ranks share processors.
    static std::string origins(const std::string& alone, const std::string& shared);
    std::string looked_for() const;
    std::string messages() const;
    /// Returns the length from which on the kernel copies messages of that use.
    std::uint64_t bytes_min(MessageUse use, double ranks_per_cpu) const;
    /// Returns a table of the lengths from which on ways of copying are used.
    std::string lengths() const;

    Status status_;
    capi::LoadedProfile profile_;
    capi::SingleCopies copies_;
    std::string far_origin_;            ///< Origin of the threshold between far cores.
    std::string oversubscribed_origin_; ///< The same where ranks share processors.
    std::string one_way_origin_;        ///< The same where messages go one way.
    std::string processor_;
    std::string built_in_; ///< For which processor the built-in costs are.
};

} // namespace ucg::tools
