// The rows by hosts and their leaders: a line for each, whose file defines it.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

#define UCG_LEVEL_ROWS(ROW)                                                                        \
    ROW(kBarrierTwoLevel)                                                                          \
    ROW(kBcastTwoLevel)                                                                            \
    ROW(kReduceTwoLevel)                                                                           \
    ROW(kAllreduceTwoLevel)                                                                        \
    ROW(kAllgatherTwoLevel)                                                                        \
    ROW(kAllgathervTwoLevel)                                                                       \
    ROW(kAlltoallTwoLevel)                                                                         \
    ROW(kNeighborAlltoallvTwoLevel)                                                                \
    ROW(kGatherTwoLevel)                                                                           \
    ROW(kScatterTwoLevel)                                                                          \
    ROW(kReduceScatterTwoLevel)                                                                    \
    ROW(kReduceScatterBlockTwoLevel)                                                               \
    ROW(kScanTwoLevel)                                                                             \
    ROW(kExscanTwoLevel)

namespace ucg::plan {

UCG_LEVEL_ROWS(UCG_DECLARE_ROW)
inline constexpr const Algorithm* kLevelRows[] = {UCG_LEVEL_ROWS(UCG_POINT_TO_ROW)};

} // namespace ucg::plan
