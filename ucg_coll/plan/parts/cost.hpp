// What messages and reductions cost among the ranks of a team: the arithmetic that the algorithms'
// cost functions share. Nothing here allocates.
//
// All ranks must choose alike, also where their processors differ: only + - * / and sqrt are used,
// which IEEE 754 rounds exactly. log and pow differ between versions of a C library.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "ucg_coll/plan/parts/message_times.hpp"
#include "ucg_coll/plan/parts/rank_levels.hpp"
#include "ucg_coll/plan/parts/shapes.hpp"

namespace ucg::plan {

using price::turn_ns;

/// The price of a message to one of several receivers, which the sender helps to copy, one after
/// the other: the parts, in nanoseconds, that do not depend on how many it helps before.
struct ToOneOf {
    double busy_ns = 0;      ///< The message, if the sender does not help.
    double helped_ns = 0;    ///< The message, if the sender helps at once.
    double rts_fin_ns = 0;   ///< The RTS and the FIN.
    double contended_ns = 0; ///< How long each copy occupies the way out of the sender's memory.

    /// Returns the time of the message if the sender helps `before` other receivers first.
    double ns(unsigned before) const {
        // Each time the sender is free for the next receiver, half of what was left is done.
        const double undone = 1.0 / static_cast<double>(std::uint64_t{1} << std::min(before, 31U));
        const double alone_ns = busy_ns - (busy_ns - helped_ns) * undone;
        return contended_ns > 0 && before > 0
                   ? std::max(alone_ns, rts_fin_ns + (before + 1) * contended_ns)
                   : alone_ns;
    }
};

/// What a root does with blocks.
enum class Root : std::uint8_t { receives, sends };

/// Returns the rates of the caches that hold what one rank touches, `touched_bytes`, by itself.
cost::CacheRates rates_for(const Facts& facts, std::uint64_t touched_bytes);

/// Returns the rates of the caches that hold the buffers of all ranks of a processor, each of which
/// touches `touched_bytes`.
cost::CacheRates oversubscribed_rates(const Facts& facts, std::uint64_t touched_bytes);

/// The prices of messages, reductions and copies among the ranks of one team, by the profile's
/// level of the team's widest distance. Links derived from one have other prices. All times are in
/// nanoseconds.
class Link {
  public:
    /// `sharers` ranks use the same way out of a host at the same time, so that each gets a share.
    /// The facts' profile must outlive it.
    Link(const Facts& facts, topo::Distance distance, Rank sharers = 1);

    // Derived links.

    /// Returns a link whose prices are the work of processors on which ranks take turns
    /// (MessageWork). Their caches serve only if they hold the buffers of all ranks of a processor,
    /// of which each touches `touched_bytes`.
    Link at_work(const Facts& facts, std::uint64_t touched_bytes) const;
    /// Returns a link for exchanges, in which partners send to one another and wait, for the
    /// other's turn and then for their own, and each copies what it sends and what it gets.
    Link in_exchanges() const;
    /// Returns a link whose copies are of parts of buffers of `bytes` in all, which go through the
    /// caches together.
    Link with_working_set(std::uint64_t bytes) const;
    /// Returns a link whose reductions are of segments of vectors. What comes to be combined with a
    /// rank's own segment comes to scratch that all segments use, which caches hold when they do
    /// not hold the vectors.
    Link in_segments() const;
    /// Returns a link that prices messages between near ranks by the level that they share. The
    /// link must be that of all ranks, or of the ranks of one host. The facts must outlive it.
    Link with_levels(const Facts& facts) const;
    /// Returns the link for messages from or to that rank alone.
    Link of_rank(Rank rank) const;
    /// Returns the link for a ring of all ranks in the order of their hosts.
    Link by_host() const;

    // Links of a part of the team, and prices over all of it.

