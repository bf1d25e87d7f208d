// The list of the rows that use flag slots. Each row is defined in the file of its algorithm.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

#define UCG_FLAG_SLOT_ROWS(ROW)                                                                    \
    ROW(kBarrierFlagSlots)                                                                         \
    ROW(kBcastFlagSlots)                                                                           \
    ROW(kBcastFlagSlotsAllgather)                                                                  \
    ROW(kReduceFlagSlots)                                                                          \
    ROW(kReduceFlagSlotsGather)                                                                    \
    ROW(kAllreduceFlagSlots)                                                                       \
    ROW(kAllreduceFlagSlotsAllgather)                                                              \
    ROW(kAllgatherFlagSlots)                                                                       \
    ROW(kAllgathervFlagSlots)                                                                      \
    ROW(kAlltoallFlagSlots)                                                                        \
    ROW(kGatherFlagSlots)                                                                          \
    ROW(kScatterFlagSlots)                                                                         \
    ROW(kGathervFlagSlots)                                                                         \
    ROW(kScattervFlagSlots)                                                                        \
    ROW(kReduceScatterFlagSlots)                                                                   \
    ROW(kReduceScatterBlockFlagSlots)                                                              \
    ROW(kScanFlagSlots)                                                                            \
    ROW(kExscanFlagSlots)                                                                          \
    ROW(kBarrierFlagSlotTree)                                                                      \
    ROW(kBcastFlagSlotTree)                                                                        \
    ROW(kReduceFlagSlotTree)                                                                       \
    ROW(kAllreduceFlagSlotTree)                                                                    \
    ROW(kReduceScatterBlockFlagSlotTree)

namespace ucg::plan {

UCG_FLAG_SLOT_ROWS(UCG_DECLARE_ROW)
inline constexpr const Algorithm* kFlagSlotRows[] = {UCG_FLAG_SLOT_ROWS(UCG_POINT_TO_ROW)};

} // namespace ucg::plan
