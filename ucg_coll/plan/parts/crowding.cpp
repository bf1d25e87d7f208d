#include "ucg_coll/plan/parts/crowding.hpp"

namespace ucg::plan {

Work::Work(const Facts& facts, const Link& link, std::uint64_t touched_bytes)
    : link_(link.at_work(facts, touched_bytes)) {
    // Of the two sides of a copy one is a window, which is short and stays in the second level.
    const double caller_per_byte_ns = link_.copy_ns(1) / 2;
    const cost::CacheRates& window = facts.profile.memory.cache(cost::Cache::l2);
    read_per_byte_ns_ = std::max(widest_level(facts).per_byte_ns, caller_per_byte_ns);
    window_copy_per_byte_ns_ =
        std::max(window_overwrite_per_byte_ns(facts, window), caller_per_byte_ns);
    publishes_in_place_ = facts.shared.in_place;
    combine_per_byte_ns_ = crowded_rates(facts, touched_bytes).reduce_operand_per_byte_ns +
                           window.reduce_target_per_byte_ns;
}

double Work::combine_ns(std::uint64_t bytes) const {
    return static_cast<double>(bytes) * combine_per_byte_ns_;
}

double Work::read_ns(std::uint64_t bytes) const {
    return static_cast<double>(bytes) * read_per_byte_ns_;
}

} // namespace ucg::plan
