// The rows by boards: a line for each, whose file defines it.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

#define UCG_BOARD_ROWS(ROW)                                                                        \
    ROW(kBarrierBoards)                                                                            \
    ROW(kBcastBoards)                                                                              \
    ROW(kBcastBoardsAllgather)                                                                     \
    ROW(kReduceBoards)                                                                             \
    ROW(kAllreduceBoards)                                                                          \
    ROW(kAllgatherBoards)                                                                          \
    ROW(kAllgathervBoards)                                                                         \
    ROW(kAlltoallBoards)                                                                           \
    ROW(kGatherBoards)                                                                             \
    ROW(kScatterBoards)                                                                            \
    ROW(kGathervBoards)                                                                            \
    ROW(kScattervBoards)                                                                           \
    ROW(kReduceScatterBoards)                                                                      \
    ROW(kReduceScatterBlockBoards)                                                                 \
    ROW(kScanBoards)                                                                               \
    ROW(kExscanBoards)                                                                             \
    ROW(kBarrierBoardTree)                                                                         \
    ROW(kBcastBoardTree)                                                                           \
    ROW(kReduceBoardTree)                                                                          \
    ROW(kAllreduceBoardTree)                                                                       \
    ROW(kReduceScatterBlockBoardTree)

namespace ucg::plan {

UCG_BOARD_ROWS(UCG_DECLARE_ROW)
inline constexpr const Algorithm* kBoardRows[] = {UCG_BOARD_ROWS(UCG_POINT_TO_ROW)};

} // namespace ucg::plan
