// Facade of ucg_coll/graph: the schedule graph as a value, its builder, proof and text forms. May
// include ucg_coll/base only.
#pragma once

#include "ucg_coll/graph/builder.hpp"
#include "ucg_coll/graph/collective.hpp"
#include "ucg_coll/graph/dot.hpp"
#include "ucg_coll/graph/flag_slots.hpp"
#include "ucg_coll/graph/helped.hpp"
#include "ucg_coll/graph/json.hpp"
#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/network.hpp"
#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/graph/staging.hpp"
#include "ucg_coll/graph/text.hpp"
#include "ucg_coll/graph/verify.hpp"
