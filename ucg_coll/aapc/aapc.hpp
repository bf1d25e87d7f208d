// Facade of ucg_coll/aapc: all-to-all personalised communication without contention on a tree of
// links. May include base alone.
#pragma once

#include "ucg_coll/aapc/layout.hpp"
#include "ucg_coll/aapc/listed.hpp"
#include "ucg_coll/aapc/order.hpp"
#include "ucg_coll/aapc/phases.hpp"
#include "ucg_coll/aapc/users.hpp"
