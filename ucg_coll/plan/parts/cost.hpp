// What messages and reductions cost among the ranks of a team: the arithmetic that the algorithms'
// cost functions share. Nothing here allocates.
//
// All ranks must choose alike, also where their processors differ: only + - * / and sqrt are used,
// which IEEE 754 rounds exactly. log and pow differ between versions of a C library.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ucg_coll/plan/algorithm.hpp"
#include "ucg_coll/price/price.hpp"

namespace ucg::plan {

using price::turn_ns;

/// What the sender of a long message does until it is copied.
enum class Sender : std::uint8_t {
    busy,  ///< Copies a message of its own, as in an exchange, or computes.
    waits, ///< Nothing else: it copies a part, where each rank has a processor.
};

/// A message to one of several, whom their sender helps to copy one after the other: what does not
/// depend on how many it helps before.
struct ToOneOf {
    double busy_ns = 0;      ///< If the sender does not help.
    double helped_ns = 0;    ///< If it helps at once.
    double announced_ns = 0; ///< Announcement and receipt.
    double contended_ns = 0; ///< For so long each takes the way out of the sender's memory.

    /// `before`: how many it helps before this one.
    double ns(unsigned before) const {
        // Each time the sender is free for the next, half of what was left is done.
        const double undone = 1.0 / static_cast<double>(std::uint64_t{1} << std::min(before, 31U));
        const double alone_ns = busy_ns - (busy_ns - helped_ns) * undone;
        return contended_ns > 0 && before > 0
                   ? std::max(alone_ns, announced_ns + (before + 1) * contended_ns)
                   : alone_ns;
    }
};

/// What a root does with blocks.
enum class Root : std::uint8_t { receives, sends };

/// Of the cache that holds the buffers of all ranks of a processor, of which each touches so many
/// bytes.
const cost::CacheRates& oversubscribed_rates(const Facts& facts, std::uint64_t touched_bytes);

/// The links of one team: the profile's level of its widest distance.
class Link {
  public:
    /// `sharers` ranks use the same way out at the same time, so that each gets a share.
    /// The facts' profile must outlive it.
    Link(const Facts& facts, topo::Distance distance, Rank sharers = 1);

    /// Prices in processor time, without waiting: a message, passed on or not, costs what keeps
    /// both of its ends busy. For ranks that take turns on their processors, whose caches then
    /// serve only if they hold the buffers of all of them, of which each rank touches so many
    /// bytes.
    Link at_work(const Facts& facts, std::uint64_t touched_bytes) const;

    /// Of all ranks, or of those of a host, whose nearest follow one another: what lies between
    /// ranks that are near costs what that level does. The facts must outlive it.
    Link with_levels(const Facts& facts) const;
    /// The link among each so many ranks that follow one another from a multiple of that number on.
    Link within(std::uint64_t ranks) const;
    /// How many levels there are below the link's own.
    std::size_t level_count() const;
    /// Which of the levels that is: those of a host, from the innermost on, then this link itself.
    std::size_t level_within(std::uint64_t ranks) const { return level_of(ranks, true); }
    /// How many ranks lie closer together than the farthest: those of a socket or host.
    Rank inner_ranks() const;
    /// And the link among them.
    Link within_group() const { return within(static_cast<std::uint64_t>(inner_ranks())); }
    /// At which of them those two ranks meet, by their places among all.
    std::size_t level_between(Rank a, Rank b) const;
    /// The same of rounds whose partners are some ranks farther, wherever they are, the next round
    /// reaching so many ranks: in all rounds before that one, one way at most leads to ranks that
    /// are farther apart than so many, and it is dearest in the last of them.
    Link rotated_before(std::uint64_t next_reach) const { return at_level_of(next_reach, false); }
    /// The time of `steps` of the ways from each of `count` ranks to the next, of which each takes
    /// ns_of(const Link&).
    template <typename NsOf>
    double along_ns(double steps, Rank count, NsOf ns_of) const;
    /// The same of the ways from one rank to each of the others.
    template <typename NsOf>
    double to_all_ns(double steps, Rank count, NsOf ns_of) const;
    bool is_across_hosts() const { return messages_.across_hosts(); }
    bool has_levels() const { return near_ != nullptr; }
    /// Which partners rounds of an exchange or levels of a tree have.
    enum class Partners : std::uint8_t {
        aligned, ///< In round i, of the same radix^(i + 1) ranks from a multiple of that number on.
        rotated, ///< Of all radix^(i + 1) ranks that follow one another.
    };
    /// The time of rounds [first, end), of which each takes ns_of(const Link&).
    template <typename NsOf>
    double rounds_ns(unsigned first, unsigned end, unsigned radix, Partners partners,
                     NsOf ns_of) const;
    /// How many of the messages of a k-nomial tree's root go to ranks that are no nearer than
    /// others.
    unsigned far_children(Rank count, unsigned radix) const;

