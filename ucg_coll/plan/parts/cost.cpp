#include "ucg_coll/plan/parts/cost.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ucg::plan {

using price::Source;

Link::Link(const Facts& facts, topo::Distance distance, Rank sharers)
    : profile_(facts.profile), messages_(facts.profile, distance, surroundings(facts, sharers)),
      sharers_(sharers), has_processor_(facts.ranks_per_cpu <= 1) {}

cost::CacheRates rates_for(const Facts& facts, std::uint64_t touched_bytes) {
    const cost::MemoryModel& memory = facts.profile.memory;
    // Where ranks take turns, what others do meanwhile takes its part of the caches.
    constexpr double kUsablePart = 0.75;
    return facts.ranks_per_cpu > 1 ? memory.oversubscribed_rates_for(static_cast<std::uint64_t>(
                                         static_cast<double>(touched_bytes) / kUsablePart))
                                   : memory.rates_for(touched_bytes);
}

cost::CacheRates oversubscribed_rates(const Facts& facts, std::uint64_t touched_bytes) {
    return rates_for(facts, static_cast<std::uint64_t>(static_cast<double>(touched_bytes) *
                                                       facts.ranks_per_cpu));
}

Link Link::at_work(const Facts& facts, std::uint64_t touched_bytes) const {
    Link link = *this;
    link.oversubscribed_ = oversubscribed_rates(facts, touched_bytes);
    return link;
}

unsigned Link::radix_max() const {
    return has_processor_ ? kRadixMax : kOversubscribedRadixMax;
}

Link Link::with_levels(const Facts& facts) const {
    const topo::Placement& placement = facts.placement;
    const bool several_hosts = placement.host_count() > 1;
    const std::size_t levels = facts.shared.levels.count + (several_hosts ? 1 : 0);
    const bool in_order = facts.shared.sockets_are_contiguous && placement.hosts_are_equal_blocks();
    Link link = *this;
    link.near_ = levels > 1 && in_order ? &facts : nullptr;
    link.hosts_ = levels > 1 && several_hosts && !in_order ? &facts : nullptr;
    return link;
}

Link Link::of_rank(Rank rank) const {
    Link link = *this;
    if (hosts_ != nullptr) {
        const topo::Placement& placement = hosts_->placement;
        link.on_host_ = static_cast<Rank>(placement.ranks_on(placement.host(rank)).size());
    }
    return link;
}

Rank Link::ranks_on_host() const {
    if (hosts_ != nullptr) {
        return on_host_ > 0 ? on_host_ : hosts_->placement.ranks_per_host_max();
    }
    return near_ != nullptr ? near_->placement.ranks_per_host_max() : 1;
}

topo::Distance Link::nearer_neighbour() const {
    const bool near = near_ != nullptr
                          ? near_->placement.ranks_per_host_max() > 1
                          : hosts_ != nullptr && hosts_->placement.hosts_are_contiguous() &&
                                hosts_->placement.ranks_per_host_min() > 1;
    return near ? (near_ != nullptr ? near_ : hosts_)->placement.widest_on_host()
                : topo::Distance::network;
}

Link Link::at(topo::Distance distance) const {
    return like_this(*near_, distance, 1);
}

Link Link::like_this(const Facts& facts, topo::Distance distance, Rank sharers) const {
    Link link(facts, distance, sharers);
    link.oversubscribed_ = oversubscribed_;
    link.messages_ = link.messages_.with_working_set(messages_.working_set_bytes(0));
    link.in_segments_ = in_segments_;
    return in_exchanges_ ? link.in_exchanges() : link;
}

Link Link::within(std::uint64_t ranks) const {
    return at_level_of(ranks, true);
}

std::size_t Link::level_count() const {
    return near_ == nullptr ? 0 : near_->shared.levels.count;
}

/// Returns the innermost level whose groups have at least `ranks` ranks. If the groups of `ranks`
/// are aligned, the size of the level's groups must also be a multiple of `ranks`, so that each
/// lies within one of these.
std::size_t Link::level_of(std::uint64_t ranks, bool aligned) const {
    for (std::size_t i = 0; i < level_count(); ++i) {
        const auto size = static_cast<std::uint64_t>(near_->shared.levels.level[i].ranks);
        if (size >= ranks && (!aligned || size % ranks == 0)) {
            return i;
        }
    }
    return level_count();
}

Link Link::at_level(std::size_t level) const {
    return level < level_count() ? at(near_->shared.levels.level[level].distance) : *this;
}

Rank Link::inner_ranks() const {
    if (near_ == nullptr) {
        return 1;
    }
    const HostLevels& host = near_->shared.levels;
    const bool hosts = near_->placement.host_count() > 1;
    return host.level[hosts ? host.count - 1 : host.count - 2].ranks;
}

