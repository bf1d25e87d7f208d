// What a message costs at its two ends, by the distance of its ranks: by LogGP where it is copied
// in and out or goes over a network; else an RTS is sent, the message is copied once out of the
// sender's memory, and a FIN is sent. Only + - * / are used, as in work.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::price {

/// How the transport cuts messages that are copied in and out between cores that share a cache; the
/// prices are those of such cores. Messages up to the first length travel whole, longer ones in
/// pieces of at most the second. A test compares both with the transport's.
inline constexpr std::uint64_t kWholeMessageBytes = 8 << 10;
inline constexpr std::uint64_t kPieceBytesMax = 16 << 10;

/// What the price of a message depends on besides the message: the ranks around it.
struct Surroundings {
    bool buffers_mapped = false; ///< Buffers mostly lie where peers have them mapped.
    double ranks_per_cpu = 1;    ///< Above 1, a rank that waits for a peer waits for its turn, too.
    Rank ranks_on_host = 2;      ///< Of the host with most ranks.
    Rank link_sharers = 1;       ///< Ranks that use the same way out of a host at the same time.
    bool one_pair = false;       ///< There are no ranks but the two that communicate.
    MessageUse use = MessageUse::exchanged; ///< By the collective (graph::message_use()).
};

/// Returns the time, in nanoseconds, until a rank that has something to do gets its turn on the CPU
/// that it shares with others, all of which yield; 0 if each rank has a CPU.
double turn_ns(const cost::Profile& profile, double ranks_per_cpu);

/// How long the sender has had the bytes that it sends.
enum class Source : std::uint8_t {
    /// For some time, such as its input. If there is only one reader, its cache still holds what it
    /// read before, and so does the cache of a processor on which ranks take turns. Of several
    /// readers that have a processor each, every one finds the lines, and the kernel's records of
    /// the pages, with the reader before it.
    settled,
    fresh, ///< The sender has only just received or computed them, and its cache holds the lines.
};

/// The price of a message as the simulator and the planner see it. Times are in nanoseconds.
struct MessagePrice {
    cost::MessageTerms terms; ///< Of the message; if it is copied once, of its RTS.
    double copy_ns = 0;       ///< The receiver's time for a message that is copied once; else 0.
    /// Whether it is a cooperative copy: a sender that has nothing else to do copies half of it
    /// while the receiver copies the rest.
    bool by_both = false;
    double half_ns = 0; ///< The time in which each of them copies its half.
    /// How long the copy occupies the way to the other rank's memory, which others may want to use
    /// at the same time: the receiver's copy the way out of the sender's memory, the sender's copy
    /// the way into the receiver's.
    double contended_ns = 0;
    /// Whether it is copied in and out. Then `fill_ns` is the time of the sender's processor, while
    /// the message leaves, and `drain_ns` that of the receiver's, while it arrives; a receiver
    /// takes in one message at a time.
    bool through_ring = false;
    double fill_ns = 0;
    double drain_ns = 0;
};

/// For how long each byte of a single copy occupies the way to the other rank's memory.
struct Contention {
    double per_byte_ns = 0;
    double serial_lookup_per_byte_ns = 0; ///< Of copies from cost::kSerialLookupBytesMin on.
};

/// The prices of messages between ranks at one distance. The profile must outlive it.
class DistancePrices {
  public:
    DistancePrices(const cost::Profile& profile, topo::Distance distance,
                   const Surroundings& around = {});

    const cost::LogGp& model() const { return model_; }
    /// Returns the terms of a message that is copied in and out, or goes between hosts. On a host,
    /// bytes that do not fit the line that announces them lie in lines of their own. The receiver's
    /// cache must give up the first of these before the sender can write it, and the sender's cache
    /// before the receiver can read it, and both processors wait for that. Both copy at the same
    /// time, except for a first piece. Ranks that take turns on processors find the lines in the
    /// caches of these processors, and copy one after the other.
    cost::MessageTerms terms(std::uint64_t bytes) const;
    double message_ns(std::uint64_t bytes) const { return terms(bytes).total_ns(); }
    /// Returns what such a message costs a rank that passes it on, besides the copies of its bytes.
    double passing_ns(std::uint64_t bytes) const {
        const cost::MessageTerms terms = this->terms(bytes);
        return std::max(terms.issue_ns + terms.take_ns, terms.gap_ns);
    }
    /// Returns the time of the RTS and the FIN of a message that is copied once. The FIN takes no
    /// turns: the sender's processor has been through its other ranks while the receiver copied.
    double rts_fin_ns() const { return 2 * message_ns(0) - turns_ns_; }
    bool across_hosts() const { return across_hosts_; }
    /// Returns the processor time of an empty message at one of its ends. Other ranks that use the
    /// same way out do not add to it, as their messages are work of their own processors.
    double end_ns() const { return end_ns_; }