    /// Where partners send to one another and wait: for the other's turn, and then for one's own;
    /// and each copies what it sends and what it gets.
    Link in_exchanges() const;
    /// Where each copy is of a part of buffers that have so many bytes in all, and go through the
    /// caches together.
    Link with_working_set(std::uint64_t bytes) const;

    /// From the start of sending to the end of receiving: of bytes that the sender has had for some
    /// time, such as its input.
    double message_ns(std::uint64_t bytes, Sender sender = Sender::busy) const;
    /// The same of bytes that the sender has only just received or computed, and its cache holds.
    double passing_on_ns(std::uint64_t bytes, Sender sender = Sender::busy) const;
    /// A root has a message to or from each of `count` - 1 others, and copies a block of its own:
    /// a linear gather or scatter.
    double root_blocks_ns(Rank count, std::uint64_t block_bytes, Root root) const;
    /// What an empty message costs the rank that takes it.
    double take_ns() const { return messages_.model().overhead_ns; }
    /// By how much later the next of several messages leaves: of what is copied once its
    /// announcement. Where ranks take turns, receivers who copy do so one after the other.
    double sends_apart_ns(std::uint64_t bytes) const {
        return busy_ns(has_processor_ && messages_.copied_once(bytes) ? 0 : bytes);
    }
    ToOneOf to_one_of(std::uint64_t bytes, price::Source source) const;
    /// How long a sender that waits copies it by itself; 0, if it does not.
    double pushing_ns(std::uint64_t bytes) const {
        return messages_.copied_once(bytes) && messages_.copied_by_both(bytes)
                   ? message_ns(bytes, Sender::busy)
                   : 0;
    }
    /// By how much later the next of several messages to one rank has come from a sender that
    /// waits.
    double next_ns(std::uint64_t bytes) const {
        return pushing_ns(bytes) > 0 ? message_ns(bytes, Sender::waits) - messages_.announced_ns()
                                     : busy_ns(bytes);
    }
    /// Between two messages of a rank that only sends or only receives.
    double busy_ns(std::uint64_t bytes) const;
    /// Between hosts, where messages cost their sender much and it need not wait for them: how long
    /// so many messages keep the rank that sends most. With it, the price of a collective from a
    /// root or of a scan is that of two in a row (calls_in_a_row()): the second begins when the
    /// busiest rank is done with the first. On a host 0.
    double sends_before_ns(double messages, std::uint64_t bytes) const {
        return messages_.across_hosts() ? messages * busy_ns(bytes) : 0;
    }
    /// The same of collectives to a root: of so many messages, how long they keep the way into the
    /// rank that receives most. Its peers wait for nothing and are soon ahead, so this is the price
    /// of three in a row.
    double receives_before_ns(double messages, std::uint64_t bytes) const {
        // The root is one rank, however many of its host send.
        const double alone_ns = profile_.level(topo::Distance::network).gap_per_byte_ns;
        return messages_.across_hosts()
                   ? cost::kBeforeAtRoot * messages * static_cast<double>(bytes) * alone_ns
                   : 0;
    }
    /// The same of ranks on the way to the root, which pass messages on.
    double relays_before_ns(double messages, std::uint64_t bytes) const {
        return cost::kBeforeAtRoot * sends_before_ns(messages, bytes);
    }
    /// A phase of an exchange, by what the rank that ends it last does.
    struct PhaseMessages {
        Rank sends = 0;
        Rank takes = 1;
        Rank last_sent = 1;  ///< Which of its sender's messages is taken last,
        Rank last_takes = 1; ///< and how many come with it.
    };
    /// A round in which each rank sends `peers` messages and takes as many.
    static PhaseMessages round_of(Rank peers) {
        return {.sends = peers, .takes = peers, .last_sent = peers};
    }
    /// From the first send to the last take: by the way of the last message, or, if that is longer,
    /// by what the processor does for all of them, and besides for `beside_ns`. Ranks at the border
    /// of a socket may take by a way in, `in`, that is farther than that of most.
    double phase_ns(std::uint64_t bytes, price::Source source, const PhaseMessages& phase,
                    double beside_ns = 0, const Link* in = nullptr) const;
    /// What `work_ns` of one's own add to an exchange of such messages, which it is done beside:
    /// who has sent waits for what comes.
    double beside_ns(double work_ns, std::uint64_t bytes) const;
    /// Does each message take its own way, as LogGP has it? Else they are copied once, one after
    /// the other, or processors are what they wait for.
    bool has_plain_messages(std::uint64_t bytes) const {
        return oversubscribed_ == nullptr && !messages_.copied_once(bytes);
    }
    cost::MessageTerms message_terms(std::uint64_t bytes) const { return messages_.terms(bytes); }
    /// Between two messages of which a rank takes one and sends one; it passes on what has come, or
    /// sends what it has had.
    double relay_ns(std::uint64_t bytes, price::Source source = price::Source::fresh) const;
    /// Of messages that are copied in and out, relay_ns() without their bytes, of any but the
    /// shortest, and what each byte adds: on a host a copy from one ring and one into the next.
    double relay_fixed_ns() const { return messages_.passing_ns(2 * kCacheLine); }
    double relay_byte_ns() const { return messages_.in_exchanges().model().gap_per_byte_ns; }
    /// The same of ranks that receive from the one before them and send to the one behind them, and
    /// work for `work_ns` on each: on a host they copy, across hosts they work while it travels,
    /// and where several ranks are on a host only one of the two is on another.
    double along_relay_ns(std::uint64_t bytes, double work_ns = 0,
                          price::Source source = price::Source::fresh) const;
    /// What `bytes` take longer in messages of several ranks to one, which meet on its link:
    /// between hosts, by the profile's LinkCosts::contention.
    double contention_ns(std::uint64_t bytes) const {
        return messages_.across_hosts()
                   ? (profile_.links.contention - 1) * static_cast<double>(bytes) * byte_ns()
                   : 0;
    }
    /// How wide trees may be. Where ranks take turns on processors a level costs a turn of each,
    /// and one more message a fraction of that.
    unsigned radix_max() const;
    /// Where ranks that share a way out send at a time: until the last one's message leaves. Then
    /// they follow one another, and rounds to come do not wait for that again.
    double queue_ns() const {
        return messages_.across_hosts()
                   ? messages_.model().gap_ns - profile_.level(topo::Distance::network).gap_ns
                   : 0;
    }
    /// Do messages of so many bytes take so long to leave the host that their number costs nothing?
    /// What a rank sends at a time to several hosts shares the way out, so that all of it arrives
    /// with the last, and what is to be passed on comes later than the models have it.
    bool is_bound_by_way_out(std::uint64_t bytes) const;
    /// What one more byte of a long message costs.
    double byte_ns() const { return messages_.model().gap_per_byte_ns; }
    /// One reduction of `operands` slices of `bytes` each, parts of vectors of `vector_bytes`. What
    /// does not fit the caches costs more.
    double reduce_ns(unsigned operands, std::uint64_t bytes, std::uint64_t vector_bytes) const;
    double reduce_ns(unsigned operands, std::uint64_t bytes) const {
        return reduce_ns(operands, bytes, bytes);
    }
    /// One of what has come and a block of the rank's own vector. Through the caches go that
    /// vector, of `vector_bytes`, which others read, and as much that comes.
    double reduce_arrived_ns(unsigned operands, std::uint64_t bytes,
                             std::uint64_t vector_bytes) const;
    /// What combining a message with an operand of the rank's own, parts of vectors of
    /// `vector_bytes`, adds to the message, which nothing else reads: what it takes longer than
    /// coming, where it is combined in the place where it arrives.
    double combining_ns(std::uint64_t bytes, std::uint64_t vector_bytes) const;
    /// Is a message that only a reduction reads combined where it arrives, and copied nowhere?
    bool combines_on_arrival(std::uint64_t bytes) const {
        return messages_.combined_on_arrival(bytes);
    }
    double copy_ns(std::uint64_t bytes) const;