std::size_t Link::level_between(Rank a, Rank b) const {
    for (std::size_t i = 0; i < level_count(); ++i) {
        const Rank ranks = near_->shared.levels.level[i].ranks;
        if (a / ranks == b / ranks) {
            return i;
        }
    }
    return level_count();
}

unsigned Link::far_children(Rank count, unsigned radix) const {
    const unsigned all = root_children(count, radix);
    const Rank on_host = near_ == nullptr ? 1 : near_->placement.ranks_per_host_max();
    return on_host < count ? all - root_children(on_host, radix) : all;
}

Link Link::with_working_set(std::uint64_t bytes) const {
    Link link = *this;
    link.messages_ = messages_.with_working_set(bytes);
    return link;
}

Link Link::in_exchanges() const {
    UCG_ASSERT(!in_exchanges_); // What exchanges add would be counted twice.
    Link link = *this;
    link.messages_ = messages_.in_exchanges();
    link.in_exchanges_ = true;
    return link;
}

/// Returns for how long a message keeps the processors of both ends busy. A message that is copied
/// once also has an RTS and a FIN.
double Link::both_ends_ns(std::uint64_t bytes, price::Source source) const {
    const cost::LogGp& model = messages_.model();
    const double ends_ns = 2 * messages_.end_ns();
    if (messages_.copied_once(bytes)) {
        return 2 * ends_ns + single_copy_ns(bytes, source);
    }
    // Between hosts the gap is that of the wire, on which no processor works; the kernels copy.
    const double copies_per_byte_ns = 2 * oversubscribed_->copy_per_byte_ns;
    const double per_byte_ns = messages_.across_hosts()
                                   ? copies_per_byte_ns
                                   : std::max(model.gap_per_byte_ns, copies_per_byte_ns);
    return ends_ns + static_cast<double>(bytes) * per_byte_ns;
}

/// Returns the time of a rendezvous: the sender sends an RTS, the receiver copies the message,
/// alone or together with the sender, and sends a FIN.
double Link::rendezvous_ns(std::uint64_t bytes, price::Source source, bool by_both) const {
    return messages_.rts_fin_ns() + messages_.single_copy_ns(by_both ? divide_up(bytes, 2) : bytes,
                                                             source, copy_rates(bytes));
}

double Link::message_ns(std::uint64_t bytes, Sender sender) const {
    if (oversubscribed_) {
        return both_ends_ns(bytes, Source::settled);
    }
    const bool by_both = sender == Sender::waits && messages_.copied_by_both(bytes);
    return messages_.copied_once(bytes) ? rendezvous_ns(bytes, Source::settled, by_both)
                                        : messages_.message_ns(bytes);
}

double Link::passing_on_ns(std::uint64_t bytes, Sender sender) const {
    if (oversubscribed_) {
        return both_ends_ns(bytes, Source::fresh);
    }
    if (!messages_.copied_once(bytes)) {
        return messages_.message_ns(bytes);
    }
    return rendezvous_ns(bytes, Source::fresh,
                         sender == Sender::waits && messages_.copied_by_both(bytes));
}

ToOneOf Link::to_one_of(std::uint64_t bytes, Source source) const {
    const auto ns = [&](Sender sender) {
        return source == Source::fresh ? passing_on_ns(bytes, sender) : message_ns(bytes, sender);
    };
    const bool shared = has_processor_ && messages_.copied_once(bytes);
    return {.busy_ns = ns(Sender::busy),
            .helped_ns = ns(Sender::waits),
            .rts_fin_ns = messages_.rts_fin_ns(),
            .contended_ns = shared ? taken_by_one_ns(bytes) : 0};
}

