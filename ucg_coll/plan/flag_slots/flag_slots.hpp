// What the algorithms have in common in which each rank writes to its flag slot and its peers read
// it. A rank writes once and looks at the flag slot of each peer, where messages would cost a send
// and a receive for each peer. Li, Hoefler, Snir (HPDC 2013), section 2.6, pad the flags of a
// barrier in the same way; here a line carries data as well as the flag.
//
// The rows that use flag slots serve groups of one host; the pieces (pieces.hpp) serve the ranks of
// each host. Both take data that is short enough for a flag slot and whose length the writer and
// its readers know: a reader does not notice that the writer gave another length, as a receiver of
// messages does.
#pragma once

#include <array>

#include "ucg_coll/plan/flag_slots/rows.hpp"
#include "ucg_coll/plan/parts/needs.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {

/// Returns whether the ranks have flag slots for their host that hold `bytes`.
inline bool flag_slots_take(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.flag_slot_bytes >= std::max<std::uint64_t>(bytes, 1);
}
inline constexpr Need kFlagSlots = {
    "several ranks that have flag slots",
    [](const Facts& facts, const graph::Request&) { return facts.shared.flag_slot_bytes > 0; }};
inline constexpr std::string_view kTaken = "parts that a flag slot takes";
/// Returns whether a flag slot holds `bytes`. True where there are no flag slots, which is what
/// kFlagSlots is for.
inline bool flag_slot_takes(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.flag_slot_bytes == 0 || bytes <= facts.shared.flag_slot_bytes;
}
/// The need that a flag slot holds the vector.
inline constexpr Need kVectorTaken = {kTaken,
                                      [](const Facts& facts, const graph::Request& request) {
                                          return flag_slot_takes(facts, request.bytes);
                                      }};
/// The blocks that a rank shares of which each other rank reads one: all but its own if that is the
/// first or the last one, so that the others lie in one piece; else all.
struct SharedBlocks {
    Rank first = 0;
    Rank count = 0;
};
SharedBlocks shared_blocks(Rank rank, Rank count);
/// Returns the most blocks that any of `count` ranks shares so.
inline Rank shared_blocks_max(Rank count) {
    return count == 2 ? 1 : count;
}

/// The need that a flag slot holds a block for each rank that another one reads.
inline constexpr Need kBlocksTaken = {
    kTaken, [](const Facts& facts, const graph::Request& request) {
        const auto count = static_cast<std::uint64_t>(shared_blocks_max(request.rank_count));
        return facts.shared.flag_slot_bytes == 0 ||
               request.bytes <= facts.shared.flag_slot_bytes / count;
    }};
inline constexpr std::array kVectorNeeds = {kOneHost, kFlagSlots, kVectorTaken};
inline constexpr std::array kBlocksNeeds = {kOneHost, kFlagSlots, kBlocksTaken};

/// How a rank uses flag slots in a collective.
struct FlagSlotUse {
    Rank flag_slots = 0;            ///< How many flag slots the rank reads.
    Rank readers = 0;               ///< How many ranks read a flag slot at a time.
    std::uint64_t shared_bytes = 0; ///< Bytes that a rank shares on its flag slot.
    std::uint64_t read_bytes = 0;   ///< Bytes that it reads of each flag slot.
    bool prefix = false;            ///< Whether each rank reads only those of the ranks before it.
    Rank root = kNoRank; ///< The rank that reads alone; kNoRank if all do, or a host's leader.
};

/// Returns the time from the first share until the last rank has read. A reader knows where to
/// look, and so neither matches nor takes a message.
double flag_slots_ns(const Facts& facts, const FlagSlotUse& use);
/// Returns how long this keeps a processor busy for one rank that shares and reads.
double flag_slots_work_ns(const Facts& facts, const Work& work, const FlagSlotUse& use);
/// Returns the time until the last rank is done, where all ranks share and read alike and each
/// combines for `combine_ns`. It is made of flag_slots_ns(), and of flag_slots_work_ns() where
/// ranks outnumber processors.
double all_flag_slots_ns(const Facts& facts, const FlagSlotUse& use, double combine_ns);

/// Returns the time to copy a block out of each of `count` - 1 flag slots to its place, and the
/// rank's own block while the others are on their way.
double landing_ns(const Facts& facts, Rank count, std::uint64_t block_bytes);

/// Returns what it adds to reading flag slots that they are combined where they lie. All `operands`
/// but one are flag slots.
double combining_flag_slots_ns(const Facts& facts, Rank operands, std::uint64_t bytes);

/// Returns the operands of ranks `first` .. `last` - 1 in rank order: `own` for the building rank,
/// and for each other rank as many bytes of its flag slot, from `offset` on.
std::vector<graph::Slice> in_rank_order(const graph::Builder& builder, Rank first, Rank last,
                                        std::uint64_t offset, graph::Slice own);

} // namespace ucg::plan
