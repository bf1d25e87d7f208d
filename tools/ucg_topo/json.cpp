#include "tools/ucg_topo/json.hpp"

namespace ucg::tools {

Json to_json(const topo::Machine& machine) {
    Json cores = Json::array();
    for (std::uint32_t i = 0; i < machine.core_count(); ++i) {
        const topo::Core& core = machine.cores()[i];
        cores.push_back({{"core", i},
                         {"package", core.package},
                         {"numa", core.numa},
                         {"l3", core.l3},
                         {"l2", core.l2},
                         {"threads", core.threads}});
    }
    return {{"packages", machine.package_count()},    {"numa_domains", machine.numa_count()},
            {"l3_groups", machine.l3_count()},        {"l2_groups", machine.l2_count()},
            {"l2_bytes", machine.l2_bytes()},         {"l3_bytes", machine.l3_bytes()},
            {"memory_bytes", machine.memory_bytes()}, {"cores", std::move(cores)}};
}

static void append(Json& object, const topo::Place& place) {
    using topo::Distance;
    const auto put = [&](const char* key, std::uint32_t index, Distance level) {
        if (place.known <= level) {
            object[key] = index;
        }
    };
    put("host", place.host, Distance::host);
    put("package", place.package, Distance::package);
    put("numa", place.numa, Distance::numa);
    put("cache", place.cache, Distance::cache);
    put("core", place.core, Distance::core);
}

Json to_json(const topo::Place& place) {
    Json object = Json::object();
    append(object, place);
    return object;
}

Json to_json(const topo::Placement& placement) {
    Json ranks = Json::array();
    for (Rank rank = 0; rank < placement.rank_count(); ++rank) {
        Json object = {{"rank", rank}};
        append(object, placement.place(rank));
        ranks.push_back(std::move(object));
    }
    return {{"hosts", placement.host_count()}, {"ranks", std::move(ranks)}};
}

} // namespace ucg::tools