  private:
    /// The rates for a working set.
    const cost::CacheRates& rates(std::uint64_t bytes) const {
        return oversubscribed_ != nullptr ? *oversubscribed_ : profile_.memory.cache_for(bytes);
    }
    /// Those of a copy.
    const cost::CacheRates& copy_rates(std::uint64_t bytes) const {
        return rates(messages_.working_set_bytes(bytes));
    }
    double single_copy_ns(std::uint64_t bytes, price::Source source) const {
        return messages_.single_copy_ns(bytes, source, copy_rates(bytes));
    }
    Link at(topo::Distance distance) const; ///< Between ranks that are nearer.
    std::size_t level_of(std::uint64_t ranks, bool aligned) const;
    Link at_level_of(std::uint64_t ranks, bool aligned) const {
        return at_level(level_of(ranks, aligned));
    }
    Link at_level(std::size_t level) const;
    template <typename Price>
    friend class LevelPrices;
    /// Calls visit(const Link&, double ranks) for each level of `count` ranks, from the innermost
    /// on.
    template <typename Visit>
    void for_each_level(Rank count, Visit visit) const;
    /// For how long one rank takes the way out of another's memory, or into it: who waits copies a
    /// half by the other way.
    double taken_by_one_ns(std::uint64_t bytes) const {
        return messages_.contended_ns(bytes, 1) / (messages_.copied_by_both(bytes) ? 2 : 1);
    }
    double both_ends_ns(std::uint64_t bytes, price::Source source) const;
    double announced_ns(std::uint64_t bytes, price::Source source, bool by_both) const;

