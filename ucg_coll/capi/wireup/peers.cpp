#include "ucg_coll/capi/wireup/peers.hpp"

#include <utility>

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

Result<std::vector<std::string>> Peers::allgather_texts(std::string mine,
                                                        const std::vector<std::uint64_t>& lengths) {
    const std::uint64_t width = *std::max_element(lengths.begin(), lengths.end());
    mine.resize(width);
    std::string all(width * params_.size, '\0');
    if (Status status = allgather_bytes(mine.data(), all.data(), width); !status.ok()) {
        return status;
    }
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        texts.push_back(all.substr(i * width, lengths[i]));
    }
    return texts;
}

} // namespace ucg::capi
