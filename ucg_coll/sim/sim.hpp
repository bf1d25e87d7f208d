// Facade of ucg_coll/sim: prices schedules of all ranks under a model and draws what happens. May
// include base, topo, cost, price and graph; never the planner, the engine, a transport, a clock or
// the environment.
#pragma once

#include "ucg_coll/sim/prices.hpp"
#include "ucg_coll/sim/random.hpp"
#include "ucg_coll/sim/simulator.hpp"
#include "ucg_coll/sim/task_graph.hpp"
#include "ucg_coll/sim/time.hpp"
#include "ucg_coll/sim/timeline.hpp"
#include "ucg_coll/sim/trace.hpp"
