#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {

Work::Work(const Facts& facts, const Link& link, std::uint64_t touched_bytes)
    : link_(link.at_work(facts, touched_bytes)) {
    // One side of a copy is a staging buffer, which is short and stays in the second-level cache.
    const double caller_per_byte_ns = link_.copy_ns(1) / 2;
    const cost::CacheRates& staging_buffer = facts.profile.memory.cache(cost::Cache::l2);
    const double near_ns = std::max(staging_buffer.copy_per_byte_ns, caller_per_byte_ns);
    const double read_far_ns = std::max(widest_level(facts).per_byte_ns, caller_per_byte_ns);
    const double ranks = facts.placement.ranks_per_host_max();
    const double near_part = ranks > 1 ? std::min((sharers(facts) - 1) / (ranks - 1), 1.0) : 0;
    const auto of_one_peer = [&](double far_ns) { return far_ns - near_part * (far_ns - near_ns); };
    read_per_byte_ns_ = of_one_peer(read_far_ns);
    read_same_per_byte_ns_ = near_ns + (read_far_ns - near_ns) / sharers(facts);
    overwrite_per_byte_ns_ =
        std::max(staging_overwrite_per_byte_ns(facts, staging_buffer), caller_per_byte_ns);
    staging_copy_per_byte_ns_ = of_one_peer(overwrite_per_byte_ns_);
    buffers_mapped_ = facts.shared.buffers_mapped;
    combine_per_byte_ns_ = oversubscribed_rates(facts, touched_bytes).reduce_operand_per_byte_ns +
                           staging_buffer.reduce_target_per_byte_ns;
}

double Work::combine_ns(std::uint64_t bytes) const {
    return static_cast<double>(bytes) * combine_per_byte_ns_;
}

} // namespace ucg::plan
