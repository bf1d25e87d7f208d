#include "ucg_coll/capi/wireup/peers.hpp"

namespace ucg::capi {

Status Peers::outcome(bool succeeded) {
    if (succeeded) {
        return {};
    }
    interrupted_ = true;
    return failure(Code::io_error,
                   "rank {}: the caller's allgather failed while a group of {} ranks was made",
                   rank_, params_.size);
}

Peers::Ended Peers::allgather(Gathered<std::string, std::string>& memory, std::uint64_t width) {
    memory.mine.resize(width);
    memory.all.resize(width * params_.size);
    return {*this, {memory.mine.data(), memory.all.data(), width, &memory.under_way}};
}

} // namespace ucg::capi
