#include "topo/machine.hpp"

#include <algorithm>
#include <unordered_set>

namespace ucg::topo {

Machine::Machine(std::vector<Core> cores, const MemorySizes& sizes)
    : cores_(std::move(cores)), sizes_(sizes) {
    const auto cover = [this](std::uint32_t& count, std::uint32_t index) {
        UCG_ASSERT(index < cores_.size());
        count = std::max(count, index + 1);
    };
    for (const Core& core : cores_) {
        cover(package_count_, core.package);
        cover(numa_count_, core.numa);
        cover(l3_count_, core.l3);
        cover(l2_count_, core.l2);
    }
}

Place Machine::place_of_core(std::uint32_t core) const {
    UCG_ASSERT(core < cores_.size());
    const Core& where = cores_[core];
    Place place;
    place.package = where.package;
    place.numa = where.numa;
    place.cache = where.l3;
    place.core = core;
    return place;
}

Place Machine::place_of(const std::vector<std::uint32_t>& cpus) const {
    const std::unordered_set<std::uint32_t> wanted(cpus.begin(), cpus.end());
    std::size_t found = 0;
    Place place;
    place.known = Distance::host;
    for (std::uint32_t core = 0; core < core_count(); ++core) {
        const auto& threads = cores_[core].threads;
        const auto here = std::count_if(threads.begin(), threads.end(),
                                        [&](std::uint32_t cpu) { return wanted.contains(cpu); });
        if (here > 0) {
            const Place other = place_of_core(core);
            place = found == 0 ? other : forget_inside(place, distance(place, other));
            found += static_cast<std::size_t>(here);
        }
    }
    // A CPU that the machine lacks could be anywhere, so that only the host is known.
    return found == wanted.size() ? place : forget_inside(place, Distance::host);
}

} // namespace ucg::topo
