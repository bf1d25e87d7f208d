#include "ucg_coll/capi/wireup/peers.hpp"

namespace ucg::capi {

Status Peers::allgather_bytes(const void* mine, void* all, std::size_t bytes) {
    if (params_.oob_allgather(params_.oob_arg, mine, all, bytes) == 0) {
        return {};
    }
    interrupted_ = true;
    return failure(Code::io_error,
                   "rank {}: the caller's allgather failed while a group of {} ranks was made",
                   rank_, params_.size);
}

Status Peers::allgather_texts(std::string mine, std::uint64_t width, std::string& all) {
    mine.resize(width);
    all.resize(width * params_.size);
    return allgather_bytes(mine.data(), all.data(), width);
}

} // namespace ucg::capi