/// With single copies, every rank copies its own block, the root helps once its own is copied, and
/// all of them share the way to the root's memory.
double Link::root_blocks_ns(Rank count, std::uint64_t block_bytes, Root root) const {
    if (count == 1) {
        return copy_ns(block_bytes);
    }
    const bool copied_once = messages_.copied_once(block_bytes);
    if (!copied_once || !messages_.copied_by_both(block_bytes)) {
        // The receiver makes a single copy: a root that scatters only sends an RTS.
        const bool sends_rts = copied_once && root == Root::sends;
        const Rank on_host = std::min(ranks_on_host(), count - 1);
        const double before_ns = root == Root::sends
                                     ? sends_before_ns(count - on_host, block_bytes)
                                     : receives_before_ns(count - on_host, block_bytes);
        // A root that makes the copies goes through all blocks, one after the other.
        const bool copies = copied_once && root == Root::receives;
        const std::uint64_t all_bytes = static_cast<std::uint64_t>(count) * block_bytes;
        const auto each_ns = [&](const Link& link) {
            return copies ? link.messages_.single_copy_ns(block_bytes, Source::settled,
                                                          rates(price::touched_by_copy(all_bytes)))
                          : link.busy_ns(sends_rts ? 0 : block_bytes);
        };
        const double own_ns = beside_ns(copy_ns(block_bytes), block_bytes) + before_ns;
        const double all_ns = to_all_ns(count - 2, count, each_ns);
        if (root == Root::sends) {
            const double taken_ns =
                sends_rts && has_processor_ && count > 2
                    ? messages_.rts_fin_ns() + messages_.contended_ns(block_bytes, count - 1)
                    : 0;
            return own_ns + std::max(message_ns(block_bytes) + all_ns, taken_ns);
        }
        if (near_ == nullptr && hosts_ == nullptr) {
            return own_ns + message_ns(block_bytes) + all_ns;
        }
        // What comes from near is there, and taken, before what comes from far.
        const Rank near = near_ != nullptr ? std::min(inner_ranks(), count - 1) : on_host;
        const Link in = near_ != nullptr
                            ? within_group()
                            : like_this(*hosts_, hosts_->placement.widest_on_host(), 1);
        return own_ns + std::max(message_ns(block_bytes) + (count - near - 1) * each_ns(*this),
                                 in.message_ns(block_bytes) + all_ns);
    }
    const cost::LogGp& model = messages_.model();
    const double each_ns = single_copy_ns(block_bytes, Source::settled);
    const double all_ns = copy_ns(block_bytes) + (count - 1) * each_ns;
    const double contended_ns =
        count > 2 ? to_all_ns(count - 1, count,
                              [&](const Link& link) { return link.taken_by_one_ns(block_bytes); })
                  : 0;
    // Of two ranks, the root helps with the only block.
    const double longest_ns = count == 2 ? each_ns / 2 : each_ns;
    return messages_.rts_fin_ns() + (count - 2) * std::max(model.overhead_ns, model.gap_ns) +
           std::max({longest_ns, all_ns / count, contended_ns});
}

double Link::phase_ns(std::uint64_t bytes, Source source, const PhaseMessages& phase,
                      double beside_ns, const Link* in) const {
    if (!has_plain_messages(bytes)) { // Copies follow one another.
        const double copies_ns =
            (source == Source::fresh ? passing_on_ns(bytes) : message_ns(bytes)) +
            (std::max(phase.sends, phase.takes) - 1) * relay_ns(bytes, source);
        const double taken_ns =
            has_processor_ && phase.sends > 1
                ? messages_.rts_fin_ns() +
                      messages_.contended_ns(bytes, static_cast<std::uint64_t>(phase.sends))
                : 0;
        // Of several messages those that come late are copied by both ends, which makes up for a
        // part of what each end had to do first.
        const bool makes_up = phase.takes > 1 && !oversubscribed_;
        const double own_ns = makes_up ? std::max(0.0, beside_ns - message_terms(bytes).flight_ns)
                                       : this->beside_ns(beside_ns, bytes);
        return std::max(copies_ns, taken_ns) + own_ns;
    }
    const cost::MessageTerms terms = message_terms(bytes);
    const double last_ns =
        cost::last_arrival_ns(terms, static_cast<std::uint32_t>(phase.last_sent)) +
        (phase.last_takes - 1) * terms.take_ns;
    const price::MessagePrice out = messages_.price(bytes, source);
    const price::MessagePrice taken = in == nullptr ? out : in->messages_.price(bytes, source);
    return std::max(last_ns, phase.sends * (out.terms.issue_ns + out.fill_ns) +
                                 phase.takes * (taken.terms.take_ns + taken.drain_ns) + beside_ns);
}

double Link::beside_ns(double work_ns, std::uint64_t bytes) const {
    if (oversubscribed_) {
        return work_ns;
    }
    // On a host processors bring every byte, so that they have nothing to do but for the latency.
    const cost::MessageTerms terms = message_terms(messages_.copied_once(bytes) ? 0 : bytes);
    const double idle_ns = terms.flight_ns + (messages_.across_hosts() ? terms.inject_ns : 0);
    return std::max(0.0, work_ns - idle_ns);
}

double Link::busy_ns(std::uint64_t bytes) const {
    if (oversubscribed_) {
        return both_ends_ns(bytes, Source::settled);
    }
    if (messages_.copied_once(bytes)) {
        return single_copy_ns(bytes, Source::settled);
    }
    // Other ranks may use the way between two messages, but the processor has work at each.
    const cost::LogGp& model = messages_.model();
    const double way_ns = model.gap_ns + static_cast<double>(bytes) * model.gap_per_byte_ns;
    if (!has_processor_ || messages_.across_hosts()) {
        return std::max(model.overhead_ns - model.gap_ns, 0.0) + way_ns;
    }
    const price::MessagePrice price = messages_.price(bytes, Source::settled);
    return std::max(way_ns, price.terms.issue_ns + std::max(price.fill_ns, price.drain_ns));
}