    const RankLevels& levels() const { return levels_; }
    /// Returns the link between partners at `distance`, a power of two, in an exchange:
    /// RankLevels::exchanged().
    Link exchanged(std::uint64_t distance) const { return on(levels_.exchanged(distance)); }
    /// Returns the link within the pairs that a fold to a power of two makes.
    Link of_pairs() const { return on(levels_.folded()); }
    /// Returns the link of a round in groups of consecutive ranks: RankLevels::aligned().
    Link within(std::uint64_t ranks, std::uint64_t radix = 2) const {
        return on(levels_.aligned(ranks, radix));
    }
    /// Returns the link of a round in which all partners are equally far apart:
    /// RankLevels::rotated().
    Link rotated(std::uint64_t distance,
                 std::uint64_t next_reach = std::numeric_limits<std::uint64_t>::max(),
                 Rank peers = 1) const {
        return on(levels_.rotated(distance, next_reach, peers));
    }
    /// Returns the link from roots of trees to their children: RankLevels::in_tree().
    Link in_tree(std::uint64_t ranks) const { return at_level(levels_.in_tree(ranks, 2)); }
    /// Returns a link for so many ranks that use the way out of a host at the same time, if they
    /// are less than the ranks that use this one.
    Link shared_by(Rank sharers) const;
    /// Returns the link for trees: where the ranks of a host follow one another, one of them sends
    /// to other hosts at a time.
    Link in_trees() const { return levels_.are_by_host() ? shared_by(1) : *this; }
    /// Returns the link between ranks that are closer than the farthest: RankLevels::inner_ranks().
    Link within_group() const {
        return at_level(levels_.in_tree(static_cast<std::uint64_t>(levels_.inner_ranks()), 1));
    }
    /// Returns the time of `steps` messages along the ways from each of `count` ranks to the next:
    /// `steps` times the mean over these ways, of which each takes ns_of(const Link&).
    template <typename NsOf>
    double along_ns(double steps, Rank count, NsOf ns_of) const;
    /// Like along_ns(), but for `steps` of `count` - 1 steps around the ring that `count` ranks
    /// make, from where it takes longest: only one of the ring's ways, one of the nearest, is not
    /// taken.
    template <typename NsOf>
    double around_ns(double steps, Rank count, NsOf ns_of) const {
        const bool known = levels_.are_in_order() || levels_.are_hosts_only();
        const double nearest_ns = ns_of(known ? at_level(0) : *this);
        return along_ns(steps, count, ns_of) +
               (count > 2 ? steps * (ns_of(*this) - nearest_ns) / (count - 1) : 0);
    }
    /// Like along_ns(), but for the ways from one rank to each of the `count` - 1 others: from the
    /// rank of of_rank(), else from the one for which it takes longest.
    template <typename NsOf>
    double to_all_ns(double steps, Rank count, NsOf ns_of) const;
    /// Which ranks are partners in round i of an exchange, or in level i of a tree.
    enum class Partners : std::uint8_t {
        aligned, ///< Ranks of one group of radix^(i + 1) that begins at a multiple of this size.
        rotated, ///< Any ranks that are less than radix^(i + 1) apart.
    };
    /// Returns the time of rounds [first, end), of which each takes ns_of(const Link&).
    template <typename NsOf>
    double rounds_ns(unsigned first, unsigned end, unsigned radix, Partners partners,
                     NsOf ns_of) const;
    /// Returns how many of the messages of a k-nomial tree's root go to other hosts.
    unsigned far_children(Rank count, unsigned radix) const;
    /// Returns the time of a linear gather or scatter: the root has a message from or to each of
    /// `count` - 1 others, and copies a block of its own.
    double root_blocks_ns(Rank count, std::uint64_t block_bytes, Root root) const {
        return root_blocks_once_ns(count, block_bytes, root) +
               root_blocks_before_ns(count, block_bytes, root);
    }
    /// Returns the part of it that a single one takes.
    double root_blocks_once_ns(Rank count, std::uint64_t block_bytes, Root root) const;

