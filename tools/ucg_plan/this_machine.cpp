#include "tools/ucg_plan/this_machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ucg_coll/capi/machine_setting.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/capi/single_copies.hpp"

namespace ucg::tools {

Result<topo::Placement> on_hosts_like_this(const topo::Placement& placement, bool unbound) {
    const Result<topo::Machine> machine = topo::discover_machine();
    if (!machine) {
        return machine.status();
    }
    return topo::Placement(placement.rank_count(), [&](Rank rank) {
        const auto local = static_cast<std::uint32_t>(placement.index_on_host(rank));
        topo::Place place = unbound ? machine->place_of(topo::usable_cpus())
                                    : capi::place_of_process(*machine, local);
        place.host = placement.host(rank);
        return place;
    });
}

double ranks_per_cpu_here(Rank ranks_on_host) {
    return std::max(1.0, static_cast<double>(ranks_on_host) / topo::usable_cpu_count());
}

Result<cost::Profile> costs_here() {
    const char* const setting = std::getenv("UCG_PROFILE");
    const Result<capi::LoadedProfile> loaded =
        capi::load_profile(setting == nullptr ? "" : setting);
    if (!loaded) {
        return loaded.status();
    }
    cost::Profile profile = loaded->profile;
    profile.memory.cma.bytes_min = capi::single_copies(*loaded).bytes_min;
    return profile;
}

} // namespace ucg::tools
