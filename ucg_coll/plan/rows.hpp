// The rows of the planner's table, each defined in the file named after its algorithm. Only
// plan.cpp (the table), the two-level compositions and tests need them by name.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

namespace ucg::plan {

extern const Algorithm kBarrierDissemination;
extern const Algorithm kBarrierNWayDissemination;
extern const Algorithm kBarrierKaryTree;
extern const Algorithm kBarrierTwoLevel;
extern const Algorithm kBarrierBoards;

extern const Algorithm kBcastKnomial;
extern const Algorithm kBcastChain;
extern const Algorithm kBcastScatterAllgather;
extern const Algorithm kBcastTwoLevel;
extern const Algorithm kBcastOneStage;
extern const Algorithm kBcastTwoStage;
extern const Algorithm kBcastBoards;

extern const Algorithm kReduceKnomial;
extern const Algorithm kReduceChain;
extern const Algorithm kReduceRabenseifner;
extern const Algorithm kReduceTwoLevel;
extern const Algorithm kReduceNumaTree;
extern const Algorithm kReduceTiled;
extern const Algorithm kReduceBoards;

extern const Algorithm kAllreduceRecursiveDoubling;
extern const Algorithm kAllreduceRecursiveMultiplying;
extern const Algorithm kAllreduceElimination;
extern const Algorithm kAllreduceReduceBcast;
extern const Algorithm kAllreduceRing;
extern const Algorithm kAllreduceRabenseifner;
extern const Algorithm kAllreduceTwoLevel;
extern const Algorithm kAllreduceAllRead;
extern const Algorithm kAllreduceTiledNaive;
extern const Algorithm kAllreduceTiledCyclic;
extern const Algorithm kAllreduceTiledExchange;
extern const Algorithm kAllreduceTiledHierarchical;
extern const Algorithm kAllreduceNumaTree;
extern const Algorithm kAllreduceNumaDissemination;
extern const Algorithm kAllreduceBoards;

extern const Algorithm kAllgatherRecursiveDoubling;
extern const Algorithm kAllgatherBruck;
extern const Algorithm kAllgatherNWayDissemination;
extern const Algorithm kAllgatherRing;
extern const Algorithm kAllgatherTwoLevel;
extern const Algorithm kAllgatherPeerRead;
extern const Algorithm kAllgatherBoards;

extern const Algorithm kAllgathervBruck;
extern const Algorithm kAllgathervNWayDissemination;
extern const Algorithm kAllgathervRing;
extern const Algorithm kAllgathervTwoLevel;
extern const Algorithm kAllgathervBoards;

extern const Algorithm kAlltoallBruck;
extern const Algorithm kAlltoallPairwise;
extern const Algorithm kAlltoallLinear;
extern const Algorithm kAlltoallPeerRead;
extern const Algorithm kAlltoallBoards;
extern const Algorithm kAlltoallAapc;
extern const Algorithm kAlltoallFile;

extern const Algorithm kAlltoallvPairwise;
extern const Algorithm kAlltoallvAapc;
extern const Algorithm kAlltoallvFile;
extern const Algorithm kAlltoallvLinear;

extern const Algorithm kGatherBinomial;
extern const Algorithm kGatherLinear;
extern const Algorithm kGatherTwoLevel;
extern const Algorithm kGatherPeerRead;
extern const Algorithm kGatherBoards;
extern const Algorithm kGathervLinear;

extern const Algorithm kScatterBinomial;
extern const Algorithm kScatterLinear;
extern const Algorithm kScatterTwoLevel;
extern const Algorithm kScatterPeerRead;
extern const Algorithm kScatterBoards;
extern const Algorithm kScattervLinear;

extern const Algorithm kReduceScatterRecursiveHalving;
extern const Algorithm kReduceScatterNWayDissemination;
extern const Algorithm kReduceScatterRing;
extern const Algorithm kReduceScatterPairwise;
extern const Algorithm kReduceScatterTwoLevel;
extern const Algorithm kReduceScatterBoards;

extern const Algorithm kReduceScatterBlockRecursiveHalving;
extern const Algorithm kReduceScatterBlockNWayDissemination;
extern const Algorithm kReduceScatterBlockRing;
extern const Algorithm kReduceScatterBlockPairwise;
extern const Algorithm kReduceScatterBlockTwoLevel;
extern const Algorithm kReduceScatterBlockPeerRead;
extern const Algorithm kReduceScatterBlockBoards;

extern const Algorithm kScanRecursiveDoubling;
extern const Algorithm kScanChain;
extern const Algorithm kScanBoards;
extern const Algorithm kExscanRecursiveDoubling;
extern const Algorithm kExscanChain;
extern const Algorithm kExscanBoards;

} // namespace ucg::plan