    /// Returns how many ranks use the same way out of a host at the same time.
    Rank at_a_time() const { return sharers_; }
    bool is_across_hosts() const { return messages().across_hosts(); }
    /// Returns whether each message takes its own way, as in LogGP. Otherwise messages are copied
    /// once, one after the other, or are priced in processor time.
    bool has_plain_messages(std::uint64_t bytes) const {
        return !work_ && !messages().copied_once(bytes);
    }
    /// Returns whether messages of `bytes` take so long to leave the host that their number costs
    /// nothing. Messages that a rank sends to several hosts at the same time then share the way
    /// out, so that all arrive with the last, and what is to be passed on comes later than the
    /// models say.
    bool is_bound_by_way_out(std::uint64_t bytes) const;
    /// Returns the longest segment that is copied in and out, by both ends at the same time, if a
    /// vector of `bytes` is cut into segments of one length; the whole if that is copied so, or if
    /// no element is.
    std::uint64_t segment_copied_twice(std::uint64_t bytes, std::uint64_t element_bytes) const;
    /// Returns the largest radix that trees may have. Where ranks take turns on processors, a level
    /// of a tree costs a turn of each, and one more message a fraction of that.
    unsigned radix_max() const;

    // Latency: how long a message takes.

    /// Returns the time from the start of sending to the end of receiving.
    double message_ns(std::uint64_t bytes, Source source, Sender sender = Sender::busy) const {
        if (work_) {
            return work_->message_ns(messages(), bytes, source);
        }
        // The way out may take longer for all that share it than a message takes.
        const double ns = times_.message_ns(bytes, source, sender);
        return sharers_ > 1 ? std::max(ns, gap_ns(bytes)) : ns;
    }
    double message_ns(std::uint64_t bytes, Sender sender = Sender::busy) const {
        return message_ns(bytes, Source::settled, sender);
    }
    ToOneOf to_one_of(std::uint64_t bytes, Source source) const;
    cost::MessageTerms message_terms(std::uint64_t bytes) const { return messages().terms(bytes); }
    /// Returns how long the last of the ranks that share a way out of a host, and send at the same
    /// time, waits until its message leaves. From then on they follow one another, so that later
    /// rounds do not wait for that again.
    double queue_ns() const;
    /// What the rank that ends a phase of an exchange last does in it.
    struct PhaseMessages {
        Rank sends = 0;     ///< How many messages it sends.
        Rank takes = 1;     ///< How many messages it takes in.
        Rank last_sent = 1; ///< The number, from 1 on, of the last one among its sender's messages.
        Rank last_takes = 1; ///< How many messages arrive together, with the last one.
    };
    /// Returns a round in which each rank sends `peers` messages and takes as many.
    static PhaseMessages round_of(Rank peers) {
        return {.sends = peers, .takes = peers, .last_sent = peers};
    }
    /// Returns the time from the first send to the last take: that of the last message on its way
    /// or, if it is longer, the processor's for all messages and for `own_ns` of other work.
    /// Ranks at the border of a socket may take messages over a farther link, `in`, than most.
    double phase_ns(std::uint64_t bytes, Source source, const PhaseMessages& phase,
                    double own_ns = 0, const Link* in = nullptr) const;

    // Throughput: the time between two of several messages.

