#include "ucg_coll/transport/shm/board_room.hpp"

namespace ucg::transport {

bool BoardRoom::contradicts(const BoardTurn& turn, std::uint32_t index, std::uint64_t bytes) const {
    const shm::BoardReader& reader = peers_[index].reader;
    const std::uint64_t own = stamp_of(turn);
    bool found = reader.holds(turn.turn) && !fits(reader, turn, bytes);
    each_stamp(index, [&](std::uint64_t stamp) { found = found || contradict(stamp, own); });
    return found;
}

} // namespace ucg::transport
