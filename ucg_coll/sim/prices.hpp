// What a simulation charges for: messages by a model of the network, computation by the byte, reads
// of the memory of other ranks of a host by the memory model of a profile, and the link that the
// ranks of a host share.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/price/price.hpp"

namespace ucg::sim {

/// The prices of messages by a profile, for each topo::Distance. The profile must outlive this.
class PerLevel {
  public:
    explicit PerLevel(const cost::Profile& profile, const price::Surroundings& around = {});

    const price::DistancePrices& at(topo::Distance distance) const {
        return levels_[static_cast<std::size_t>(distance)];
    }

  private:
    std::vector<price::DistancePrices> levels_;
};

/// A model of the network. All but PerLevel have equal links between all ranks.
using NetworkModel = std::variant<cost::PipeliningPostal, cost::Postal, cost::LogP, cost::LogfP,
                                  cost::LogGp, PerLevel>;

/// Returns what a message of `bytes` between ranks at that distance does at its two ends.
cost::MessageTerms message_terms(const NetworkModel& network, topo::Distance distance,
                                 std::uint64_t bytes);

/// Returns the price of such a message: by a profile with the price of its copies, by the other
/// models its terms alone. The message is a part of buffers of `working_set_bytes` in all, which go
/// through the caches with it; 0: of none.
price::MessagePrice message_price(const NetworkModel& network, topo::Distance distance,
                                  std::uint64_t bytes, price::Source source,
                                  std::uint64_t working_set_bytes);

/// What computation costs. A reduction of k operands of n bytes costs
///   reduction_ns + (k - 1) combine_ns + n (k operand_ns_per_byte + (k - 1) combine_ns_per_byte):
/// profiles count operands, the papers' models combinations of two.
struct Compute {
    double copy_ns_per_byte = 0;
    double reduction_ns = 0;
    double combine_ns = 0;
    double operand_ns_per_byte = 0;
    double combine_ns_per_byte = 0;
    /// If not null, all of it is as this profile says, by the caches that hold the bytes.
    const cost::Profile* profile = nullptr;

    bool operator==(const Compute&) const = default;
};
/// Returns the time of a reduction of `operands` slices of `bytes` each. A profile prices it by the
/// caches that hold `touched_bytes`, except for `passing` operands: see price::reduce_segment_ns.
double reduce_ns(const Compute& compute, unsigned operands, std::uint64_t bytes,
                 std::uint64_t touched_bytes, unsigned passing = 0);
inline double reduce_ns(const Compute& compute, unsigned operands, std::uint64_t bytes) {
    return reduce_ns(compute, operands, bytes, price::touched_by_reduction(operands, bytes));
}
/// Returns what a reduction with one message of `bytes` from a rank at that distance adds to the
/// message, which may be combined where it arrives. The other operand and the target are in the
/// caches that hold `touched_bytes`; if `passing` is 1, the message comes to scratch that further
/// ones pass through.
double combine_message_ns(const NetworkModel& network, const Compute& compute,
                          topo::Distance distance, std::uint64_t bytes, std::uint64_t touched_bytes,
                          unsigned passing);

/// Returns the time of a copy of `bytes`. A profile prices it by the cache that holds
/// `touched_bytes`.
double copy_ns(const Compute& compute, std::uint64_t bytes, std::uint64_t touched_bytes);
inline double copy_ns(const Compute& compute, std::uint64_t bytes) {
    return copy_ns(compute, bytes, price::touched_by_copy(bytes));
}
/// Returns the time of a copy from or to the memory of another process by the kernel; without a
/// profile that of any copy.
double kernel_copy_ns(const Compute& compute, std::uint64_t bytes);

/// Return the costs of computation of a model. The papers' models have no price for copies. A
/// profile must outlive the result.
Compute compute_of(const cost::Postal& model);
Compute compute_of(const cost::PipeliningPostal& model);
Compute compute_of(const cost::Profile& profile);

/// What ranks of one host pay for one another's memory, whatever the network.
struct Memory {
    cost::MemoryModel model = cost::default_memory_model();
    bool buffers_mapped =
        false; ///< Peers reach published buffers; else these are copied to staging buffers.
    bool one_pair = false; ///< There are no more than two ranks.