    /// Returns the time between two messages of a rank that only sends or only receives.
    double gap_ns(std::uint64_t bytes) const {
        return work_ ? message_ns(bytes) : times_.gap_ns(bytes);
    }
    /// Returns by how much later the next of several messages leaves. If messages are copied once,
    /// only an RTS leaves for each; but where ranks take turns on processors, the receivers,
    /// which copy, do so one after the other.
    double gap_of_sender_ns(std::uint64_t bytes) const {
        return gap_ns(times_.has_processor() && messages().copied_once(bytes) ? 0 : bytes);
    }
    /// Returns by how much later than the one before the next of several messages to one rank has
    /// arrived, if its sender waits.
    double gap_to_one_ns(std::uint64_t bytes) const {
        return sender_copy_ns(bytes) > 0
                   ? message_ns(bytes, Sender::waits) - messages().rts_fin_ns()
                   : gap_ns(bytes);
    }
    /// Returns the time that a rank needs to take one message and send one: it passes on what has
    /// come (fresh), or sends what it has had (settled).
    double relay_gap_ns(std::uint64_t bytes, Source source = Source::fresh) const;
    /// Return, for messages that are copied in and out and are not of the shortest, relay_gap_ns()
    /// without their bytes, and what each byte adds: on a host a copy from one ring and one into
    /// the next.
    double relay_gap_fixed_ns() const { return messages().passing_ns(2 * kCacheLine); }
    double relay_gap_per_byte_ns() const {
        return messages().in_exchanges().model().gap_per_byte_ns;
    }
    /// Like relay_gap_ns(), but for ranks that receive from the rank before them and send to the
    /// rank behind them, and work for `work_ns` on each message. On a host they copy; across hosts
    /// they work while messages travel, and where a host has several ranks only one of the two
    /// neighbours is on another host.
    double chain_gap_ns(std::uint64_t bytes, double work_ns = 0,
                        Source source = Source::fresh) const;
    /// Returns what one more byte of a long message costs.
    double gap_per_byte_ns() const { return messages().model().gap_per_byte_ns; }
    /// Returns by how much longer `bytes` take in messages of several ranks to one, which meet on
    /// its link: between hosts, by the profile's LinkCosts::contention; on a host 0.
    double contention_ns(std::uint64_t bytes) const;
    /// Returns how long `messages` messages keep the rank busy that sends most, between hosts,
    /// where messages cost their sender much and it need not wait for them; 0 on a host. Adding
    /// this makes the price of a collective from a root, or of a scan, that of two in a row
    /// (calls_in_a_row()): the second begins when the busiest rank is done with the first.
    double sends_before_ns(double messages, std::uint64_t bytes) const {
        return is_across_hosts() ? messages * gap_ns(bytes) : 0;
    }
    /// Like sends_before_ns(), but for collectives to a root: how long `messages` messages of each
    /// of the collectives before (cost::kBeforeAtRoot) keep the way into the rank that receives
    /// most. Its peers wait for nothing and are soon ahead; adding this makes the price that of
    /// three in a row.
    double receives_before_ns(double messages, std::uint64_t bytes) const;
    /// Like receives_before_ns(), but for ranks on the way to the root, which pass messages on.
    double relays_before_ns(double messages, std::uint64_t bytes) const {
        return cost::kBeforeAtRoot * sends_before_ns(messages, bytes);
    }

    // The time of processors.

    /// Returns what an empty message costs the rank that takes it in.
    double take_overhead_ns() const { return messages().model().overhead_ns; }
    /// Returns how long a sender that waits takes to copy a message by itself; 0 if it does not.
    double sender_copy_ns(std::uint64_t bytes) const {
        return messages().copied_once(bytes) && messages().copied_by_both(bytes) ? message_ns(bytes)
                                                                                 : 0;
    }
    /// Returns what `work_ns` of a rank's own work add to an exchange of such messages. A rank that
    /// has sent does it while it waits for what comes.
    double not_hidden_ns(double work_ns, std::uint64_t bytes) const {
        return work_ ? work_ns : times_.not_hidden_ns(work_ns, bytes);
    }

    // Reductions and copies.

    /// Returns the time of one reduction of `operands` slices of `bytes` each, which are parts of
    /// vectors of `vector_bytes`; vectors that do not fit the caches cost more.
    double reduce_ns(unsigned operands, std::uint64_t bytes, std::uint64_t vector_bytes) const;
    double reduce_ns(unsigned operands, std::uint64_t bytes) const {
        return reduce_ns(operands, bytes, bytes);
    }
    /// Returns the time of one reduction of `operands` slices: messages that have come, and a block
    /// of the rank's own vector. That vector, of `vector_bytes`, which others read, and as many
    /// bytes of messages go through the caches.
    double reduce_arrived_ns(unsigned operands, std::uint64_t bytes,
                             std::uint64_t vector_bytes) const;
    /// Returns what combining a message, which nothing else reads, with an operand of the rank's
    /// own adds to the time of the message; both are parts of vectors of `vector_bytes`. Where the
    /// message is combined where it arrives, this is only what that takes longer than its arrival.
    double combining_ns(std::uint64_t bytes, std::uint64_t vector_bytes) const;
    /// Returns whether a message that only a reduction reads is combined where it arrives, and
    /// copied nowhere.
    bool combines_on_arrival(std::uint64_t bytes) const {
        return messages().combined_on_arrival(bytes);
    }
    double copy_ns(std::uint64_t bytes) const;

