// What a message costs at its two ends, by the distance of its ranks: by LogGP where it is copied
// in and out or goes over a network; else it is announced, copied once out of the sender's memory,
// and acknowledged. Only + - * / are used, as in work.hpp.
#pragma once

#include <cstdint>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::price {

/// What is around the ranks that send.
struct Surroundings {
    bool in_place = false;    ///< Buffers mostly lie where peers have them mapped.
    double ranks_per_cpu = 1; ///< Above 1, who waits for a rank waits its turn.
    Rank link_sharers = 1;    ///< Ranks that use the same way out at the same time.
};

/// Until a rank runs that has something to do: its turn among those of its CPU, all of which yield;
/// 0 if each has one.
double turn_ns(const cost::Profile& profile, double ranks_per_cpu);

/// For how long the sender has had what it sends.
enum class Source : std::uint8_t {
    settled, ///< Some time, such as its input.
    fresh,   ///< It has only just received or computed it, and its cache holds the lines.
};

/// A message as the simulator and the planner see it.
struct MessagePrice {
    cost::MessageTerms terms; ///< Of the message; of its announcement, if it is copied once.
    double copy_ns = 0;       ///< If it is copied once, what that takes the receiver; else 0.
    /// The sender copies a half meanwhile, if it has nothing else to do.
    bool by_both = false;
    double half_ns = 0;      ///< What copying that half takes each of them,
    double pushed_ns = 0;    ///< and copying all of it by its sender, whose cache holds it.
    double contended_ns = 0; ///< For so long the way to each of their memories is taken.
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
        return senders_help_ && bytes >= profile_->memory.joint.bytes_min;
    }
    /// What does not fit the caches comes no faster than any copy `there`.
    double single_copy_ns(std::uint64_t bytes, Source source, const cost::CacheRates& there) const;
    double single_copy_ns(std::uint64_t bytes, Source source) const;

    /// A message of that length which only a reduction reads is combined where it arrives: in a
    /// ring's buffer, or in its sender's memory. What the kernel copies is not, nor what comes with
    /// its line.
    bool combined_in_place(std::uint64_t bytes) const {
        return !across_hosts_ && bytes > kCacheLine && (mapped_ || !copied_once(bytes));
    }
    /// What the reduction with an operand of the rank's own then adds to the message; the operand
    /// and the target are `there`. REQUIRES: combined_in_place(bytes).
    double combining_ns(std::uint64_t bytes, const cost::CacheRates& there) const;

    /// So many ranks bring `bytes` each out of one rank's memory, or into it, at a time: what the
    /// way there takes for all of them.
    double contended_ns(std::uint64_t bytes, std::uint64_t ranks) const {
        return static_cast<double>(bytes) * static_cast<double>(ranks) * contended_per_byte_ns_;
    }

    MessagePrice price(std::uint64_t bytes, Source source) const;

    /// Where partners send to one another and wait: for one more turn of a processor before a
    /// message arrives, and for the copy of the own message, which the same processor makes.
    Messages in_exchanges() const;

  private:
    const cost::Profile* profile_;
    cost::LogGp model_;
    double end_ns_;
    cost::CmaModel copies_; ///< No system call where buffers are mapped.
    double read_per_byte_ns_;
    double fill_per_byte_ns_;      ///< Copying into a ring.
    double sends_per_byte_ns_ = 0; ///< What the receiver copies into one meanwhile.
    double contended_per_byte_ns_;
    double turn_ns_;
    bool mapped_; ///< What is copied once is copied, or read, without the kernel.
    bool senders_help_;
    bool across_hosts_;
};

} // namespace ucg::price
