#include "ucg_coll/cost/profile.hpp"

namespace ucg::cost {

double message_ns(const LogGp& model, std::uint64_t bytes) {
    const double further = bytes > 0 ? static_cast<double>(bytes - 1) : 0.0;
    return 2 * model.overhead_ns + further * model.gap_per_byte_ns + model.latency_ns;
}

const Profile& default_profile() {
    // Within a last-level cache as perf/micro/shm_bench measured it on two cores of an Intel Xeon:
    // 8 bytes take 170 ns one way, and a message of some KiB 0.12 ns for each byte, copied in and
    // out. Nearer and farther levels are in proportion to the memory model's; reducing is its L2
    // rate. The network is between kernel TCP (15 us) and RDMA (2 us) on 10 to 25 GbE.
    // Its pipelining postal form has the same times for messages of a byte, one and many.
    constexpr NetworkPostal kNetwork = {
        .alpha_p_ns = 4400, .alpha_r_ns = 599.55, .beta_ns_per_byte = 0.45, .measured = false};
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
    };
    return kDefault;
}

std::uint64_t hash_of(const Profile& profile) {
    // The text form has every bit of the profile, and forgets none that is added later.
    return Hash().bytes(to_toml(profile)).digest();
}

} // namespace ucg::cost
