// Facade of ucg_coll/cost: cost models as values. May include base and topo; never clocks or the
// environment.
#pragma once

#include "ucg_coll/cost/memory_collectives.hpp"
#include "ucg_coll/cost/memory_model.hpp"
#include "ucg_coll/cost/network_model.hpp"
#include "ucg_coll/cost/processors.hpp"
#include "ucg_coll/cost/profile.hpp"
