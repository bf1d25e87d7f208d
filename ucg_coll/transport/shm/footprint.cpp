// How large the parts of a group on one host are, and what they take in all.
#include "ucg_coll/transport/shm/footprint.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "shm/bootstrap.hpp"

namespace ucg::transport {
namespace {

constexpr std::uint32_t kDepthMin = 4;
constexpr std::uint64_t kBuffersMax = 1 << 16;

/// Returns the bytes of the page tables of a process that touches all of so many bytes side by
/// side: one more than the bytes fill, and one table of these tables.
std::uint64_t table_bytes(std::uint64_t bytes) {
    const std::uint64_t page = shm::page_bytes();
    const std::uint64_t mapped_by_table = page / sizeof(std::uint64_t) * page;
    return (bytes / mapped_by_table + 2) * page;
}

} // namespace

shm::RingShape ring_shape(std::uint32_t rank_count, const ShmOptions& options) {
    UCG_ASSERT(std::has_single_bit(options.depth) && options.depth >= 2 &&
               options.depth < shm::CooperativeCopy::kSequences);
    const std::uint64_t rings = std::uint64_t{rank_count} * (rank_count - 1);
    const std::uint64_t least = round_up(options.slot_bytes_min, kCacheLine);
    const std::uint64_t most = std::max(least, round_up(options.slot_bytes_max, kCacheLine));
    std::uint32_t depth = options.depth;
    std::uint64_t room = most;
    if (rings > 0) {
        const std::uint64_t ring =
            std::max(options.host_bytes_max / rings, shm::RingShape::head_bytes());
        const auto room_per_slot = [&](std::uint32_t slots) {
            const std::uint64_t slot = (ring - shm::RingShape::head_bytes()) / slots;
            const std::uint64_t buffers =
                slot - std::min(slot, std::uint64_t{sizeof(shm::RingSlot)});
            return buffers > shm::kPageBytes + shm::kShortBytes
                       ? buffers - shm::kShortBytes
                       : std::min(buffers, shm::kPageBytes);
        };
        while (room_per_slot(depth) < least && depth > kDepthMin) {
            depth /= 2;
        }
        room = room_per_slot(depth);
    }
    const std::uint64_t slot_bytes = std::clamp(room / kCacheLine * kCacheLine, least, most);
    shm::RingShape shape = {depth, static_cast<std::uint32_t>(slot_bytes)};
    const std::uint64_t others = shape.lines_bytes() + depth * shape.short_bytes();
    const std::uint64_t ring = options.host_bytes_max / std::max<std::uint64_t>(rings, 1);
    const std::uint64_t all = std::min(options.ring_bytes, ring - std::min(ring, others));
    shape.buffers = static_cast<std::uint32_t>(
        std::bit_floor(std::clamp<std::uint64_t>(all / slot_bytes, depth, kBuffersMax)));
    return shape;
}

SingleCopyLimits limits_of(const ShmOptions& options, std::uint64_t far_bytes) {
    CopyLengths slow_bytes = std::max<std::uint64_t>(options.ring_bytes, 1);
    if (options.own_processors) {
        slow_bytes[MessageUse::exchanged] = options.cooperative_copy_bytes_min;
    }
    return {.mapped_bytes = options.mapped_copy_bytes_min,
            .private_bytes = options.single_copy_bytes_min,
            .slow_bytes = slow_bytes,
            .far_bytes = far_bytes,
            .near_ns = options.near_ns,
            .cooperative_bytes = options.cooperative_copy_bytes_min};
}

shm::FlagSlotShape flag_slot_shape(std::uint32_t rank_count, const ShmOptions& options) {
    constexpr std::uint64_t kPartOfHost = 8;
    // At least 2, since a rank may say late with which sequence numbers it is done: PROTOCOL.md.
    UCG_ASSERT(std::has_single_bit(options.flag_slot_depth) && options.flag_slot_depth >= 2);
    const std::uint64_t all = options.host_bytes_max / kPartOfHost;
    const std::uint64_t flag_slot =
        (all - std::min<std::uint64_t>(all, sizeof(shm::FlagSlotSleepers))) / rank_count;
    const auto room_per_share = [&](std::uint32_t depth) {
        const std::uint64_t lines =
            sizeof(shm::FlagSlotHead) + depth * std::uint64_t{sizeof(shm::FlagSlot)};
        return (flag_slot - std::min(flag_slot, lines)) / depth;
    };
    const std::uint64_t most =
        std::max(kCacheLine, round_up(options.flag_slot_bytes_max, kCacheLine));
    std::uint32_t depth = options.flag_slot_depth;
    while (depth > kFlagSlotDepth && room_per_share(depth) < most) {
        depth /= 2;
    }
    const std::uint64_t slot_bytes =
        std::clamp(room_per_share(depth) / kCacheLine * kCacheLine, kCacheLine, most);
    return {rank_count, depth, static_cast<std::uint32_t>(slot_bytes)};
}

std::uint64_t staging_bytes(std::uint32_t rank_count, const ShmOptions& options) {
    constexpr std::uint32_t kRanks = 32;
    if (rank_count <= kRanks) {
        return options.staging_bytes;
    }
    return round_up(options.staging_bytes * kRanks / rank_count, shm::page_bytes());
}

RegionLayout region_layout(std::uint32_t rank_count, const ShmOptions& options) {
    return {ring_shape(rank_count, options), flag_slot_shape(rank_count, options),
            options.outstanding_max, options.rings_at_first};
}

ShmFootprint footprint(std::uint32_t rank_count, const ShmOptions& options) {
    const RegionLayout layout = region_layout(rank_count, options);
    const std::uint64_t lines = round_up(layout.lines_bytes(0), shm::page_bytes());
    const std::uint64_t others = round_up(layout.lines_bytes(1), shm::page_bytes());
    const auto mates = std::vector<shm::HeapWish>(rank_count);
    const shm::CommonLayout segment(mates);
    const shm::RingShape shape = ring_shape(rank_count, options);
    const std::uint64_t pairs = std::uint64_t{rank_count} * (rank_count - 1);
    const std::uint64_t later = layout.all_at_first() ? 0 : shape.lines_bytes();
    return {.bytes_at_first = lines,
            .bytes_at_most = round_up(layout.close_bytes(0), shm::page_bytes()) +
                             round_up(layout.pairs_bytes(), shm::page_bytes()) +
                             round_up(staging_bytes(rank_count, options), shm::page_bytes()),
            .host_bytes = segment.bells_bytes() + lines + (rank_count - 1) * others,
            // The lines of all flag slots are in the first rank's part.
            .host_table_bytes = rank_count * (table_bytes(segment.close(rank_count)) +
                                              table_bytes(layout.lines_bytes(0))),
            .pairs_bytes = pairs * (later + std::min(shm::page_bytes(), shape.buffers_bytes())),
            .pairs_table_bytes = rank_count * table_bytes(rank_count * segment.near_bytes())};
}

} // namespace ucg::transport
