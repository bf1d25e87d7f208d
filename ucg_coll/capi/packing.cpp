#include "ucg_coll/capi/packing.hpp"

#include <algorithm>
#include <utility>

#include "ucg_coll/capi/call.hpp"

namespace ucg::capi {
namespace {

/// How many bytes the caller's functions get at a time: these should stay in cache.
constexpr std::uint64_t kPieceBytes = 64 << 10;

Status check_layout(const ucg_layout_t* layout) {
    return layout == nullptr || (layout->pack != nullptr && layout->unpack != nullptr)
               ? Status()
               : Status(Code::invalid_argument, "a layout needs pack and unpack");
}

Status check_layouts(const ucg_coll_params_t& params) {
    if (params.element_bytes == 0) {
        return Status(Code::invalid_argument,
                      "a call with layouts needs element_bytes, of a packed element");
    }
    const Status status = check_layout(params.send_layout);
    return status.ok() ? check_layout(params.recv_layout) : status;
}

/// Copies a call without its vectors and layouts. What the caller's mask does not name may not be
/// there: the structure of an earlier header is shorter.
ucg_coll_params_t without_blocks(const ucg_coll_params_t& given) {
    const auto has = [&](std::uint64_t field) { return (given.field_mask & field) != 0; };
    ucg_coll_params_t copy = {};
    copy.field_mask =
        given.field_mask & (UCG_COLL_PARAM_FIELD_REDUCE | UCG_COLL_PARAM_FIELD_NEIGHBORS);
    copy.type = given.type;
    copy.flags = given.flags;
    copy.root = given.root;
    copy.send_buffer = given.send_buffer;
    copy.recv_buffer = given.recv_buffer;
    copy.count = given.count;
    copy.element_bytes = given.element_bytes;
    if (has(UCG_COLL_PARAM_FIELD_REDUCE)) {
        copy.datatype = given.datatype;
        copy.op = given.op;
        copy.reduce = given.reduce;
        copy.reduce_arg = given.reduce_arg;
    }
    if (has(UCG_COLL_PARAM_FIELD_NEIGHBORS)) {
        copy.neighbors = given.neighbors;
    }
    return copy;
}

} // namespace

Result<std::unique_ptr<Packing>> Packing::make(const ucg_coll_params_t& params, Rank rank,
                                               Rank rank_count) {
    if (Status status = check_layouts(params); !status.ok()) {
        return status;
    }
    const Result<CallKey> key = key_of(params, rank, rank_count);
    if (!key.ok()) {
        return key.status();
    }
    const Result<graph::Request> request = request_of(params, *key, rank, rank_count);
    if (!request.ok()) {
        return request.status();
    }
    const CallBinding binding = binding_of(params, *key, rank, rank_count);
    std::unique_ptr<Packing> packing(new Packing);
    packing->call_ = without_blocks(params);
    packing->element_bytes_ = static_cast<std::int64_t>(params.element_bytes);
    packing->in_place_ = key->in_place;
    packing->receives_ = key->collective != graph::Collective::exscan || rank > 0;
    packing->input_received_ = binding.input_received;
    const auto keep = [](const ucg_layout_t* given, ucg_layout_t& kept) {
        kept = given != nullptr ? *given : ucg_layout_t{};
        return given != nullptr ? &kept : nullptr;
    };
    const ucg_layout_t* const of_send = keep(params.send_layout, packing->layouts_[0]);
    packing->output_.layout = keep(params.recv_layout, packing->layouts_[1]);
    packing->input_.layout = binding.input_received ? packing->output_.layout : of_send;
    const graph::BufferSizes sizes = graph::buffer_sizes(*request, rank);
    if (binding.vectors.send) {
        packing->lay_out(packing->input_, request->send.bytes, request->send.offsets,
                         binding.input_offset);
    } else {
        packing->add_whole(packing->input_, sizes.input);
    }
    if (binding.vectors.receive && binding.vectors.offsets) {
        packing->lay_out(packing->output_, request->receive.bytes, request->receive.offsets,
                         binding.output_offset);
    } else {
        packing->add_whole(packing->output_, sizes.output);
        for (const std::uint64_t bytes : request->receive.bytes) {
            packing->output_.counts.push_back(bytes / params.element_bytes);
        }
    }
    packing->contributed_ = packing->contributed(*request, rank);
    packing->set_vectors();
    packing->take_memory();
    packing->rebind(params.send_buffer, params.recv_buffer);
    return packing;
}

/// Lays out blocks that have places of their own in the caller's memory, and are end to end where
/// they are packed. `lowest`: where the offsets begin, in bytes of packed elements from the
/// caller's buffer.
void Packing::lay_out(Side& side, const std::vector<std::uint64_t>& bytes,
                      const std::vector<std::uint64_t>& offsets, std::int64_t lowest) const {
    std::uint64_t packed = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::int64_t displacement =
            (static_cast<std::int64_t>(offsets[i]) + lowest) / element_bytes_;
        if (side.layout != nullptr) {
            side.blocks.push_back({displacement * side.layout->extent, packed, bytes[i]});
        }
        side.counts.push_back(bytes[i] / static_cast<std::uint64_t>(element_bytes_));
        side.displs.push_back(side.layout != nullptr
                                  ? static_cast<std::int64_t>(packed) / element_bytes_
                                  : displacement);
        packed += bytes[i];
    }
}

