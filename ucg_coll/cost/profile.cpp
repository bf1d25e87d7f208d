#include "ucg_coll/cost/profile.hpp"

#include <algorithm>

namespace ucg::cost {

double message_ns(const LogGp& model, std::uint64_t bytes) {
    const double further = bytes > 0 ? static_cast<double>(bytes - 1) : 0.0;
    return 2 * model.overhead_ns + further * model.gap_per_byte_ns + model.latency_ns;
}

const Profile& default_profile() {
    // `cache` is what perf/micro/shm_bench measured on two cores of an Intel Xeon that share a
    // last-level cache: 8 bytes take 170 ns one way, and a message of some KiB 0.12 ns for each
    // byte, copied in and out. Nearer and farther levels are in proportion to the memory model's;
    // reducing is at its L2 rate. The network is between kernel TCP (15 us) and RDMA (2 us) on 10
    // to 25 GbE. Its pipelining postal form gives the same times to messages of one byte, one and
    // many.
    constexpr NetworkPostal kNetwork = {
        .alpha_p_ns = 4400, .alpha_r_ns = 599.55, .beta_ns_per_byte = 0.45, .measured = false};
    // Measured with the kernel's TCP between virtual hosts (perf/aapc): a pairwise alltoall of
    // 64 KiB among 32 hosts on four switches took 1.27 times the load of the bottleneck times
    // block / rate, among 24 hosts on one switch 2.2 times. `ucg_tune network` finds 1.02 for 4
    // hosts on one switch and 1.4 to 1.9 for 8. The default is the least of the groups that are
    // large enough to gain by phases, so that no group pays for phases in vain.
    constexpr LinkCosts kLinks = {.contention = 1.27, .measured = false};
    static const Profile kDefault = {
        .levels = {{
            {.latency_ns = 50, .overhead_ns = 20, .gap_ns = 30, .gap_per_byte_ns = 0.05},  // core
            {.latency_ns = 110, .overhead_ns = 30, .gap_ns = 40, .gap_per_byte_ns = 0.12}, // cache
            {.latency_ns = 180, .overhead_ns = 30, .gap_ns = 50, .gap_per_byte_ns = 0.16}, // numa
            {.latency_ns = 220,
             .overhead_ns = 30,
             .gap_ns = 55,
             .gap_per_byte_ns = 0.18}, // package
            {.latency_ns = 320, .overhead_ns = 35, .gap_ns = 70, .gap_per_byte_ns = 0.24}, // host
            {.latency_ns = 4000,
             .overhead_ns = 500,
             .gap_ns = 600,
             .gap_per_byte_ns = 0.45}, // network
        }},
        .copy_per_byte_ns = 0.0234,
        .reduce_per_byte_ns = 0.014,
        .reduce_fixed_ns = 20,
        .memory = default_memory_model(),
        .network = {.minimum = kNetwork, .median = kNetwork},
        .links = kLinks,
    };
    return kDefault;
}

std::string_view name(NetworkKind network) {
    switch (network) {
    case NetworkKind::unknown: return "unknown";
    case NetworkKind::tcp: return "tcp";
    case NetworkKind::one_kernel: return "one_kernel";
    }
    return "";
}

namespace {

/// Returns the postal model that gives the same times to messages of one byte, single and many at
/// once.
NetworkPostal postal_of(const LogGp& model) {
    return {.alpha_p_ns = model.latency_ns + 2 * model.overhead_ns - model.gap_ns,
            .alpha_r_ns = model.gap_ns - model.gap_per_byte_ns,
            .beta_ns_per_byte = model.gap_per_byte_ns,
            .measured = false};
}

constexpr auto kNetworkLevel = static_cast<std::size_t>(topo::Distance::network);

/// Returns the costs of a network that nobody has measured. Sending by the kernel took a processor
/// 6.5 us in virtual machines (AMD EPYC), which between virtual hosts include the receiver's part
/// of the protocol, and an answer took 25 us there. Between machines interrupts and the wire come
/// on top: those figures are estimated, not measured. A byte costs what it does at 1 Gbit/s, the
/// slowest usual rate: where bytes are cheaper, a plan that avoids moving them twice loses little.
LogGp builtin_network(NetworkKind network) {
    if (network == NetworkKind::unknown) {
        return default_profile().levels[kNetworkLevel];
    }
    const bool wire = network == NetworkKind::tcp;
    return {.latency_ns = wire ? 10000.0 : 1000.0,
            .overhead_ns = wire ? 5000.0 : 6000.0,
            .gap_ns = wire ? 5500.0 : 6500.0,
            .gap_per_byte_ns = 8};
}

} // namespace

double listed_message_ns(NetworkKind network, double seen_ns, double ranks_per_cpu) {
    const double as_built_in = 4 * std::max(ranks_per_cpu, 1.0);
    if (!(seen_ns > as_built_in * message_ns(builtin_network(network), 1))) {
        return 0;
    }
    double listed_ns = 1e4;
    while (listed_ns < 1e9 && seen_ns * seen_ns > listed_ns * (10 * listed_ns)) {
        listed_ns *= 10;
    }
    return listed_ns;
}

bool has_builtin_network(const Profile& profile) {
    const Profile& builtin = default_profile();
    return profile.levels[kNetworkLevel] == builtin.levels[kNetworkLevel] &&
           profile.network == builtin.network;
}

Profile with_network(Profile profile, NetworkKind network, double message_ns) {
    if (!has_builtin_network(profile) || (network == NetworkKind::unknown && message_ns == 0)) {
        return profile;
    }
    LogGp costs = builtin_network(network);
    if (message_ns > 0) {
        costs.latency_ns = std::max(message_ns - 2 * costs.overhead_ns, costs.latency_ns);
    }
    profile.levels[kNetworkLevel] = costs;
    profile.network.minimum = profile.network.median = postal_of(costs);
    return profile;
}

std::uint64_t hash_of(const Profile& profile) {
    // The text form has every bit of the profile, also of members that are added later.
    return Hash().bytes(to_toml(profile)).digest();
}

} // namespace ucg::cost