    bool operator==(const Memory&) const = default;
};
/// Returns what ranks in such surroundings pay.
inline Memory memory_of(const cost::Profile& profile, const price::Surroundings& around) {
    return {profile.memory, around.buffers_mapped, around.one_pair};
}
/// Returns the time of publishing `bytes` of a rank's own, while `working_set_bytes` go through the
/// caches; 0 where peers reach published buffers.
double publish_ns(const Memory& memory, std::uint64_t bytes, std::uint64_t working_set_bytes);
inline double publish_ns(const Memory& memory, std::uint64_t bytes) {
    return publish_ns(memory, bytes, price::touched_by_copy(bytes));
}
/// What reading m bytes of a peer's memory takes.
struct Reads {
    double latency_ns = 0; ///< a, of the reader.
    double alone_ns = 0;   ///< b m, of the reader.
    double way_ns = 0;     ///< B m, of the way to the memory, on which others may read, too.
};
/// Returns what reading `bytes` of a peer's memory at that distance takes.
/// REQUIRES: distance != Distance::network.
Reads reads_of(const Memory& memory, topo::Distance distance, std::uint64_t bytes);
/// Returns max(a + b m, a + B d m): the time of reading `bytes` (m) of a staging buffer while
/// `readers` (d) ranks, this one among them, read by the same way.
double read_ns(const Memory& memory, topo::Distance distance, std::uint64_t readers,
               std::uint64_t bytes);

/// What flag slots cost; the planner's prices are the same (plan/flag_slots/flag_slots.cpp). A
/// share is issued once, like an empty message, whoever reads it, and arrives at each reader as
/// late as that message would. A reader that has waited knows where to look, and takes in each flag
/// slot's lines by the memory model.
struct FlagSlotTerms {
    double issue_ns = 0;  ///< The sharing rank's time, without its copy of the bytes.
    double flight_ns = 0; ///< From then on, until a reader may take it in.
};
/// Returns what a flag slot costs whose reader is at that distance.
FlagSlotTerms flag_slot_terms(const NetworkModel& network, topo::Distance distance);
/// Returns the time of the copy to a rank's own flag slot.
double flag_slot_copy_ns(const Memory& memory, std::uint64_t bytes);
/// Returns the time of a reduction of `operands` slices. All but one are flag slots that are at
/// that distance at most and have been taken in.
double combine_flag_slots_ns(const Compute& compute, const Memory& memory, topo::Distance distance,
                             unsigned operands, std::uint64_t bytes);
/// Returns the time of taking in the lines of one flag slot of which `bytes` are read, and at which
/// `readers` ranks look.
double flag_slot_lines_ns(const Memory& memory, topo::Distance distance, std::uint64_t readers,
                          std::uint64_t bytes);

/// How long a message of n bytes occupies the link of its host, which carries one message at a time
/// in each direction: per_message_ns + n per_byte_ns. As in LogGP, the time per message keeps only
/// the next message waiting: the last byte passes (n - 1) per_byte_ns after the first. A message
/// that is alone on its way passes the link while it is being sent, so a link that is no slower
/// than the sender adds nothing, and a slower one what it takes longer.
struct HostLink {
    double per_message_ns = 0;
    double per_byte_ns = 0;

    bool operator==(const HostLink&) const = default;
};

/// Check that all prices are finite and not negative, and f of LogfP at least 1. The message says
/// which is not.
Status check(const NetworkModel& network);
Status check(const Compute& compute);
Status check(const Memory& memory);
Status check(const HostLink& link);

} // namespace ucg::sim
