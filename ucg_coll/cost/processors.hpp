// Built-in costs by kind of processor, for machines that have not been measured. The table is in
// processors.cpp, with where each row's figures come from.
#pragma once

#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/cost/profile.hpp"

namespace ucg::cost {

struct BuiltinCosts {
    std::string_view name; ///< Of the processors that were measured, for people.
    const Profile& profile;
};

/// What is known of that kind of processor; default_profile() for one that the table lacks.
BuiltinCosts builtin_costs(const topo::Processor& processor);

} // namespace ucg::cost
