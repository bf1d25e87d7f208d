#include "ucg_coll/transport/shm/flag_slot_room.hpp"

namespace ucg::transport {

bool FlagSlotRoom::prepare(const FlagSlotTurn& turn, std::uint64_t bytes) {
    has_backed_ = true; // Some, even if not all.
    const bool has_pages =
        writer_.prepare(turn.turn, bytes, [this](std::byte* data, std::uint64_t length) {
            return heap_->back(data, length).ok();
        });
    if (!has_pages) {
        lose(shm::Loss::memory);
    }
    return has_pages;
}

bool FlagSlotRoom::contradicts(const FlagSlotTurn& turn, std::uint32_t index,
                               std::uint64_t bytes) const {
    const shm::FlagSlot& slot = lines_.slot(turn.turn, index);
    const std::uint64_t own = stamp_of(turn);
    bool found = slot.holds(turn.turn) && !fits(slot, own, bytes);
    each_stamp(index, [&](std::uint64_t stamp) { found = found || contradict(stamp, own); });
    return found;
}

} // namespace ucg::transport