bool Link::is_bound_by_way_out(std::uint64_t bytes) const {
    constexpr double kLatenciesMin = 16; // A latency is then at most some 6 % of a message.
    const cost::LogGp& model = messages_.model();
    return messages_.across_hosts() &&
           static_cast<double>(bytes) * model.gap_per_byte_ns >= kLatenciesMin * model.latency_ns;
}

double Link::relay_ns(std::uint64_t bytes, Source source) const {
    if (!has_processor_) { // Between two turns of a rank, others use the caches.
        source = Source::fresh;
    }
    if (oversubscribed_) {
        return both_ends_ns(bytes, source);
    }
    if (messages_.copied_once(bytes)) { // A FIN goes, and one comes.
        return single_copy_ns(bytes, source) + 2 * messages_.end_ns();
    }
    // On a host the rank copies what it takes and what it sends.
    return messages_.passing_ns(bytes) + static_cast<double>(bytes) * relay_byte_ns();
}

double Link::along_relay_ns(std::uint64_t bytes, double work_ns, Source source) const {
    if (oversubscribed_ || !messages_.across_hosts()) {
        // Only one neighbour of the rank is far; the ends of the other's messages cost less.
        const double far_end_ns =
            has_levels() && !oversubscribed_
                ? (messages_.passing_ns(bytes) - within_group().messages_.passing_ns(bytes)) / 2
                : 0;
        return relay_ns(bytes, source) - far_end_ns + work_ns;
    }
    const cost::LogGp& model = messages_.model();
    const topo::Distance nearer = nearer_neighbour();
    const double other_ns =
        nearer == topo::Distance::network ? model.overhead_ns : profile_.level(nearer).overhead_ns;
    return std::max(model.overhead_ns + other_ns + work_ns,
                    model.gap_ns + static_cast<double>(bytes) * model.gap_per_byte_ns);
}

double Link::reduce_ns(unsigned operands, std::uint64_t bytes, std::uint64_t vector_bytes) const {
    if (in_segments_) {
        const unsigned come = operands - 1;
        return price::reduce_segment_ns(profile_, operands, come, bytes,
                                        rates(2 * vector_bytes + come * bytes));
    }
    return price::reduce_ns(profile_, operands, bytes,
                            rates(price::touched_by_reduction(operands, vector_bytes)));
}

double Link::reduce_arrived_ns(unsigned operands, std::uint64_t bytes,
                               std::uint64_t vector_bytes) const {
    return operands == 2 ? combining_ns(bytes, vector_bytes)
                         : price::reduce_ns(profile_, operands, bytes, rates(2 * vector_bytes));
}

double Link::combining_ns(std::uint64_t bytes, std::uint64_t vector_bytes) const {
    return !oversubscribed_ && messages_.combined_on_arrival(bytes)
               ? messages_.combining_ns(bytes, rates(2 * vector_bytes))
               : reduce_ns(2, bytes, vector_bytes);
}

std::uint64_t Link::segment_copied_twice(std::uint64_t bytes, std::uint64_t element_bytes) const {
    const std::uint64_t elements = divide_up(bytes, element_bytes);
    const std::uint64_t most = messages_.copied_twice_bytes_max() / element_bytes;
    return (most == 0 || most >= elements ? elements
                                          : divide_up(elements, divide_up(elements, most))) *
           element_bytes;
}

double Link::copy_ns(std::uint64_t bytes) const {
    return price::copy_ns(profile_, bytes, copy_rates(bytes));
}

double staging_overwrite_per_byte_ns(const Facts& facts, const cost::CacheRates& staging_buffer) {
    const double beyond_ns = facts.profile.memory.cache(cost::Cache::l3).overwrite_per_byte_ns;
    return facts.ranks_per_cpu > 1 ? std::min(staging_buffer.overwrite_per_byte_ns, beyond_ns)
                                   : staging_buffer.overwrite_per_byte_ns;
}

Link flat_link(const Facts& facts, Traffic traffic) {
    const topo::Placement& placement = facts.placement;
    if (placement.host_count() <= 1) {
        return host_link(facts);
    }
    const bool alone = traffic == Traffic::sparse && placement.hosts_are_contiguous();
    return Link(facts, topo::Distance::network, alone ? 1 : placement.ranks_per_host_max())
        .with_levels(facts);
}

Link host_link(const Facts& facts) {
    const Link link(facts, facts.placement.widest_on_host());
    return facts.placement.host_count() == 1 ? link.with_levels(facts) : link;
}

Link leader_link(const Facts& facts) {
    return Link(facts, topo::Distance::network);
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
    const double turns = std::max(0, hops - 1); // Over a single link segments gain nothing.
    const double apart_ns = turns * per_byte_ns;
    const double best = apart_ns > 0 ? std::sqrt(static_cast<double>(total) * fixed_ns / apart_ns)
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
