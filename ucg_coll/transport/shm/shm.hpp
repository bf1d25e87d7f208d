// Facade of transport/shm. It may include base, graph, transport.hpp and shm.
#pragma once

#include "ucg_coll/transport/shm/shm_transport.hpp"