    /// Returns whether a message of that length is copied once.
    bool copied_once(std::uint64_t bytes) const {
        return copies_.permitted && bytes >= copies_.bytes_min;
    }
    /// Returns the length of the longest message that is not copied once.
    std::uint64_t copied_twice_bytes_max() const {
        return copies_.permitted ? std::max<std::uint64_t>(copies_.bytes_min, 1) - 1
                                 : std::numeric_limits<std::uint64_t>::max();
    }
    /// Returns whether the sender of such a message may copy a part of it. Where ranks take turns
    /// on processors it may not, as the sender then has no processor to copy with.
    bool copied_by_both(std::uint64_t bytes) const {
        return has_processor_ && bytes >= profile_->memory.cooperative.bytes_min;
    }
    /// Returns the time of the one copy of a message that is copied once, which is no faster than
    /// any copy within the cache that holds both buffers: `there`, or the one that holds
    /// working_set_bytes(bytes).
    double single_copy_ns(std::uint64_t bytes, Source source, const cost::CacheRates& there) const;
    double single_copy_ns(std::uint64_t bytes, Source source) const;

    /// Returns whether a message of that length which only a reduction reads is combined where it
    /// arrives: in a ring's buffer, or in its sender's memory. A message that the kernel copies is
    /// not, nor one whose bytes fit the line that announces them.
    bool combined_on_arrival(std::uint64_t bytes) const {
        return !across_hosts_ && bytes > kCacheLine && (mapped_ || !copied_once(bytes));
    }
    /// Returns what the reduction of such a message with an operand of the rank's own adds to the
    /// message. The operand and the target are in the cache `there`.
    /// REQUIRES: combined_on_arrival(bytes).
    double combining_ns(std::uint64_t bytes, const cost::CacheRates& there) const;

    /// Returns the time for which `ranks` ranks that copy `bytes` each out of one rank's memory, or
    /// into it, at the same time occupy the way there. Where the kernel copies, each waits for the
    /// others at the tables of that rank's pages.
    double contended_ns(std::uint64_t bytes, std::uint64_t ranks) const {
        return static_cast<double>(bytes) * static_cast<double>(ranks) *
               (bytes < cost::kSerialLookupBytesMin ? contention_.per_byte_ns
                                                    : contention_.serial_lookup_per_byte_ns);
    }

    MessagePrice price(std::uint64_t bytes, Source source) const;

    /// Returns the prices of messages that are parts of buffers of `bytes` in all, which go through
    /// the caches together.
    DistancePrices with_working_set(std::uint64_t bytes) const;
    /// Returns how many bytes go through the caches with a copy of `bytes`.
    std::uint64_t working_set_bytes(std::uint64_t bytes) const;

    /// Returns the prices of messages in exchanges, where partners send to one another and wait:
    /// for one more turn of a processor before a message arrives, and for the copy of a rank's own
    /// message, which the same processor makes.
    DistancePrices in_exchanges() const;

  private:
    const cost::Profile* profile_;
    cost::LogGp model_;
    double end_ns_;
    cost::CmaModel copies_;   ///< Single copies; without a system call where buffers are mapped.
    double line_ns_;          ///< Until a line has come from another core; 0 between hosts.
    double read_per_byte_ns_; ///< Copying out of a ring.
    double fill_per_byte_ns_; ///< Copying into a ring.
    /// Added to a single copy of what is passed on: its target is what another rank has read last.
    double passed_on_per_byte_ns_;
    double sends_per_byte_ns_ = 0; ///< In exchanges: what the receiver itself copies into a ring.
    double settled_per_byte_ns_;   ///< A single copy of bytes that are Source::settled.
    double fresh_per_byte_ns_;     ///< A single copy of bytes that are Source::fresh.
    Contention contention_;
    double turn_ns_;
    double turns_ns_; ///< Those in the latency.
    std::uint64_t working_set_bytes_ = 0;
    bool mapped_;        ///< What is copied once is copied, or read, without the kernel.
    bool has_processor_; ///< Each rank has a processor of its own.
    bool across_hosts_;
};

} // namespace ucg::price