    const cost::Profile& profile_;
    price::Messages messages_;
    bool has_processor_;                               ///< Each rank one of its own.
    const cost::CacheRates* oversubscribed_ = nullptr; ///< Of at_work(); else null.
    const Facts* near_ = nullptr;                      ///< Of with_levels(), if there are several.
    bool in_exchanges_ = false;
};

/// What something costs at each level at which ranks may meet, calculated once: where many steps
/// and radixes ask for it.
template <typename Price>
class LevelPrices {
  public:
    /// price_of(const Link&). The link must outlive it.
    template <typename PriceOf>
    LevelPrices(const Link& link, PriceOf price_of) : link_(link) {
        for (std::size_t level = 0; level <= link.level_count(); ++level) {
            prices_[level] = price_of(link.at_level(level));
        }
    }
    /// Among each so many ranks, as Link::within().
    const Price& within(std::uint64_t ranks) const { return prices_[link_.level_within(ranks)]; }
    /// Between those two ranks, by their places among all.
    const Price& between(Rank a, Rank b) const { return prices_[link_.level_between(a, b)]; }

  private:
    const Link& link_;
    std::array<Price, topo::kDistanceCount> prices_ = {};
};

template <typename Visit>
void Link::for_each_level(Rank count, Visit visit) const {
    const HostLevels& host = near_->shared.levels;
    Rank before = 1;
    for (std::size_t i = 0; i < host.count && before < count; ++i) {
        if (host.level[i].ranks > before) {
            before = std::min(host.level[i].ranks, count);
            visit(at(host.level[i].distance), static_cast<double>(before));
        }
    }
    if (before < count) {
        visit(*this, static_cast<double>(count));
    }
}

template <typename NsOf>
double Link::along_ns(double steps, Rank count, NsOf ns_of) const {
    if (near_ == nullptr || count < 2) {
        return steps * ns_of(*this);
    }
    double sum_ns = 0;
    double groups = count;
    for_each_level(count, [&](const Link& link, double ranks) {
        const double wider = count / ranks;
        sum_ns += (groups - wider) * ns_of(link);
        groups = wider;
    });
    return steps * sum_ns / (count - 1);
}

template <typename NsOf>
double Link::to_all_ns(double steps, Rank count, NsOf ns_of) const {
    if (near_ == nullptr || count < 2) {
        return steps * ns_of(*this);
    }
    double sum_ns = 0;
    double nearer = 1;
    for_each_level(count, [&](const Link& link, double ranks) {
        sum_ns += (ranks - nearer) * ns_of(link);
        nearer = ranks;
    });
    return steps * sum_ns / (count - 1);
}

template <typename NsOf>
double Link::rounds_ns(unsigned first, unsigned end, unsigned radix, Partners partners,
                       NsOf ns_of) const {
    if (near_ == nullptr || first >= end) {
        return first < end ? (end - first) * ns_of(*this) : 0;
    }
    std::uint64_t reach = 1;
    double sum_ns = 0;
    for (unsigned round = 0; round < end; ++round) {
        reach *= radix;
        if (round >= first) {
            sum_ns += ns_of(partners == Partners::rotated ? rotated_before(reach * radix)
                                                          : within(reach));
        }
    }
    return sum_ns;
}

/// Between ranks of different sockets, if there are several.
inline const cost::MemoryLevel& widest_level(const Facts& facts) {
    const cost::NodeModel& node = facts.shared.node;
    return node.sockets > 1 ? node.between : node.within;
}

/// By ordinary stores into `staging_buffer`. Where ranks take turns on processors, the others'
/// turns may have driven it out of the cache of the rank that read it, to one that all share, into
/// which some processors write faster.
double staging_overwrite_per_byte_ns(const Facts& facts, const cost::CacheRates& staging_buffer);
/// How many ranks of a host send to other hosts at a time.
enum class Traffic {
    sparse, ///< One, where the ranks of a host follow one another: trees, rings, chains.
    dense,  ///< All of them: exchanges at a distance.
};

/// Among all ranks.
Link flat_link(const Facts& facts, Traffic traffic);
/// Among the ranks of one host.
Link host_link(const Facts& facts);
/// Among one rank of each host.
Link leader_link(const Facts& facts);

/// How many levels a tree of this radix has: the smallest d with radix^d >= count.
unsigned tree_depth(Rank count, unsigned radix);
/// How many children the root of a k-nomial one has.
unsigned root_children(Rank count, unsigned radix);

/// The length of the segments in which `total` bytes pass best through a chain of `hops` links, at
/// `fixed_ns` + `per_byte_ns` for each segment and link: a multiple of `granularity`, at least one
/// cache line long. Minimises (hops + segments - 1) (fixed + segment per_byte).
/// REQUIRES: granularity > 0.
std::uint64_t pipeline_segment(std::uint64_t total, Rank hops, double fixed_ns, double per_byte_ns,
                               std::uint64_t granularity);

/// Radixes that trees may have.
inline constexpr unsigned kRadixMin = 2;
inline constexpr unsigned kRadixMax = 8;
inline constexpr unsigned kOversubscribedRadixMax = 64;

/// The radix of a tree over `count` members with the least cost_ns(radix); the smaller one of
/// equals. From one of `count` on the root sends to all others, whatever the radix.
template <typename CostOfRadix>
unsigned cheapest_radix(Rank count, CostOfRadix cost_ns, unsigned radix_max = kRadixMax) {
    const auto end = static_cast<unsigned>(std::min<std::int64_t>(radix_max, count));
    unsigned best = kRadixMin;
    double best_ns = cost_ns(best);
    for (unsigned radix = kRadixMin + 1; radix <= end; ++radix) {
        if (const double ns = cost_ns(radix); ns < best_ns) {
            best = radix;
            best_ns = ns;
        }
    }
    return best;
}

} // namespace ucg::plan
