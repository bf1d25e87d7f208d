#include "perf/perftest/report_json.hpp"

#include <fstream>
#include <sys/utsname.h>

#include <nlohmann/json.hpp>

#include "perf/perftest/collectives/collective_name.hpp"
#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::perftest {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicro = 1e6;

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) {
            const std::size_t colon = line.find(": ");
            return colon == std::string::npos ? "" : line.substr(colon + 2);
        }
    }
    return "";
}

Json machine() {
    utsname system = {};
    ::uname(&system);
    return {{"host", system.nodename},
            {"kernel", fmt::format("{} {}", system.sysname, system.release)},
            {"architecture", system.machine},
            {"processor", processor_name()},
            {"usable_cpus", topo::usable_cpus()},
            {"timer_hz", ticks_per_second()}};
}

Json settings(const Job& job) {
    const Parameters& parameters = job.parameters;
    Json json = {{"test", parameters.test},
                 {"names", job.names},
                 {"size", parameters.sizes},
                 {"warmup", parameters.warmup},
                 {"percentile", parameters.percentile},
                 {"checked", parameters.check}};
    const TestInfo& info = *find_test(parameters.test);
    switch (layer_of(info)) {
    case Layer::uct:
        json["device"] = parameters.device;
        json["transport"] = parameters.transport;
        json["layout"] = static_cast<int>(parameters.uct_layout);
        json["window"] = parameters.window;
        json["header"] = parameters.uct_header;
        break;
    case Layer::ucp:
        json["outstanding"] = parameters.outstanding;
        json["header"] = parameters.ucp_header;
        break;
    case Layer::collective: {
        const CollectiveParameters& collective = parameters.collective;
        json["algorithm_asked"] = collective.algorithm;
        json["datatype"] = collective.datatype;
        json["operator"] = collective.operation;
        json["root"] = collective.root;
        json["in_place"] = collective.in_place;
        json["buffers"] = collective.heap ? "heap" : "ordinary";
        json["mode"] = collective.mode == CollectiveMode::separated ? "sep" : "b2b";
        break;
    }
    }
    return json;
}

Json limits(const CollectiveRow& row) {
    if (!row.limits.known()) {
        return {{"why_none", "there is one rank, or the ranks share a host but no memory"}};
    }
    const Limits& found = row.limits;
    const double round_trips = row.summary.asked / found.round_trip;
    const double percent = 100 * found.least_seconds / row.summary.asked;
    if (found.between_hosts) {
        return {{"message_round_trip_us", found.round_trip * kMicro},
                {"round_trips", round_trips},
                {"least_link_bytes", found.least_bytes},
                {"link_bytes_per_second", found.rate},
                {"link_percent", percent}};
    }
    return {{"cache_line_round_trip_us", found.round_trip * kMicro},
            {"processors_moved", found.moved},
            {"round_trips", round_trips},
            {"least_bytes", found.least_bytes},
            {"copy_bytes_per_second", found.rate},
            {"copy_percent", percent}};
}

} // namespace

std::string json_of(const Job& job, const PrimitiveRow& row, std::string_view details) {
    Json json = settings(job);
    json["iterations"] = row.iterations;
    json["details"] = details;
    json["percentile_us"] = row.percentile * kMicro;
    json["average_us"] = row.average * kMicro;
    json["overall_us"] = row.overall * kMicro;
    json["bandwidth_bytes_per_second"] = row.overall_bandwidth;
    json["messages_per_second"] = row.overall_rate;
    return json.dump();
}

std::string json_of(const Job& job, const CollectiveRow& row, std::string_view details) {
    const Summary& times = row.summary;
    Json json = settings(job);
    json["iterations"] = row.iterations;
    json["details"] = details;
    json["latency_us"] = {{"min", times.least * kMicro},
                          {"percentile", times.asked * kMicro},
                          {"p95", times.p95 * kMicro},
                          {"p99", times.p99 * kMicro},
                          {"max", times.most * kMicro},
                          {"mean", times.mean * kMicro},
                          {"deviation", times.deviation * kMicro}};
    json["algorithm_bytes_per_second"] = row.algorithm_bandwidth;
    json["bus_bytes_per_second"] = row.bus_bandwidth;
    json["limit"] = limits(row);
    return json.dump();
}

std::string json_document(const Runtime& runtime, const Session& session,
                          const std::vector<std::string>& results) {
    Json json = {{"tool", "ucg_perftest"},
                 {"version", ucg_get_version_string()},
                 {"ucx", transport::ucx::versions().running},
                 {"ranks", runtime.size()},
                 {"launcher", name(session.launcher)},
                 {"machine", machine()},
                 {"results", Json::array()}};
    for (const std::string& result : results) {
        json["results"].push_back(Json::parse(result));
    }
    return json.dump(2) + "\n";
}

} // namespace ucg::perftest
