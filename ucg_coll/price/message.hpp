// What a message costs at its two ends, by the distance of its ranks: by LogGP where it is copied
// in and out or goes over a network; else it is announced, copied once out of the sender's memory,
// and acknowledged. Only + - * / are used, as in work.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::price {

/// How the transport cuts messages that are copied in and out, between cores that share a cache,
/// which the costs are those of: up to the first length they travel whole, longer ones in pieces
/// of at most the second. A test holds these against the transport.
inline constexpr std::uint64_t kWholeMessageBytes = 8 << 10;
inline constexpr std::uint64_t kPieceBytesMax = 16 << 10;

/// What is around the ranks that send.
struct Surroundings {
    bool buffers_mapped = false; ///< Buffers mostly lie where peers have them mapped.
    double ranks_per_cpu = 1;    ///< Above 1, who waits for a rank waits its turn.
    Rank link_sharers = 1;       ///< Ranks that use the same way out at the same time.
    bool one_pair = false;       ///< There are no other ranks.
};

/// Until a rank runs that has something to do: its turn among those of its CPU, all of which yield;
/// 0 if each has one.
double turn_ns(const cost::Profile& profile, double ranks_per_cpu);

/// For how long the sender has had what it sends.
enum class Source : std::uint8_t {
    /// Some time, such as its input. One and the same reader still has what it read before, as has
    /// the cache of a processor on which ranks take turns; of several readers with a processor each
    /// one finds lines, and the kernel's records of the pages, with the reader before it.
    settled,
    fresh, ///< It has only just received or computed it, and its cache holds the lines.
};

/// A message as the simulator and the planner see it.
struct MessagePrice {
    cost::MessageTerms terms; ///< Of the message; of its announcement, if it is copied once.
    double copy_ns = 0;       ///< If it is copied once, what that takes the receiver; else 0.
    /// The sender copies a half meanwhile, if it has nothing else to do.
    bool by_both = false;
    double half_ns = 0; ///< What copying that half takes each of them.
    /// Whoever copies it takes a way for so long, if others want the same: who receives it the one
    /// out of its sender's memory, who sends it the one into its receiver's.
    double contended_ns = 0;
    /// If it is copied in and out: what that takes the processors of its sender, as it leaves, and
    /// of its receiver, as it comes, which takes in no two at a time.
    bool through_ring = false;
    double fill_ns = 0;
    double drain_ns = 0;
};

/// Messages between ranks at one distance. The profile must outlive it.
class Messages {
  public:
    Messages(const cost::Profile& profile, topo::Distance distance,
             const Surroundings& around = {});

    const cost::LogGp& model() const { return model_; }
    /// A message that is copied in and out, or goes between hosts. On a host its bytes lie in lines
    /// of their own, unless they come with the one that tells of them: before the sender can write
    /// the first of them its receiver's cache must give it up, and before the receiver can read it
    /// the sender's, and both processors wait. Both copy at the same time, but for a first piece.
    /// Ranks that take turns on processors find lines in the caches of these, and copy in turn.
    cost::MessageTerms terms(std::uint64_t bytes) const;
    double message_ns(std::uint64_t bytes) const { return terms(bytes).total_ns(); }
    /// What such a message takes of a rank that passes it on, besides its bytes.
    double passing_ns(std::uint64_t bytes) const {
        const cost::MessageTerms terms = this->terms(bytes);
        return std::max(terms.issue_ns + terms.take_ns, terms.gap_ns);
    }
    /// The announcement of what is copied once, and the receipt.
    double announced_ns() const { return 2 * message_ns(0); }
    bool across_hosts() const { return across_hosts_; }
    /// What a message of no bytes takes of a processor at one of its ends. Others that use the same
    /// way out do not make it more: their work is theirs.
    double end_ns() const { return end_ns_; }

    /// Is a message of that length copied once?
    bool copied_once(std::uint64_t bytes) const {
        return copies_.permitted && bytes >= copies_.bytes_min;
    }
    /// May the sender of such a message copy a part of it? Where ranks take turns on processors it
    /// has none.
    bool copied_by_both(std::uint64_t bytes) const {
        return has_processor_ && bytes >= profile_->memory.cooperative.bytes_min;
    }
    /// What does not fit the caches comes no faster than any copy `there`.
    double single_copy_ns(std::uint64_t bytes, Source source, const cost::CacheRates& there) const;
    double single_copy_ns(std::uint64_t bytes, Source source) const;

    /// A message of that length which only a reduction reads is combined where it arrives: in a
    /// ring's buffer, or in its sender's memory. What the kernel copies is not, nor what comes with
    /// its line.
    bool combined_on_arrival(std::uint64_t bytes) const {
        return !across_hosts_ && bytes > kCacheLine && (mapped_ || !copied_once(bytes));
    }
    /// What the reduction with an operand of the rank's own then adds to the message; the operand
    /// and the target are `there`. REQUIRES: combined_on_arrival(bytes).
    double combining_ns(std::uint64_t bytes, const cost::CacheRates& there) const;

    /// So many ranks copy `bytes` each out of one rank's memory, or into it, at a time: what the
    /// way there takes for all of them. By the kernel they take turns at the tables of its pages.
    double contended_ns(std::uint64_t bytes, std::uint64_t ranks) const {
        return static_cast<double>(bytes) * static_cast<double>(ranks) * contended_per_byte_ns_;
    }

    MessagePrice price(std::uint64_t bytes, Source source) const;

    /// Where each message is a part of buffers that have so many bytes in all, and go through the
    /// caches together.
    Messages with_working_set(std::uint64_t bytes) const;
    /// What goes through the caches with a copy of so many bytes.
    std::uint64_t working_set_bytes(std::uint64_t bytes) const;

    /// Where partners send to one another and wait: for one more turn of a processor before a
    /// message arrives, and for the copy of the own message, which the same processor makes.
    Messages in_exchanges() const;

  private:
    const cost::Profile* profile_;
    cost::LogGp model_;
    double end_ns_;
    cost::CmaModel copies_; ///< No system call where buffers are mapped.
    double line_ns_;        ///< Until a line has come.
    double read_per_byte_ns_;
    double fill_per_byte_ns_; ///< Copying into a ring.
    /// Who passes on what it receives receives it where its reader had it last.
    double passed_on_per_byte_ns_;
    double sends_per_byte_ns_ = 0; ///< What the receiver copies into one meanwhile.
    double settled_per_byte_ns_;   ///< A single copy of what is settled.
    double fresh_per_byte_ns_;     ///< And of what is fresh.
    double contended_per_byte_ns_;
    double turn_ns_;
    std::uint64_t working_set_bytes_ = 0;
    bool mapped_;        ///< What is copied once is copied, or read, without the kernel.
    bool has_processor_; ///< Each rank one of its own.
    bool across_hosts_;
};

} // namespace ucg::price
