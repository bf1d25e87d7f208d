// Built-in costs by kind of processor, for machines that have not been measured. The table is in
// processors.cpp, with where each row's figures come from.
#pragma once

#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/cost/profile.hpp"

namespace ucg::cost {

/// A row of the table of built-in costs.
struct BuiltinCosts {
    std::string_view name; ///< For people: the processors that were measured.
    const Profile& profile;
};

/// Returns the built-in costs of that kind of processor; default_profile() for one that the table
/// lacks.
BuiltinCosts builtin_costs(const topo::Processor& processor);

} // namespace ucg::cost
