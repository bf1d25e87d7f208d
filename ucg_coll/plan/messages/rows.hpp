// The planner's rows for algorithms by messages among one team. The list has a line for each row,
// which the file of its algorithm defines.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

#define UCG_MESSAGE_ROWS(ROW)                                                                      \
    ROW(kBarrierDissemination)                                                                     \
    ROW(kBarrierNWayDissemination)                                                                 \
    ROW(kBarrierKaryTree)                                                                          \
    ROW(kBcastKnomial)                                                                             \
    ROW(kBcastChain)                                                                               \
    ROW(kBcastCirculant)                                                                           \
    ROW(kBcastScatterAllgather)                                                                    \
    ROW(kReduceKnomial)                                                                            \
    ROW(kReduceChain)                                                                              \
    ROW(kReduceCirculant)                                                                          \
    ROW(kReduceRabenseifner)                                                                       \
    ROW(kReduceReduceScatterGather)                                                                \
    ROW(kAllreduceRecursiveDoubling)                                                               \
    ROW(kAllreduceElimination)                                                                     \
    ROW(kAllreduceReduceBcast)                                                                     \
    ROW(kAllreduceRing)                                                                            \
    ROW(kAllreduceRabenseifner)                                                                    \
    ROW(kAllreduceReduceScatterAllgather)                                                          \
    ROW(kAllgatherRecursiveDoubling)                                                               \
    ROW(kAllgatherBruck)                                                                           \
    ROW(kAllgatherNWayDissemination)                                                               \
    ROW(kAllgatherRing)                                                                            \
    ROW(kAllgathervBruck)                                                                          \
    ROW(kAllgathervNWayDissemination)                                                              \
    ROW(kAllgathervRing)                                                                           \
    ROW(kAlltoallBruck)                                                                            \
    ROW(kAlltoallPairwise)                                                                         \
    ROW(kAlltoallLinear)                                                                           \
    ROW(kAlltoallvPairwise)                                                                        \
    ROW(kAlltoallvLinear)                                                                          \
    ROW(kGatherBinomial)                                                                           \
    ROW(kGatherLinear)                                                                             \
    ROW(kGathervLinear)                                                                            \
    ROW(kScatterBinomial)                                                                          \
    ROW(kScatterLinear)                                                                            \
    ROW(kScattervLinear)                                                                           \
    ROW(kReduceScatterRecursiveHalving)                                                            \
    ROW(kReduceScatterNWayDissemination)                                                           \
    ROW(kReduceScatterRing)                                                                        \
    ROW(kReduceScatterPairwise)                                                                    \
    ROW(kReduceScatterReduceThenScatter)                                                           \
    ROW(kReduceScatterBlockRecursiveHalving)                                                       \
    ROW(kReduceScatterBlockNWayDissemination)                                                      \
    ROW(kReduceScatterBlockRing)                                                                   \
    ROW(kReduceScatterBlockPairwise)                                                               \
    ROW(kReduceScatterBlockReduceThenScatter)                                                      \
    ROW(kScanRecursiveDoubling)                                                                    \
    ROW(kScanChain)                                                                                \
    ROW(kExscanRecursiveDoubling)                                                                  \
    ROW(kExscanChain)                                                                              \
    ROW(kNeighborAlltoallvLinear)

namespace ucg::plan {

UCG_MESSAGE_ROWS(UCG_DECLARE_ROW)
inline constexpr const Algorithm* kMessageRows[] = {UCG_MESSAGE_ROWS(UCG_POINT_TO_ROW)};

} // namespace ucg::plan
