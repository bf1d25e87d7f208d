#include "ucg_coll/price/message.hpp"

#include <algorithm>

#include "ucg_coll/price/work.hpp"

namespace ucg::price {
namespace {

/// Buffers that peers have mapped are copied once without the kernel.
cost::CmaModel single_copies(const cost::Profile& profile, topo::Distance distance,
                             const Surroundings& around) {
    cost::CmaModel model = profile.memory.cma;
    model.bytes_min = profile.memory.single_copy_bytes_min(around.ranks_per_cpu);
    if (distance == topo::Distance::network) {
        model.permitted = false;
    } else if (around.in_place) {
        model.permitted = true;
        model.fixed_ns = 0;
        model.bytes_min = std::min(model.bytes_min, profile.memory.copies.mapped_bytes_min);
    }
    return model;
}

cost::LogGp shared(cost::LogGp model, Rank sharers) {
    model.gap_ns *= sharers;
    model.gap_per_byte_ns *= sharers;
    return model;
}

} // namespace

double turn_ns(const cost::Profile& profile, double ranks_per_cpu) {
    return ranks_per_cpu > 1 ? profile.memory.wake.yield_switch_ns * ranks_per_cpu : 0;
}

Messages::Messages(const cost::Profile& profile, topo::Distance distance,
                   const Surroundings& around)
    : profile_(&profile), model_(shared(profile.level(distance), around.link_sharers)),
      copies_(single_copies(profile, distance, around)),
      contended_per_byte_ns_(distance == topo::Distance::network
                                 ? 0
                                 : profile.memory.level(distance).contended_per_byte_ns),
      turn_ns_(turn_ns(profile, around.ranks_per_cpu)), senders_help_(around.ranks_per_cpu <= 1),
      across_hosts_(distance == topo::Distance::network) {
    model_.latency_ns += turn_ns_;
}

double Messages::single_copy_ns(std::uint64_t bytes, Source source,
                                const cost::CacheRates& there) const {
    const double per_byte_ns =
        source == Source::fresh ? copies_.written_per_byte_ns : copies_.per_byte_ns;
    return copies_.fixed_ns +
           static_cast<double>(bytes) * std::max(per_byte_ns, there.copy_per_byte_ns);
}

double Messages::single_copy_ns(std::uint64_t bytes, Source source) const {
    return single_copy_ns(bytes, source, profile_->memory.cache_for(touched_by_copy(bytes)));
}

MessagePrice Messages::price(std::uint64_t bytes, Source source) const {
    if (!copied_once(bytes)) {
        return {cost::message_terms(model_, bytes)};
    }
    return {cost::message_terms(model_, 0), single_copy_ns(bytes, source), copied_by_both(bytes)};
}

Messages Messages::after_a_turn() const {
    Messages later = *this;
    later.model_.latency_ns += turn_ns_;
    return later;
}

} // namespace ucg::price
