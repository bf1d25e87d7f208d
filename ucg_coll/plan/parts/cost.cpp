#include "ucg_coll/plan/parts/cost.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ucg::plan {
namespace {

/// Buffers that peers have mapped are copied once without the kernel.
cost::CmaModel single_copies(const Facts& facts, topo::Distance distance) {
    cost::CmaModel model = facts.profile.memory.cma;
    model.bytes_min = facts.profile.memory.single_copy_bytes_min(facts.ranks_per_cpu);
    if (distance == topo::Distance::network) {
        model.permitted = false;
    } else if (facts.shared.in_place) {
        model.permitted = true;
        model.fixed_ns = 0;
        model.bytes_min = std::min(model.bytes_min, facts.profile.memory.copies.mapped_bytes_min);
    }
    return model;
}

} // namespace

Link::Link(const Facts& facts, topo::Distance distance, Rank sharers)
    : memory_(facts.profile.memory), model_(facts.profile.level(distance)),
      cma_(single_copies(facts, distance)), senders_help_(facts.ranks_per_cpu <= 1),
      across_hosts_(distance == topo::Distance::network),
      copy_per_byte_ns_(facts.profile.copy_per_byte_ns),
      reduce_per_byte_ns_(facts.profile.reduce_per_byte_ns),
      reduce_fixed_ns_(facts.profile.reduce_fixed_ns) {
    model_.latency_ns += turn_ns(facts.profile, facts.ranks_per_cpu);
    model_.gap_ns *= sharers;
    model_.gap_per_byte_ns *= sharers;
}

const cost::CacheRates& crowded_rates(const Facts& facts, std::uint64_t touched_bytes) {
    // Pages lie where they may, so that some sets of the cache overflow long before the others.
    constexpr double kUsablePart = 0.75;
    const double all_bytes = static_cast<double>(touched_bytes) * facts.ranks_per_cpu;
    return facts.profile.memory.cache_for(static_cast<std::uint64_t>(all_bytes / kUsablePart));
}

Link Link::at_work(const Facts& facts, std::uint64_t touched_bytes) const {
    Link link = *this;
    link.crowded_ = &crowded_rates(facts, touched_bytes);
    return link;
}

unsigned Link::radix_max() const {
    return senders_help_ ? kRadixMax : kCrowdedRadixMax;
}

Link Link::in_exchanges(const Facts& facts) const {
    Link link = *this;
    link.model_.latency_ns += turn_ns(facts.profile, facts.ranks_per_cpu);
    return link;
}

/// By a single copy there is an announcement and a receipt.
double Link::both_ends_ns(std::uint64_t bytes, double cma_per_byte_ns) const {
    const double ends_ns = 2 * std::max(model_.overhead_ns, model_.gap_ns);
    if (single_copy(bytes)) {
        return 2 * ends_ns + single_copy_ns(bytes, cma_per_byte_ns);
    }
    // Between hosts the gap is the wire's, on which no processor works; the kernels copy.
    const double copies_per_byte_ns = 2 * crowded_->copy_per_byte_ns;
    const double per_byte_ns =
        across_hosts_ ? copies_per_byte_ns : std::max(model_.gap_per_byte_ns, copies_per_byte_ns);
    return ends_ns + static_cast<double>(bytes) * per_byte_ns;
}

/// What does not fit the caches comes no faster than any copy there.
double Link::single_copy_ns(std::uint64_t bytes, double per_byte_ns) const {
    const double copied_ns = rates(2 * bytes).copy_per_byte_ns;
    return cma_.fixed_ns + static_cast<double>(bytes) * std::max(per_byte_ns, copied_ns);
}

/// The sender announces, the receiver copies, alone or both together, and gives a receipt.
double Link::announced_ns(std::uint64_t bytes, double per_byte_ns, Sender sender) const {
    const bool both = sender == Sender::waits && helps_with(bytes);
    return 2 * cost::message_ns(model_, 0) +
           single_copy_ns(both ? divide_up(bytes, 2) : bytes, per_byte_ns);
}

double Link::message_ns(std::uint64_t bytes, Sender sender) const {
    if (crowded_ != nullptr) {
        return both_ends_ns(bytes, cma_.per_byte_ns);
    }
    return single_copy(bytes) ? announced_ns(bytes, cma_.per_byte_ns, sender)
                              : cost::message_ns(model_, bytes);
}

double Link::passing_on_ns(std::uint64_t bytes, Sender sender) const {
    if (crowded_ != nullptr) {
        return both_ends_ns(bytes, cma_.written_per_byte_ns);
    }
    const bool pushed = sender == Sender::exchanges && helps_with(bytes);
    return single_copy(bytes)
               ? announced_ns(bytes, pushed ? cma_.per_byte_ns : cma_.written_per_byte_ns, sender)
               : cost::message_ns(model_, bytes);
}

