// Facade of ucg_coll/price: what one op of a schedule costs. The planner's prices of algorithms and
// the simulator's of whole schedules are made of these and of nothing else.
#pragma once

#include "ucg_coll/price/message.hpp"
#include "ucg_coll/price/work.hpp"
