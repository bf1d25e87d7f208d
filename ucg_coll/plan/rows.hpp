// The rows of all mechanisms by name, for the table and for tests.
#pragma once

#include "ucg_coll/plan/flag_slots/rows.hpp"
#include "ucg_coll/plan/levels/rows.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/multiplying/rows.hpp"
#include "ucg_coll/plan/network/rows.hpp"
#include "ucg_coll/plan/peer_memory/rows.hpp"
