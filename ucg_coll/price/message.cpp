#include "ucg_coll/price/message.hpp"

#include <algorithm>

#include "ucg_coll/price/work.hpp"

namespace ucg::price {
namespace {

/// Returns from which length on, and at which fixed cost, messages are copied once. Buffers that
/// peers have mapped are copied without the kernel.
cost::CmaModel single_copies(const cost::Profile& profile, topo::Distance distance,
                             const Surroundings& around) {
    cost::CmaModel model = profile.memory.cma;
    model.bytes_min = profile.memory.single_copy_bytes_min(around.use, around.ranks_per_cpu);
    if (distance == topo::Distance::network) {
        model.permitted = false;
    } else if (around.buffers_mapped) {
        model.permitted = true;
        model.fixed_ns = 0;
        model.bytes_min =
            std::min(model.bytes_min, profile.memory.mapped_bytes_min(around.ranks_per_cpu));
    }
    return model;
}

/// Returns whether what follows one another through rings goes from cache to cache. A ring is used
/// from its begin to its end, so ranks that take turns on a processor write, if each sends to all
/// others of the host, all their rings in turn, and find them in its second-level cache only if
/// all fit there.
bool caches_hold_rings(const cost::Profile& profile, const Surroundings& around) {
    if (around.ranks_per_cpu <= 1) {
        return true;
    }
    const double rings = around.ranks_per_cpu * (around.ranks_on_host - 1);
    const cost::MemoryModel& memory = profile.memory;
    return rings * static_cast<double>(memory.ring_bytes(around.ranks_per_cpu)) <=
           static_cast<double>(memory.cache(cost::Cache::l2).capacity_bytes);
}

/// Returns LogGP for messages that are copied in and out, or go between hosts.
cost::LogGp log_gp(const cost::Profile& profile, topo::Distance distance,
                   const Surroundings& around) {
    cost::LogGp model = profile.level(distance);
    model.gap_ns *= around.link_sharers;
    model.gap_per_byte_ns *= around.link_sharers;
    const double ring_per_byte_ns = profile.memory.copies.ring_per_byte_ns;
    if (distance <= topo::Distance::cache && ring_per_byte_ns > 0 &&
        caches_hold_rings(profile, around)) {
        model.gap_per_byte_ns = std::min(model.gap_per_byte_ns, ring_per_byte_ns);
    }
    return model;
}

/// Returns the cost per byte of writing lines that another rank has had last, by ordinary or by
/// streaming stores, whichever are faster.
double refill_per_byte_ns(const cost::Profile& profile) {
    const cost::CacheRates& buffers = profile.memory.cache(cost::Cache::l2);
    return std::min(buffers.overwrite_per_byte_ns, buffers.streaming_per_byte_ns);
}

/// Returns whether ranks take turns on all processors, so that the caches of a processor that reads
/// another rank's bytes most often hold them, by an earlier reader.
bool all_take_turns(const Surroundings& around) {
    return around.ranks_per_cpu >= 2;
}

/// Returns for how long each byte of a single copy occupies the way to the other rank's memory. The
/// kernel finds and holds page after page of another process's memory before it copies them.
/// Several ranks that do so at the same time wait for one another at each page: two readers of one
/// source take twice as long as one, and fifteen take fifteen times as long (4 KiB to 1 MiB,
/// Emerald Rapids), at the rate of bytes that were just written. From cost::kSerialLookupBytesMin
/// on they look up pages one after the other, each while the one before it copies.
Contention contention(const cost::Profile& profile, topo::Distance distance,
                      const Surroundings& around) {
    if (distance == topo::Distance::network) {
        return {};
    }
    const double way_ns = profile.memory.level(distance).contended_per_byte_ns;
    if (around.buffers_mapped) {
        return {way_ns, way_ns};
    }
    const cost::CmaModel& kernel = profile.memory.cma;
    return {
        std::max(way_ns, all_take_turns(around) ? kernel.per_byte_ns : kernel.written_per_byte_ns),
        std::max(way_ns, kernel.lookup_per_byte_ns)};
}

/// The costs per byte of a single copy by price::Source. The caches that hold both buffers may
/// allow less.
struct CopyRates {
    double settled_per_byte_ns = 0;
    double fresh_per_byte_ns = 0;
};

CopyRates copy_rates(const cost::Profile& profile, topo::Distance distance,
                     const Surroundings& around) {
    if (distance == topo::Distance::network) {
        return {};
    }
    const bool reader_has_it = around.one_pair || all_take_turns(around);
    const cost::CmaModel& kernel = profile.memory.cma;
    if (around.buffers_mapped) {
        const cost::MemoryLevel& lines = profile.memory.level(distance);
        return {own_buffers(lines, profile.memory, reader_has_it).per_byte_ns,
                std::min(lines.per_byte_ns, kernel.written_per_byte_ns)};
    }
    return {reader_has_it ? kernel.per_byte_ns : kernel.written_per_byte_ns,
            kernel.written_per_byte_ns};
}

/// Returns how many bytes of a message that is copied in and out its sender copies before its
/// receiver can begin, and its receiver after its sender is done. A message that does not travel
/// whole has at least two pieces.
std::uint64_t first_piece(std::uint64_t bytes) {
    return bytes <= kWholeMessageBytes ? bytes : std::min(bytes / 2, kPieceBytesMax);
}

} // namespace

double turn_ns(const cost::Profile& profile, double ranks_per_cpu) {
    return ranks_per_cpu > 1 ? profile.memory.wake.yield_switch_ns * ranks_per_cpu : 0;
}

DistancePrices::DistancePrices(const cost::Profile& profile, topo::Distance distance,
                               const Surroundings& around)
    : profile_(&profile), model_(log_gp(profile, distance, around)),
      end_ns_(std::max(profile.level(distance).overhead_ns, profile.level(distance).gap_ns)),
      copies_(single_copies(profile, distance, around)),
      line_ns_(distance == topo::Distance::network ? 0 : profile.memory.level(distance).latency_ns),
      read_per_byte_ns_(
          distance == topo::Distance::network ? 0 : profile.memory.level(distance).per_byte_ns),
      fill_per_byte_ns_(refill_per_byte_ns(profile)),
      passed_on_per_byte_ns_(std::max(
          0.0, fill_per_byte_ns_ - profile.memory.cache(cost::Cache::l2).copy_per_byte_ns)),
      settled_per_byte_ns_(copy_rates(profile, distance, around).settled_per_byte_ns),
      fresh_per_byte_ns_(copy_rates(profile, distance, around).fresh_per_byte_ns),
      contention_(contention(profile, distance, around)),
      turn_ns_(turn_ns(profile, around.ranks_per_cpu)), turns_ns_(turn_ns_),
      mapped_(around.buffers_mapped), has_processor_(around.ranks_per_cpu <= 1),
      across_hosts_(distance == topo::Distance::network) {
    model_.latency_ns += turn_ns_;
}

cost::MessageTerms DistancePrices::terms(std::uint64_t bytes) const {
    cost::MessageTerms terms = cost::message_terms(model_, bytes);
    if (!across_hosts_ && has_processor_ && bytes > kCacheLine) {
        terms.issue_ns += line_ns_;
        terms.take_ns += line_ns_;
        terms.flight_ns += static_cast<double>(first_piece(bytes)) *
                           std::min(fill_per_byte_ns_, read_per_byte_ns_);
    }
    return terms;
}

double DistancePrices::single_copy_ns(std::uint64_t bytes, Source source,
                                      const cost::CacheRates& there) const {
    const double per_byte_ns = source == Source::fresh ? fresh_per_byte_ns_ + passed_on_per_byte_ns_
                                                       : settled_per_byte_ns_;
    return copies_.fixed_ns +
           static_cast<double>(bytes) * std::max(per_byte_ns, there.copy_per_byte_ns);
}

double DistancePrices::single_copy_ns(std::uint64_t bytes, Source source) const {
    return single_copy_ns(bytes, source, profile_->memory.rates_for(working_set_bytes(bytes)));
}

double DistancePrices::combining_ns(std::uint64_t bytes, const cost::CacheRates& there) const {
    const bool once = copied_once(bytes);
    const double charged_per_byte_ns =
        once ? (single_copy_ns(bytes, Source::settled) - copies_.fixed_ns) /
                   static_cast<double>(bytes)
             : model_.gap_per_byte_ns;
    // Whatever the level says, reading costs no more than was charged: the arrival includes it.
    const double read_per_byte_ns = std::min(read_per_byte_ns_, charged_per_byte_ns);
    return combine_arriving_ns(
        *profile_,
        {.read_per_byte_ns = read_per_byte_ns + (once ? 0 : sends_per_byte_ns_),
         .charged_per_byte_ns = charged_per_byte_ns},
        bytes, there);
}

DistancePrices DistancePrices::with_working_set(std::uint64_t bytes) const {
    DistancePrices part = *this;
    part.working_set_bytes_ = bytes;
    return part;
}

std::uint64_t DistancePrices::working_set_bytes(std::uint64_t bytes) const {
    return std::max(touched_by_copy(bytes), working_set_bytes_);
}

MessagePrice DistancePrices::price(std::uint64_t bytes, Source source) const {
    if (!copied_once(bytes)) {
        const auto length = static_cast<double>(bytes);
        const double gap_per_byte_ns = model_.gap_per_byte_ns;
        return {.terms = terms(bytes),
                .through_ring = !across_hosts_,
                .fill_ns = length * std::min(fill_per_byte_ns_, gap_per_byte_ns),
                .drain_ns = length * std::min(read_per_byte_ns_, gap_per_byte_ns)};
    }
    const cost::CacheRates there = profile_->memory.rates_for(working_set_bytes(bytes));
    return {.terms = terms(0),
            .copy_ns = single_copy_ns(bytes, source, there),
            .by_both = copied_by_both(bytes),
            .half_ns = single_copy_ns(divide_up(bytes, 2), source, there),
            .contended_ns = contended_ns(bytes, 1)};
}

DistancePrices DistancePrices::in_exchanges() const {
    DistancePrices both = *this;
    both.model_.latency_ns += turn_ns_;
    both.turns_ns_ += turn_ns_;
    if (has_processor_ && !across_hosts_) {
        both.sends_per_byte_ns_ = fill_per_byte_ns_;
        both.model_.gap_per_byte_ns =
            std::max(model_.gap_per_byte_ns,
                     std::min(read_per_byte_ns_, model_.gap_per_byte_ns) + both.sends_per_byte_ns_);
    }
    return both;
}

} // namespace ucg::price
