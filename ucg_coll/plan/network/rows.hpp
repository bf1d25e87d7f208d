// The list of the rows for a tree of switches. Each row is defined in the file of its algorithm.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

#define UCG_NETWORK_ROWS(ROW)                                                                      \
    ROW(kAlltoallAapc)                                                                             \
    ROW(kAlltoallFile)                                                                             \
    ROW(kAlltoallvAapc)                                                                            \
    ROW(kAlltoallvFile)

namespace ucg::plan {

UCG_NETWORK_ROWS(UCG_DECLARE_ROW)
inline constexpr const Algorithm* kNetworkRows[] = {UCG_NETWORK_ROWS(UCG_POINT_TO_ROW)};

} // namespace ucg::plan
