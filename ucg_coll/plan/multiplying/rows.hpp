// The list of the rows of recursive multiplying. Each row is defined in the file of its algorithm.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

#define UCG_MULTIPLYING_ROWS(ROW) ROW(kAllreduceRecursiveMultiplying)

namespace ucg::plan {

UCG_MULTIPLYING_ROWS(UCG_DECLARE_ROW)
inline constexpr const Algorithm* kMultiplyingRows[] = {UCG_MULTIPLYING_ROWS(UCG_POINT_TO_ROW)};

} // namespace ucg::plan