  private:
    template <typename Price>
    friend class LevelPrices;

    const price::DistancePrices& messages() const { return times_.messages(); }
    /// Returns the rates of the caches that hold a working set of `bytes`; those of at_work(), if
    /// it is such a link.
    cost::CacheRates rates(std::uint64_t bytes) const {
        return work_ ? work_->rates : profile_.memory.rates_for(bytes);
    }
    /// Returns the rates for a copy of `bytes`.
    cost::CacheRates copy_rates(std::uint64_t bytes) const {
        return rates(messages().working_set_bytes(bytes));
    }
    double single_copy_ns(std::uint64_t bytes) const {
        return messages().single_copy_ns(bytes, Source::settled, copy_rates(bytes));
    }
    /// Returns how long one rank's copy occupies the way out of another's memory, or into it. In a
    /// cooperative copy it is a half, as the other rank copies the rest the other way.
    double taken_by_one_ns(std::uint64_t bytes) const {
        return messages().contended_ns(bytes, 1) / (messages().copied_by_both(bytes) ? 2 : 1);
    }
    /// Returns a link like this one between ranks at another distance. REQUIRES: levels_ knows
    /// something.
    Link at(topo::Distance distance, Rank sharers = 1) const;
    Link on_host() const { return at(levels_.placement().widest_on_host()); }
    Link at_level(std::size_t level) const {
        return level < levels_.count() ? at(levels_.distance(level)) : *this;
    }
    Link on(const RankLevels::Way& way) const {
        const bool all_leave = way.level < levels_.count() || way.leaving >= sharers_;
        return all_leave ? at_level(way.level) : at(topo::Distance::network, way.leaving);
    }
    /// Returns the link out of a host with `on_host` ranks for messages to all other hosts. Each of
    /// these ranks has as many, so over all steps they share the way out, even if in one step there
    /// are too few ranks elsewhere for all of them.
    Link out_of_host(Rank on_host) const {
        return at(topo::Distance::network, sharers_ > 1 ? on_host : 1);
    }
    /// Returns the time of a message to each of the `count` - 1 others from a rank with groups of
    /// these sizes.
    template <typename NsOf>
    double from_groups_to_all_ns(const RankLevels::GroupSizes& sizes, Rank count, NsOf ns_of) const;
    /// Returns what the root has to do for those before in a row.
    double root_blocks_before_ns(Rank count, std::uint64_t block_bytes, Root root) const;
    double both_copy_blocks_ns(Rank count, std::uint64_t block_bytes) const;
    /// Returns whether both ends copy a message.
    bool both_copy(std::uint64_t bytes) const;
    /// Returns by how much later than the one before the next linear gather of blocks from `count`
    /// ranks is done.
    double blocks_apart_ns(Rank count, std::uint64_t block_bytes) const;

    const cost::Profile& profile_;
    MessageTimes times_;
    std::optional<MessageWork> work_; ///< Of at_work(), if it is that.
    RankLevels levels_;               ///< Of with_levels(), if it is that.
    Rank sharers_;
    bool in_exchanges_ = false;
    bool in_segments_ = false;
};

/// The price of something at each level at which ranks may meet, calculated once, for callers that
/// ask for it in many steps and for many radixes.
template <typename Price>
class LevelPrices {
  public:
    /// price_of(const Link&) returns the price by one link.
    template <typename PriceOf>
    LevelPrices(const Link& link, PriceOf price_of) : levels_(link.levels()) {
        for (std::size_t level = 0; level <= link.levels().count(); ++level) {
            prices_[level] = price_of(link.at_level(level));
        }
    }
    /// Returns the price from roots of trees to their children: RankLevels::in_tree().
    const Price& in_tree(std::uint64_t ranks, std::uint64_t radix) const {
        return prices_[levels_.in_tree(ranks, radix)];
    }
    /// Returns the price between two ranks, given by their indexes within the team.
    const Price& between(Rank a, Rank b) const { return prices_[levels_.between(a, b)]; }

