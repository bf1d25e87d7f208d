#include "ucg_coll/capi/wireup/shm_offer.hpp"

#include <algorithm>
#include <bit>

#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

bool all_made(const std::vector<ShmEnd>& ends) {
    return std::all_of(ends.begin(), ends.end(), [](ShmEnd end) { return end == ShmEnd::made; });
}

ShmOffer offer_of(const shm::Heap& heap, const transport::ShmTransport& made) {
    ShmOffer offer;
    offer.address = made.address();
    offer.end = ShmEnd::made;
    offer.serves_malloc = heap.serves_malloc() ? 1 : 0;
    return offer;
}

std::uint64_t digest(const transport::ShmOptions& options) {
    return Hash()
        .value(options.depth)
        .value(options.slot_bytes_max)
        .value(options.slot_bytes_min)
        .value(options.ring_bytes)
        .value(options.host_bytes_max)
        .value(options.rings_at_first)
        .value(options.single_copy_bytes_min[MessageUse::exchanged])
        .value(options.single_copy_bytes_min[MessageUse::exchanged_combined])
        .value(options.single_copy_bytes_min[MessageUse::one_way])
        .value(options.single_copy_bytes_min[MessageUse::combined])
        .value(options.far_copy_bytes_min)
        .value(std::bit_cast<std::uint64_t>(options.page_lookups.per_byte_ns))
        .value(options.page_lookups.serial_bytes_min)
        .value(options.near_ns)
        .value(options.mapped_copy_bytes_min)
        .value(options.cooperative_copy_bytes_min)
        .value(std::uint32_t{options.own_processors})
        .value(options.cache_bytes)
        .value(options.outstanding_max)
        .value(options.staging_bytes)
        .value(options.flag_slot_depth)
        .value(options.flag_slot_bytes_max)
        .digest();
}

} // namespace ucg::capi
