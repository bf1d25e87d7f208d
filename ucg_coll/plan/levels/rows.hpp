// The planner's rows for algorithms over hosts and their leaders. The list has a line for each row,
// which the file of its algorithm defines.
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
