// What the algorithms share in which each rank writes a flag slot that its peers read: one write
// and, for each peer, a look, where messages cost a send and a receive for each. Li, Hoefler, Snir
// (HPDC 2013), section 2.6, pad the flags of a barrier so; here a line carries data and flag.
//
// Rows by flag slots serve groups of one host, the pieces (pieces.hpp) the ranks of each host, and
// what is short enough for a flag slot, where all ranks know all lengths: a reader does not see
// that the writer gave another one, as messages do.
#pragma once

#include <array>

#include "ucg_coll/plan/flag_slots/rows.hpp"
#include "ucg_coll/plan/parts/needs.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {

/// Have ranks flag slots for their host, which take so many bytes?
inline bool flag_slots_take(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.flag_slot_bytes >= std::max<std::uint64_t>(bytes, 1);
}
inline constexpr Need kFlagSlots = {
    "several ranks that have flag slots",
    [](const Facts& facts, const graph::Request&) { return facts.shared.flag_slot_bytes > 0; }};
inline constexpr std::string_view kTaken = "parts that a flag slot takes";
/// Does a flag slot take that, if there are flag slots?
inline bool flag_slot_takes(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.flag_slot_bytes == 0 || bytes <= facts.shared.flag_slot_bytes;
}
/// That a flag slot takes the vector,
inline constexpr Need kVectorTaken = {kTaken,
                                      [](const Facts& facts, const graph::Request& request) {
                                          return flag_slot_takes(facts, request.bytes);
                                      }};
/// or a block for each rank.
inline constexpr Need kBlocksTaken = {
    kTaken, [](const Facts& facts, const graph::Request& request) {
        const auto count = static_cast<std::uint64_t>(request.rank_count);
        return facts.shared.flag_slot_bytes == 0 ||
               request.bytes <= facts.shared.flag_slot_bytes / count;
    }};
inline constexpr std::array kVectorNeeds = {kOneHost, kFlagSlots, kVectorTaken};
inline constexpr std::array kBlocksNeeds = {kOneHost, kFlagSlots, kBlocksTaken};

/// What a rank does with flag slots.
struct FlagSlotUse {
    Rank flag_slots = 0;            ///< How many it reads.
    Rank readers = 0;               ///< How many ranks read at a time.
    std::uint64_t shared_bytes = 0; ///< On a flag slot.
    std::uint64_t read_bytes = 0;   ///< Of each flag slot.
    bool prefix = false;            ///< Each rank reads those of the ranks before it.
};

/// From the first share to the end of the last rank's reading. Who reads knows where to look, and
/// matches and takes no message.
double flag_slots_ns(const Facts& facts, const FlagSlotUse& use);
/// What a processor does of it for one rank that shares and reads.
double flag_slots_work_ns(const Facts& facts, const Work& work, const FlagSlotUse& use);
/// Both, where all ranks share and read alike and combine for `combine_ns` each, as the time of
/// the last.
double all_flag_slots_ns(const Facts& facts, const FlagSlotUse& use, double combine_ns);

/// Copying a block of each flag slot to its place, and the own one while others are on their way.
double landing_ns(const Facts& facts, Rank count, std::uint64_t block_bytes);

/// What combining the flag slots of all but one of the operands, where they lie, adds to reading
/// them.
double combining_flag_slots_ns(const Facts& facts, Rank operands, std::uint64_t bytes);

/// The same bytes of all flag slots in the order of ranks `first` .. `last` - 1, `own` in the place
/// of the rank's own.
std::vector<graph::Slice> in_rank_order(const graph::Builder& builder, Rank first, Rank last,
                                        std::uint64_t offset, graph::Slice own);

} // namespace ucg::plan