/// By single copies every rank copies its own block while the root, with its own copied, helps.
double Link::root_blocks_ns(Rank count, std::uint64_t block_bytes, Root root) const {
    if (count == 1) {
        return copy_ns(block_bytes);
    }
    if (!single_copy(block_bytes) || !senders_help_) {
        // Who receives a single copy makes it: a root that scatters has only announced it.
        const bool announces = single_copy(block_bytes) && root == Root::sends;
        const double before_ns = root == Root::sends ? sends_before_ns(count - 1, block_bytes)
                                                     : receives_before_ns(count - 1, block_bytes);
        return copy_ns(block_bytes) + message_ns(block_bytes) +
               (count - 2) * busy_ns(announces ? 0 : block_bytes) + before_ns;
    }
    const double each_ns = single_copy_ns(block_bytes, cma_.per_byte_ns);
    const double all_ns = copy_ns(block_bytes) + (count - 1) * each_ns;
    return 2 * cost::message_ns(model_, 0) +
           (count - 2) * std::max(model_.overhead_ns, model_.gap_ns) +
           std::max(each_ns, all_ns / count);
}

double Link::busy_ns(std::uint64_t bytes) const {
    if (crowded_ != nullptr) {
        return both_ends_ns(bytes, cma_.per_byte_ns);
    }
    if (single_copy(bytes)) {
        return single_copy_ns(bytes, cma_.per_byte_ns);
    }
    return std::max(model_.overhead_ns, model_.gap_ns) +
           static_cast<double>(bytes) * model_.gap_per_byte_ns;
}

double Link::relay_ns(std::uint64_t bytes) const {
    if (crowded_ != nullptr) {
        return both_ends_ns(bytes, cma_.written_per_byte_ns);
    }
    if (single_copy(bytes)) {
        return single_copy_ns(bytes, cma_.written_per_byte_ns);
    }
    return std::max(2 * model_.overhead_ns, model_.gap_ns) +
           static_cast<double>(bytes) * model_.gap_per_byte_ns;
}

double Link::reduce_ns(unsigned operands, std::uint64_t bytes, std::uint64_t vector_bytes) const {
    const cost::CacheRates& there = rates((std::uint64_t{operands} + 1) * vector_bytes);
    const double there_ns =
        operands * there.reduce_operand_per_byte_ns + there.reduce_target_per_byte_ns;
    return reduce_fixed_ns_ +
           static_cast<double>(bytes) * std::max(operands * reduce_per_byte_ns_, there_ns);
}

double Link::reduce_strip_ns(std::uint64_t bytes, std::uint64_t vector_bytes) const {
    if (bytes >= vector_bytes) {
        return reduce_ns(2, bytes, vector_bytes); // The one strip there is.
    }
    const cost::CacheRates& there = rates(2 * vector_bytes + 2 * bytes);
    const double there_ns = there.reduce_operand_per_byte_ns + there.reduce_target_per_byte_ns +
                            rates(2 * bytes).reduce_operand_per_byte_ns;
    return reduce_fixed_ns_ +
           static_cast<double>(bytes) * std::max(2 * reduce_per_byte_ns_, there_ns);
}

double Link::copy_ns(std::uint64_t bytes) const {
    return static_cast<double>(bytes) *
           std::max(copy_per_byte_ns_, rates(2 * bytes).copy_per_byte_ns);
}

double window_overwrite_per_byte_ns(const Facts& facts, const cost::CacheRates& window) {
    const double beyond_ns = facts.profile.memory.cache(cost::Cache::l3).overwrite_per_byte_ns;
    return facts.ranks_per_cpu > 1 ? std::min(window.overwrite_per_byte_ns, beyond_ns)
                                   : window.overwrite_per_byte_ns;
}

Link flat_link(const Facts& facts, Traffic traffic) {
    const topo::Placement& placement = facts.placement;
    if (placement.host_count() <= 1) {
        return host_link(facts);
    }
    const bool alone = traffic == Traffic::sparse && placement.hosts_are_contiguous();
    return Link(facts, topo::Distance::network, alone ? 1 : placement.ranks_per_host_max());
}

Link host_link(const Facts& facts) {
    return Link(facts, facts.placement.widest_on_host());
}

Link leader_link(const Facts& facts) {
    return Link(facts, topo::Distance::network);
}

bool has_two_levels(const Facts& facts) {
    return facts.placement.host_count() > 1 && facts.placement.ranks_per_host_max() > 1;
}

unsigned tree_depth(Rank count, unsigned radix) {
    unsigned depth = 0;
    for (std::uint64_t reach = 1; reach < static_cast<std::uint64_t>(count); reach *= radix) {
        ++depth;
    }
    return depth;
}

unsigned root_children(Rank count, unsigned radix) {
    const auto others = static_cast<std::uint64_t>(count - 1);
    std::uint64_t children = 0;
    for (std::uint64_t span = 1; span <= others; span *= radix) {
        children += std::min<std::uint64_t>(radix - 1, others / span);
    }
    return static_cast<unsigned>(children);
}

std::uint64_t pipeline_segment(std::uint64_t total, Rank hops, double fixed_ns, double per_byte_ns,
                               std::uint64_t granularity) {
    const double turns = std::max(1, hops - 1);
    const double best =
        per_byte_ns > 0 ? std::sqrt(static_cast<double>(total) * fixed_ns / (turns * per_byte_ns))
                        : static_cast<double>(total);
    const std::uint64_t unit = std::lcm(granularity, std::uint64_t{kCacheLine});
    // The comparison in floating point keeps the conversion in range.
    if (best >= static_cast<double>(total) || unit >= total) {
        return std::max(round_up(total, granularity), granularity);
    }
    return std::min(round_up(std::max(static_cast<std::uint64_t>(best), unit), unit),
                    round_up(total, granularity));
}

} // namespace ucg::plan
