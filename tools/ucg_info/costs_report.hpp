// What ucg_info tells of the costs that algorithms are chosen by.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/single_copies.hpp"

namespace ucg::tools {

/// What plans are chosen by here, and where each figure comes from.
class CostsReport {
  public:
    explicit CostsReport(const capi::Config& config);

    std::string text() const;
    Status status() const { return status_; } ///< Why there are none; success if there are.
    nlohmann::ordered_json json() const;

  private:
    bool tuned() const;
    const char* origin(bool measured) const;
    std::string messages() const;
    std::string copies() const;

    Status status_;
    capi::LoadedProfile profile_;
    capi::SingleCopies copies_;
    std::string far_origin_;            ///< Of single copies between cores that share no cache.
    std::string oversubscribed_origin_; ///< Of single copies where ranks share processors.
    std::string processor_;
    std::string built_in_; ///< What is built in, and for which processors.
};

} // namespace ucg::tools