  private:
    RankLevels levels_;
    std::array<Price, topo::kDistanceCount> prices_ = {};
};

template <typename NsOf>
double Link::along_ns(double steps, Rank count, NsOf ns_of) const {
    if (count > 1 && levels_.are_hosts_only()) {
        const Rank far = levels_.are_by_host() ? levels_.borders(count) : count - 1;
        const double far_ns = ns_of(at(topo::Distance::network)); // One after the other.
        return steps * (far * far_ns + (count - 1 - far) * ns_of(on_host())) / (count - 1);
    }
    if (count < 2 || !levels_.are_in_order()) {
        return steps * ns_of(*this);
    }
    double sum_ns = 0;
    Rank groups = count;
    for (std::size_t level = 0; level <= levels_.count() && groups > 1; ++level) {
        const Rank wider = levels_.groups(level, count);
        if (wider < groups) {
            sum_ns += (groups - wider) * ns_of(at_level(level));
            groups = wider;
        }
    }
    return steps * sum_ns / (count - 1);
}

template <typename NsOf>
double Link::from_groups_to_all_ns(const RankLevels::GroupSizes& sizes, Rank count,
                                   NsOf ns_of) const {
    double sum_ns = 0;
    Rank nearer = 1;
    for (std::size_t level = 0; level < levels_.count(); ++level) {
        if (const Rank ranks = std::min(sizes[level], count); ranks > nearer) {
            sum_ns += (ranks - nearer) * ns_of(at_level(level));
            nearer = ranks;
        }
    }
    return nearer == count ? sum_ns : sum_ns + (count - nearer) * ns_of(out_of_host(nearer));
}

/// The most bytes leave the host with most ranks, since all of its ranks share its way out, and the
/// most messages leave a rank that has fewest others near.
template <typename NsOf>
double Link::to_all_ns(double steps, Rank count, NsOf ns_of) const {
    if (count < 2 || levels_.count() == 0) {
        return steps * ns_of(*this);
    }
    using End = RankLevels::End;
    const double ns = from_groups_to_all_ns(levels_.group_sizes(End::most), count, ns_of);
    return steps / (count - 1) *
           (levels_.are_alike()
                ? ns
                : std::max(ns,
                           from_groups_to_all_ns(levels_.group_sizes(End::fewest), count, ns_of)));
}

template <typename NsOf>
double Link::rounds_ns(unsigned first, unsigned end, unsigned radix, Partners partners,
                       NsOf ns_of) const {
    if (first >= end || levels_.count() == 0) {
        return first < end ? (end - first) * ns_of(*this) : 0;
    }
    std::uint64_t distance = 1;
    double sum_ns = 0;
    for (unsigned round = 0; round < end; ++round, distance *= radix) {
        if (round >= first) {
            const std::uint64_t reach = distance * radix;
            sum_ns += ns_of(partners == Partners::rotated ? rotated(distance, reach * radix)
                                                          : within(reach, radix));
        }
    }
    return sum_ns;
}

/// Returns the memory level between ranks of different sockets or, if there is only one, within it.
inline const cost::MemoryLevel& widest_level(const Facts& facts) {
    const cost::NodeModel& node = facts.shared.node;
    return node.sockets > 1 ? node.between : node.within;
}

/// Returns the cost per byte of ordinary stores into a staging buffer that peers have read, given
/// the rates of the cache that holds it. Where ranks take turns on processors, the others' turns
/// may have driven it out of the cache of the rank that read it, into one that all share, into
/// which some processors write faster.
double staging_overwrite_per_byte_ns(const Facts& facts, const cost::CacheRates& staging_buffer);
/// How many ranks of a host send to other hosts at a time.
enum class Traffic {
    sparse, ///< One, where the ranks of a host follow one another: trees, rings, chains.
    dense,  ///< All that can have partners elsewhere: exchanges at a distance.
};

/// Returns the link between all ranks.
Link flat_link(const Facts& facts, Traffic traffic);
/// Returns the link between the ranks of one host.
Link host_link(const Facts& facts);
/// Returns the link between hosts of which one rank each communicates.
Link leader_link(const Facts& facts);

} // namespace ucg::plan
