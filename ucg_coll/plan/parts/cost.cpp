#include "ucg_coll/plan/parts/cost.hpp"

#include <algorithm>

namespace ucg::plan {

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

Link::Link(const Facts& facts, topo::Distance distance, Rank sharers)
    : profile_(facts.profile), times_(facts, distance, sharers), sharers_(sharers) {}

Link Link::at(topo::Distance distance, Rank sharers) const {
    Link link(levels_.facts(), distance, sharers);
    link.times_ = link.times_.with_working_set(messages().working_set_bytes(0));
    link.work_ = work_;
    link.in_segments_ = in_segments_;
    return in_exchanges_ ? link.in_exchanges() : link;
}

Link Link::at_work(const Facts& facts, std::uint64_t touched_bytes) const {
    Link link = *this;
    link.work_ = MessageWork{oversubscribed_rates(facts, touched_bytes)};
    return link;
}

Link Link::in_exchanges() const {
    UCG_ASSERT(!in_exchanges_); // What exchanges add would be counted twice.
    Link link = *this;
    link.times_ = times_.in_exchanges();
    link.in_exchanges_ = true;
    return link;
}

Link Link::with_working_set(std::uint64_t bytes) const {
    Link link = *this;
    link.times_ = times_.with_working_set(bytes);
    return link;
}

Link Link::in_segments() const {
    Link link = *this;
    link.in_segments_ = true;
    return link;
}

Link Link::with_levels(const Facts& facts) const {
    Link link = *this;
    link.levels_ = RankLevels(facts);
    return link;
}

Link Link::of_rank(Rank rank) const {
    Link link = *this;
    link.levels_ = levels_.of_rank(rank);
    return link;
}

Link Link::shared_by(Rank sharers) const {
    if (sharers >= sharers_ || levels_.count() == 0) {
        return *this;
    }
    Link link = at(topo::Distance::network, sharers);
    link.levels_ = levels_;
    return link;
}

Link Link::by_host() const {
    Link link = *this;
    link.levels_ = levels_.by_host();
    return link;
}

unsigned Link::far_children(Rank count, unsigned radix) const {
    if (!is_across_hosts() || levels_.count() == 0) {
        return is_across_hosts() ? root_children(count, radix) : 0;
    }
    unsigned far = 0;
    for (std::int64_t span = 1; span < count; span *= radix) {
        for (std::int64_t child = span; child < count && child < span * radix; child += span) {
            far += levels_.between(0, static_cast<Rank>(child)) == levels_.count() ? 1 : 0;
        }
    }
    return far;
}

/// With single copies, every rank copies its own block, the root helps once its own is copied, and
/// all of them share the way to the root's memory.
double Link::both_copy_blocks_ns(Rank count, std::uint64_t block_bytes) const {
    const double each_ns = single_copy_ns(block_bytes);
    const double all_ns = copy_ns(block_bytes) + (count - 1) * each_ns;
    const double contended_ns =
        count > 2 ? to_all_ns(count - 1, count,
                              [&](const Link& link) { return link.taken_by_one_ns(block_bytes); })
                  : 0;
    // Of two ranks, the root helps with the only block.
    const double longest_ns = count == 2 ? each_ns / 2 : each_ns;
    return messages().rts_fin_ns() + (count - 2) * messages().end_ns() +
           std::max({longest_ns, all_ns / count, contended_ns});
}

bool Link::both_copy(std::uint64_t bytes) const {
    return messages().copied_once(bytes) && messages().copied_by_both(bytes);
}

double Link::blocks_apart_ns(Rank count, std::uint64_t block_bytes) const {
    return both_copy(block_bytes) ? both_copy_blocks_ns(count, block_bytes)
                                  : (count - 1) * gap_ns(block_bytes);
}

double Link::root_blocks_before_ns(Rank count, std::uint64_t block_bytes, Root root) const {
    if (count == 1 || !is_across_hosts()) {
        return 0;
    }
    const Rank near = std::min(levels_.ranks_on_host(), count) - 1;
    const Rank far = count - 1 - near;
    if (root == Root::sends) {
        return sends_before_ns(far, block_bytes);
    }
    const double near_ns = near > 0 ? on_host().blocks_apart_ns(near + 1, block_bytes) : 0;
    return std::max(receives_before_ns(far, block_bytes),
                    cost::kBeforeAtRoot *
                        (far * take_overhead_ns() + near_ns + copy_ns(block_bytes)));
}

double Link::root_blocks_once_ns(Rank count, std::uint64_t block_bytes, Root root) const {
    if (count == 1) {
        return copy_ns(block_bytes);
    }
    if (both_copy(block_bytes)) {
        return both_copy_blocks_ns(count, block_bytes);
    }
    const bool copied_once = messages().copied_once(block_bytes);
    // The receiver makes a single copy: a root that scatters only sends an RTS, and one that
    // gathers goes through all blocks, one after the other.
    const bool sends_rts = copied_once && root == Root::sends;
    const bool copies = copied_once && root == Root::receives;
    const std::uint64_t all_bytes = static_cast<std::uint64_t>(count) * block_bytes;
    const auto each_ns = [&](const Link& link) {
        return copies ? link.messages().single_copy_ns(block_bytes, Source::settled,
                                                       rates(price::touched_by_copy(all_bytes)))
                      : link.gap_ns(sends_rts ? 0 : block_bytes);
    };
    const double own_ns = not_hidden_ns(copy_ns(block_bytes), block_bytes);
    const Rank on_same_host = std::min(levels_.ranks_on_host(), count) - 1;
    if (is_across_hosts() && on_same_host > 0 && on_host().both_copy(block_bytes)) {
        const Rank far = count - 1 - on_same_host;
        return own_ns + std::max(message_ns(block_bytes) + std::max(far - 1, 0) * each_ns(*this),
                                 on_host().both_copy_blocks_ns(on_same_host + 1, block_bytes) +
                                     far * take_overhead_ns());
    }
    const double all_ns = to_all_ns(count - 2, count, each_ns);
    if (root == Root::sends) {
        const double taken_ns =
            sends_rts && count > 2 ? times_.copied_out_ns(block_bytes, count - 1) : 0;
        return own_ns + std::max(message_ns(block_bytes) + all_ns, taken_ns);
    }
    if (levels_.count() == 0) {
        return own_ns + message_ns(block_bytes) + all_ns;
    }
    // What comes from near is there, and taken, before what comes from far.
    const Rank near = std::min(levels_.near_ranks(), count - 1);
    const Link in = at_level(levels_.inner_level());
    return own_ns + std::max(message_ns(block_bytes) + (count - near - 1) * each_ns(*this),
                             in.message_ns(block_bytes) + all_ns);
}

bool Link::is_bound_by_way_out(std::uint64_t bytes) const {
    constexpr double kLatenciesMin = 16; // A latency is then at most some 6 % of a message.
    return is_across_hosts() && static_cast<double>(bytes) * gap_per_byte_ns() >=
                                    kLatenciesMin * messages().model().latency_ns;
}

std::uint64_t Link::segment_copied_twice(std::uint64_t bytes, std::uint64_t element_bytes) const {
    const std::uint64_t elements = divide_up(bytes, element_bytes);
    const std::uint64_t most = messages().copied_twice_bytes_max() / element_bytes;
    return (most == 0 || most >= elements ? elements
                                          : divide_up(elements, divide_up(elements, most))) *
           element_bytes;
}

unsigned Link::radix_max() const {
    return times_.has_processor() ? kRadixMax : kOversubscribedRadixMax;
}

ToOneOf Link::to_one_of(std::uint64_t bytes, Source source) const {
    const bool shared = times_.has_processor() && messages().copied_once(bytes);
    return {.busy_ns = message_ns(bytes, source, Sender::busy),
            .helped_ns = message_ns(bytes, source, Sender::waits),
            .rts_fin_ns = messages().rts_fin_ns(),
            .contended_ns = shared ? taken_by_one_ns(bytes) : 0};
}

double Link::queue_ns() const {
    // If they wait longer than a message takes, each round has been charged for it.
    return is_across_hosts() ? std::min(messages().model().gap_ns -
                                            profile_.level(topo::Distance::network).gap_ns,
                                        messages().message_ns(0))
                             : 0;
}

double Link::phase_ns(std::uint64_t bytes, Source source, const PhaseMessages& phase, double own_ns,
                      const Link* in) const {
    if (!has_plain_messages(bytes)) { // Copies follow one another.
        const double copies_ns =
            message_ns(bytes, source) +
            (std::max(phase.sends, phase.takes) - 1) * relay_gap_ns(bytes, source);
        const double taken_ns =
            !work_ && phase.sends > 1 ? times_.copied_out_ns(bytes, phase.sends) : 0;
        // Of several messages those that come late are copied by both ends, which makes up for a
        // part of what each end had to do first.
        const bool makes_up = phase.takes > 1 && !work_;
        const double left_ns = makes_up ? std::max(0.0, own_ns - message_terms(bytes).flight_ns)
                                        : not_hidden_ns(own_ns, bytes);
        return std::max(copies_ns, taken_ns) + left_ns;
    }
    const cost::MessageTerms terms = message_terms(bytes);
    const double last_ns =
        cost::last_arrival_ns(terms, static_cast<std::uint32_t>(phase.last_sent)) +
        (phase.last_takes - 1) * terms.take_ns;
    const double way_ns = sharers_ > 1 ? phase.sends * gap_ns(bytes) : 0;
    const price::MessagePrice out = messages().price(bytes, source);
    const price::MessagePrice taken = in == nullptr ? out : in->messages().price(bytes, source);
    return std::max({last_ns, way_ns,
                     phase.sends * (out.terms.issue_ns + out.fill_ns) +
                         phase.takes * (taken.terms.take_ns + taken.drain_ns) + own_ns});
}

double Link::relay_gap_ns(std::uint64_t bytes, Source source) const {
    if (!times_.has_processor()) { // Between two turns of a rank, others use the caches.
        source = Source::fresh;
    }
    return work_ ? message_ns(bytes, source) : times_.relay_gap_ns(bytes, source);
}

double Link::chain_gap_ns(std::uint64_t bytes, double work_ns, Source source) const {
    if (work_ || !is_across_hosts()) {
        // Only one neighbour of the rank is far; the ends of the other's messages cost less.
        const double far_end_ns =
            !work_ && levels_.are_in_order()
                ? (messages().passing_ns(bytes) - within_group().messages().passing_ns(bytes)) / 2
                : 0;
        return relay_gap_ns(bytes, source) - far_end_ns + work_ns;
    }
    const cost::LogGp& model = messages().model();
    const topo::Distance nearer = levels_.nearer_neighbour();
    const double other_ns =
        nearer == topo::Distance::network ? model.overhead_ns : profile_.level(nearer).overhead_ns;
    return std::max(model.overhead_ns + other_ns + work_ns,
                    model.gap_ns + static_cast<double>(bytes) * model.gap_per_byte_ns);
}

double Link::contention_ns(std::uint64_t bytes) const {
    return is_across_hosts()
               ? (profile_.links.contention - 1) * static_cast<double>(bytes) * gap_per_byte_ns()
               : 0;
}

double Link::receives_before_ns(double messages, std::uint64_t bytes) const {
    // The root is one rank, however many of its host send.
    const cost::LogGp& alone = profile_.level(topo::Distance::network);
    return is_across_hosts() ? cost::kBeforeAtRoot * messages *
                                   (std::max(alone.overhead_ns, alone.gap_ns) +
                                    static_cast<double>(bytes) * alone.gap_per_byte_ns)
                             : 0;
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
    return !work_ && messages().combined_on_arrival(bytes)
               ? messages().combining_ns(bytes, rates(2 * vector_bytes))
               : reduce_ns(2, bytes, vector_bytes);
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
    // Each message goes to another rank, and the fullest host has most both inside and outside.
    const Rank most = placement.ranks_per_host_max();
    const Rank leaving = std::min(most, placement.rank_count() - most);
    return Link(facts, topo::Distance::network, alone ? 1 : leaving).with_levels(facts);
}

Link host_link(const Facts& facts) {
    const Link link(facts, facts.placement.widest_on_host());
    return facts.placement.host_count() == 1 ? link.with_levels(facts) : link;
}

Link leader_link(const Facts& facts) {
    return Link(facts, topo::Distance::network);
}

} // namespace ucg::plan
