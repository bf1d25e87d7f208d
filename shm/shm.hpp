// Facade of shm: memory that the processes of one host share, and how they wait on it. It may use
// base and topo; it knows neither messages nor schedules, UCX nor MPI. Start with heap.hpp, then
// ring.hpp; PROTOCOL.md says who writes which cache line and why that is right.
#pragma once

#include "shm/copy.hpp"
#include "shm/doorbell.hpp"
#include "shm/flag_slot.hpp"
#include "shm/heap.hpp"
#include "shm/host.hpp"
#include "shm/neighbours.hpp"
#include "shm/ring.hpp"
#include "shm/wait.hpp"