/// Peers' blocks are none of this rank's contribution: the program need not have written them.
Packing::Range Packing::contributed(const graph::Request& request, Rank rank) const {
    const auto own = static_cast<std::size_t>(rank);
    switch (request.collective) {
    case graph::Collective::allgather:
    case graph::Collective::gather: return {own * request.bytes, (own + 1) * request.bytes};
    case graph::Collective::allgatherv:
    case graph::Collective::gatherv:
        return own < output_.blocks.size()
                   ? Range{output_.blocks[own].packed,
                           output_.blocks[own].packed + output_.blocks[own].bytes}
                   : Range();
    default: return {};
    }
}

void Packing::add_whole(Side& side, std::uint64_t bytes) const {
    if (side.layout != nullptr) {
        side.blocks.push_back({0, 0, bytes});
    }
}

/// Gives the call one kind of vectors, whichever the caller gave.
void Packing::set_vectors() {
    call_.field_mask |= UCG_COLL_PARAM_FIELD_VECTORS;
    call_.send_counts = input_.counts.data();
    call_.send_displs = input_.displs.data();
    call_.recv_counts = output_.counts.data();
    call_.recv_displs = output_.displs.data();
}

void Packing::take_memory() {
    for (Side* side : {&input_, &output_}) {
        std::uint64_t bytes = 0;
        for (const Block& block : side->blocks) {
            bytes += block.bytes;
        }
        side->memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    }
}

void Packing::rebind(const void* send, void* receive) {
    user_input_ = static_cast<const std::byte*>(input_received_ ? receive : send);
    user_output_ = static_cast<std::byte*>(receive);
    call_.send_buffer = input_.layout != nullptr ? input_.memory.get() : send;
    call_.recv_buffer = output_.layout != nullptr ? output_.memory.get() : receive;
    if (input_received_ && input_.layout != nullptr && !input_.blocks.empty() &&
        input_.blocks.front().bytes > 0) {
        call_.recv_buffer = input_.memory.get();
    }
}

void Packing::load() {
    status_ = UCG_OK;
    loaded_ = true;
    pack(input_, user_input_, {}); // In place there may be an input, too: a scatter's root has one.
    if (in_place_) {
        pack(output_, user_output_, contributed_);
    }
}

ucg_status_t Packing::end(ucg_status_t outcome) {
    if (std::exchange(loaded_, false)) {
        status_ = outcome != UCG_OK ? outcome : status_;
        if (receives_) {
            unpack(output_, user_output_);
        }
    }
    return status_;
}

namespace {

/// Returns what a call ends with if a function of its layout returns `status`: an error is
/// negative, and nothing else but UCG_OK means anything.
ucg_status_t status_of_function(ucg_status_t status) {
    return status <= UCG_OK ? status : UCG_ERR_INTERNAL;
}

} // namespace

void Packing::pack(const Side& side, const std::byte* from, Range range) {
    for (const Block& block : side.blocks) {
        const std::uint64_t begin = std::max(range.begin, block.packed);
        const std::uint64_t end = std::min(range.end, block.packed + block.bytes);
        for (std::uint64_t at = begin; at < end && status_ == UCG_OK; at += kPieceBytes) {
            status_ = status_of_function(
                side.layout->pack(side.layout->layout_arg, from + block.place, at - block.packed,
                                  side.memory.get() + at, std::min(kPieceBytes, end - at)));
        }
    }
}

void Packing::unpack(const Side& side, std::byte* to) {
    for (const Block& block : side.blocks) {
        for (std::uint64_t at = 0; at < block.bytes && status_ == UCG_OK; at += kPieceBytes) {
            status_ = status_of_function(side.layout->unpack(
                side.layout->layout_arg, to + block.place, at,
                side.memory.get() + block.packed + at, std::min(kPieceBytes, block.bytes - at)));
        }
    }
}

} // namespace ucg::capi
