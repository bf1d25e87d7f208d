#include "tools/ucg_tune/neighbours.hpp"

#include <utility>

#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

std::vector<CpusAtDistance> neighbours_of(const topo::Machine& machine,
                                          const std::vector<std::uint32_t>& cpus) {
    std::vector<topo::Place> places;
    places.reserve(cpus.size());
    for (const std::uint32_t cpu : cpus) {
        places.push_back(machine.place_of({cpu}));
    }
    std::vector<CpusAtDistance> all;
    for (std::size_t d = 0; d < cost::kMemoryLevelCount; ++d) {
        const auto distance = static_cast<topo::Distance>(d);
        CpusAtDistance best = {distance, {}};
        for (std::size_t i = 0; i < cpus.size(); ++i) {
            CpusAtDistance one = {distance, {cpus[i]}};
            for (std::size_t j = 0; j < cpus.size(); ++j) {
                if (i != j && topo::distance(places[i], places[j]) == distance) {
                    one.cpus.push_back(cpus[j]);
                }
            }
            if (one.cpus.size() > best.cpus.size()) {
                best = std::move(one);
            }
        }
        if (best.cpus.size() > 1) {
            all.push_back(std::move(best));
        }
    }
    return all;
}

} // namespace ucg::tools
