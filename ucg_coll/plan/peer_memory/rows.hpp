// The list of the rows that read peers' memory. Each row is defined in the file of its algorithm.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

#define UCG_PEER_MEMORY_ROWS(ROW)                                                                  \
    ROW(kBcastOneStage)                                                                            \
    ROW(kBcastTwoStage)                                                                            \
    ROW(kBcastReadAllgather)                                                                       \
    ROW(kReduceNumaTree)                                                                           \
    ROW(kReduceTiled)                                                                              \
    ROW(kAllreduceAllRead)                                                                         \
    ROW(kAllreduceTiledNaive)                                                                      \
    ROW(kAllreduceTiledCyclic)                                                                     \
    ROW(kAllreduceTiledExchange)                                                                   \
    ROW(kAllreduceTiledHierarchical)                                                               \
    ROW(kAllreduceNumaTree)                                                                        \
    ROW(kAllreduceNumaDissemination)                                                               \
    ROW(kAllgatherPeerRead)                                                                        \
    ROW(kAllgathervPeerRead)                                                                       \
    ROW(kAlltoallPeerRead)                                                                         \
    ROW(kGatherPeerRead)                                                                           \
    ROW(kScatterPeerRead)                                                                          \
    ROW(kReduceScatterPeerRead)                                                                    \
    ROW(kReduceScatterBlockPeerRead)                                                               \
    ROW(kBcastHelped)                                                                              \
    ROW(kReduceHelped)                                                                             \
    ROW(kAllreduceHelped)                                                                          \
    ROW(kAllgatherHelped)                                                                          \
    ROW(kAlltoallHelped)

namespace ucg::plan {

UCG_PEER_MEMORY_ROWS(UCG_DECLARE_ROW)
inline constexpr const Algorithm* kPeerMemoryRows[] = {UCG_PEER_MEMORY_ROWS(UCG_POINT_TO_ROW)};

} // namespace ucg::plan
