// What a simulation charges for: messages by a model of the network, computation by the byte,
// memory that ranks of a host read of one another by the memory model of a profile, and what the
// ranks of a host share on their way out.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/price/price.hpp"

namespace ucg::sim {

/// What a profile says of messages, by topo::Distance; it must outlive this.
class PerLevel {
  public:
    explicit PerLevel(const cost::Profile& profile, const price::Surroundings& around = {});

    const price::Messages& at(topo::Distance distance) const {
        return levels_[static_cast<std::size_t>(distance)];
    }

  private:
    std::vector<price::Messages> levels_;
};

/// All but the last see equal links between all ranks.
using Network = std::variant<cost::PipeliningPostal, cost::Postal, cost::LogP, cost::LogfP,
                             cost::LogGp, PerLevel>;

/// What a message of `bytes` between ranks at that distance does at its two ends.
cost::MessageTerms message_terms(const Network& network, topo::Distance distance,
                                 std::uint64_t bytes);

/// The same, with what a profile says of its copies; of the other models its terms alone. The
/// buffers that it is a part of, and that go through the caches with it, have `working_set_bytes`
/// in all; 0: it is no part.
price::MessagePrice message_price(const Network& network, topo::Distance distance,
                                  std::uint64_t bytes, price::Source source,
                                  std::uint64_t working_set_bytes);

/// A reduction of k operands of n bytes costs
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
/// With a profile, of bytes that lie in a working set of so many bytes.
double reduce_ns(const Compute& compute, unsigned operands, std::uint64_t bytes,
                 std::uint64_t touched_bytes);
inline double reduce_ns(const Compute& compute, unsigned operands, std::uint64_t bytes) {
    return reduce_ns(compute, operands, bytes, price::touched_by_reduction(operands, bytes));
}
/// What a reduction adds to a message from a rank at that distance that may be combined where it
/// arrives; its operand and target lie in a working set of so many bytes.
double combine_message_ns(const Network& network, const Compute& compute, topo::Distance distance,
                          std::uint64_t bytes, std::uint64_t touched_bytes);

/// With a profile, of bytes that lie in a working set of so many bytes.
double copy_ns(const Compute& compute, std::uint64_t bytes, std::uint64_t touched_bytes);
inline double copy_ns(const Compute& compute, std::uint64_t bytes) {
    return copy_ns(compute, bytes, price::touched_by_copy(bytes));
}
/// From or to the memory of another process, by the kernel; of models without one a copy.
double kernel_copy_ns(const Compute& compute, std::uint64_t bytes);

/// The papers' models have no price for copies. A profile must outlive the result.
Compute compute_of(const cost::Postal& model);
Compute compute_of(const cost::PipeliningPostal& model);
Compute compute_of(const cost::Profile& profile);

/// What ranks of one host pay for one another's memory, whatever the network.
struct Memory {
    cost::MemoryModel model = cost::default_memory_model();
    bool buffers_mapped =
        false; ///< Do peers reach published buffers? Else they are copied to staging buffers.
    bool one_pair = false; ///< There are no more than two ranks.

    bool operator==(const Memory&) const = default;
};
/// What ranks pay that have such surroundings.
inline Memory memory_of(const cost::Profile& profile, const price::Surroundings& around) {
    return {profile.memory, around.buffers_mapped, around.one_pair};
}
/// Making own bytes known to peers, which are a part of so many that do.
double publish_ns(const Memory& memory, std::uint64_t bytes, std::uint64_t working_set_bytes);
inline double publish_ns(const Memory& memory, std::uint64_t bytes) {
    return publish_ns(memory, bytes, price::touched_by_copy(bytes));
}
/// Bytes of a peer's at that distance take a + b m of their reader, and B m of the way on which
/// others read. REQUIRES: distance != Distance::network.
struct Reads {
    double latency_ns = 0;
    double alone_ns = 0;
    double way_ns = 0;
};
Reads reads_of(const Memory& memory, topo::Distance distance, std::uint64_t bytes);
/// max(a + b m, a + B d m), while `readers` ranks read by the same way, this one among them.
double read_ns(const Memory& memory, topo::Distance distance, std::uint64_t readers,
               std::uint64_t bytes);

/// What flag slots cost, as the planner has it (plan/flag_slots.cpp): a share is issued once, as an
/// empty message is, whoever reads it, and is there for each reader as late as that message; who
/// has waited knows where to look and takes in each flag slot's lines by the memory model.
struct FlagSlotTerms {
    double issue_ns = 0;  ///< Of who shares; its copy of the bytes comes on top.
    double flight_ns = 0; ///< From then on, until a reader may have it.
};
FlagSlotTerms flag_slot_terms(const Network& network, topo::Distance distance);
/// The copy to the own flag slot.
double flag_slot_copy_ns(const Memory& memory, std::uint64_t bytes);
/// A reduction of `operands`, all but one of them flag slots, at that distance at most, that have
/// been taken in.
double combine_flag_slots_ns(const Compute& compute, const Memory& memory, topo::Distance distance,
                             unsigned operands, std::uint64_t bytes);
/// The lines of one flag slot of which `bytes` are read; `readers` ranks look at it.
double flag_slot_lines_ns(const Memory& memory, topo::Distance distance, std::uint64_t readers,
                          std::uint64_t bytes);

/// The link of each host, which carries one message at a time in each direction: what a message
/// keeps it. A message alone on its way passes while it is being sent, so a link that is no slower
/// than the sender adds nothing.
struct HostLink {
    double per_message_ns = 0;
    double per_byte_ns = 0;

    bool operator==(const HostLink&) const = default;
};

/// Are all prices finite and not negative, and f of LogfP at least 1? The message names which not.
Status check(const Network& network);
Status check(const Compute& compute);
Status check(const Memory& memory);
Status check(const HostLink& link);

} // namespace ucg::sim
