#include "ucg_coll/transport/shm/flag_slot_room.hpp"

namespace ucg::transport {

bool FlagSlotRoom::prepare(const FlagSlotSequence& sequence, std::uint64_t bytes) {
    has_backed_ = true; // It may give pages to a part of the buffer even if it fails.
    const bool has_pages =
        writer_.prepare(sequence.sequence, bytes, [this](std::byte* data, std::uint64_t length) {
            return heap_->back(data, length).ok();
        });
    if (!has_pages) {
        lose(shm::Loss::memory);
    }
    return has_pages;
}

bool FlagSlotRoom::contradicts(const FlagSlotSequence& sequence, std::uint32_t index,
                               std::uint64_t bytes) const {
    const shm::FlagSlot& slot = lines_.slot(sequence.sequence, index);
    const std::uint64_t own = stamp_of(sequence);
    bool found = slot.holds(sequence.sequence) && !fits(slot, own, bytes);
    each_stamp(index, [&](std::uint64_t stamp) { found = found || contradict(stamp, own); });
    return found;
}

} // namespace ucg::transport
