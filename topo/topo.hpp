// Facade of topo: what the machine is and where the ranks are, as values. May include
// ucg_coll/base; hwloc in one file (machine_hwloc.cpp). Never UCX, MPI or shm.
#pragma once

#include "topo/binding.hpp"
#include "topo/cluster.hpp"
#include "topo/cluster_load.hpp"
#include "topo/cluster_map.hpp"
#include "topo/cpus.hpp"
#include "topo/draw.hpp"
#include "topo/machine.hpp"
#include "topo/placement.hpp"
#include "topo/processor.hpp"
