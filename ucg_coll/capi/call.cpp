#include "ucg_coll/capi/call.hpp"

#include <algorithm>
#include <limits>

#include "ucg_coll/engine/operators.hpp"

namespace ucg::capi {
namespace {

using engine::ElementType;
using graph::Collective;

constexpr std::uint64_t kElementBytes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8}; // By ucg_datatype_t.
static_assert(std::size(kElementBytes) == UCG_DT_LAST);
static_assert(static_cast<int>(Collective::exscan) == UCG_COLL_EXSCAN);
static_assert(static_cast<int>(Collective::alltoallv) == UCG_COLL_ALLTOALLV);

bool vectors_given(const ucg_coll_params_t& params) {
    return (params.field_mask & UCG_COLL_PARAM_FIELD_VECTORS) != 0;
}

Status check_reduction(const ucg_coll_params_t& params) {
    if ((params.field_mask & UCG_COLL_PARAM_FIELD_REDUCE) == 0) {
        return Status(Code::invalid_argument,
                      "a reducing collective needs datatype and op (UCG_COLL_PARAM_FIELD_REDUCE)");
    }
    if (params.op == UCG_OP_USER) {
        return params.reduce != nullptr
                   ? Status()
                   : Status(Code::invalid_argument, "op is UCG_OP_USER and reduce is NULL");
    }
    if (params.op > UCG_OP_USER || params.datatype >= UCG_DT_LAST) {
        return failure(Code::invalid_argument, "unknown op {} or datatype {}",
                       static_cast<int>(params.op), static_cast<int>(params.datatype));
    }
    if (params.datatype == UCG_DT_OPAQUE ||
        kElementBytes[params.datatype] != params.element_bytes) {
        return failure(Code::invalid_argument,
                       "element_bytes is {}, but the library's own operators need a datatype of "
                       "that size",
                       params.element_bytes);
    }
    return engine::find_operator(static_cast<engine::Operator>(params.op),
                                 static_cast<ElementType>(params.datatype - 1)) != nullptr
               ? Status()
               : failure(Code::unsupported, "op {} is not defined for datatype {}",
                         static_cast<int>(params.op), static_cast<int>(params.datatype));
}

/// Blocks from C's counts and displacements. Offsets are made non-negative by moving the base,
/// which `lowest` (in elements) tells.
graph::Blocks blocks_of(const std::uint64_t* counts, const std::int64_t* displs,
                        std::uint64_t element_bytes, std::int64_t lowest, Rank rank_count) {
    graph::Blocks blocks;
    for (Rank i = 0; i < rank_count; ++i) {
        const auto displacement =
            displs == nullptr ? 0 : static_cast<std::uint64_t>(displs[i] - lowest);
        blocks.bytes.push_back(checked_multiply(counts[i], element_bytes));
        blocks.offsets.push_back(counts[i] == 0 ? 0
                                                : checked_multiply(displacement, element_bytes));
    }
    return blocks;
}

/// The lowest displacement of a block that is not empty; 0 if there is none.
std::int64_t lowest_displacement(const std::uint64_t* counts, const std::int64_t* displs,
                                 Rank rank_count) {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (Rank i = 0; displs != nullptr && i < rank_count; ++i) {
        if (counts[i] > 0) {
            lowest = std::min(lowest, displs[i]);
        }
    }
    return lowest == std::numeric_limits<std::int64_t>::max() ? 0 : lowest;
}

/// Are these the blocks that blocks_of() makes? Products that wrap are of no known call's.
bool blocks_equal(const graph::Blocks& blocks, const std::uint64_t* counts,
                  const std::int64_t* displs, std::uint64_t element_bytes, std::int64_t lowest) {
    for (std::size_t i = 0; i < blocks.bytes.size(); ++i) {
        std::int64_t displacement = 0;
        std::uint64_t bytes = 0;
        std::uint64_t offset = 0;
        const bool placed = displs != nullptr && counts[i] != 0;
        if ((placed && __builtin_sub_overflow(displs[i], lowest, &displacement)) ||
            __builtin_mul_overflow(counts[i], element_bytes, &bytes) ||
            __builtin_mul_overflow(displacement, element_bytes, &offset) ||
            blocks.bytes[i] != bytes || blocks.offsets[i] != offset) {
            return false;
        }
    }
    return true;
}

/// Which vectors a call brings on this rank; where they begin is not looked at.
VectorUse vector_use(const CallKey& key, Rank rank) {
    VectorUse use;
    switch (key.collective) {
    case Collective::alltoallv:
        use.send = !key.in_place;
        use.receive = true;
        break;
    case Collective::allgatherv: use.receive = true; break;
    case Collective::gatherv: use.receive = rank == key.root; break;
    case Collective::scatterv: use.send = rank == key.root; break;
    case Collective::reduce_scatter:
        use.receive = true;
        use.offsets = false;
        break;
    default: break;
    }
    return use;
}

bool vectors_missing(const ucg_coll_params_t& params, const VectorUse& use) {
    return (use.send && (params.send_counts == nullptr || params.send_displs == nullptr)) ||
           (use.receive &&
            (params.recv_counts == nullptr || (use.offsets && params.recv_displs == nullptr)));
}

Status check_vectors(const ucg_coll_params_t& params, const CallKey& key, Rank rank) {
    const VectorUse use = vector_use(key, rank);
    if ((use.send || use.receive) && !vectors_given(params)) {
        return failure(Code::invalid_argument,
                       "{} needs counts and displacements (UCG_COLL_PARAM_FIELD_VECTORS)",
                       graph::name(key.collective));
    }
    if (vectors_missing(params, use)) {
        return failure(Code::invalid_argument, "{}: a vector of counts or displacements is NULL",
                       graph::name(key.collective));
    }
    return {};
}

} // namespace

Result<CallKey> key_of(const ucg_coll_params_t& params, Rank rank, Rank rank_count) {
    if (params.type < 0 || params.type >= UCG_COLL_LAST) {
        return failure(Code::invalid_argument, "unknown collective {}",
                       static_cast<int>(params.type));
    }
    CallKey key;
    key.collective = static_cast<Collective>(params.type);
    if (graph::rooted(key.collective)) {
        if (params.root >= static_cast<std::uint32_t>(rank_count)) {
            return failure(Code::invalid_argument, "root {} is not a rank of a group of {}",
                           params.root, rank_count);
        }
        key.root = static_cast<Rank>(params.root);
    }
    key.in_place = (params.flags & UCG_COLL_FLAG_IN_PLACE) != 0;
    if (graph::reduces(key.collective)) {
        if (Status status = check_reduction(params); !status.ok()) {
            return status;
        }
        key.element_bytes = static_cast<std::uint32_t>(params.element_bytes);
        key.commutative = (params.flags & UCG_COLL_FLAG_NON_COMMUTATIVE) == 0;
    }
    const bool counted = !graph::has_block_vectors(key.collective) ||
                         key.collective == Collective::gatherv ||
                         key.collective == Collective::scatterv;
    if (counted && key.collective != Collective::barrier &&
        __builtin_mul_overflow(params.count, params.element_bytes, &key.bytes)) {
        return failure(Code::invalid_argument, "{} elements of {} bytes are more than 2^64 bytes",
                       params.count, params.element_bytes);
    }
    if (Status status = check_vectors(params, key, rank); !status.ok()) {
        return status;
    }
    return key;
}

bool repeats(const ucg_coll_params_t& params, const CallBinding& binding,
             const graph::Request& request) {
    const VectorUse& use = binding.vectors;
    if ((binding.user && params.reduce == nullptr) || vectors_missing(params, use)) {
        return false;
    }
    return (!use.send || blocks_equal(request.send, params.send_counts, params.send_displs,
                                      params.element_bytes, use.lowest_send)) &&
           (!use.receive || blocks_equal(request.receive, params.recv_counts,
                                         use.offsets ? params.recv_displs : nullptr,
                                         params.element_bytes, use.lowest_receive));
}

Result<graph::Request> request_of(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                                  Rank rank_count) {
    graph::Request request;
    request.collective = key.collective;
    request.rank_count = rank_count;
    request.root = key.root;
    request.bytes = key.bytes;
    request.element_bytes = key.element_bytes;
    request.in_place = key.in_place;
    request.commutative = key.commutative;
    const VectorUse use = vector_use(key, rank);
    if (use.send) {
        request.send = blocks_of(
            params.send_counts, params.send_displs, params.element_bytes,
            lowest_displacement(params.send_counts, params.send_displs, rank_count), rank_count);
    }
    if (use.receive) {
        const std::int64_t* displs = use.offsets ? params.recv_displs : nullptr;
        request.receive =
            blocks_of(params.recv_counts, displs, params.element_bytes,
                      lowest_displacement(params.recv_counts, displs, rank_count), rank_count);
    }
    if (Status status = graph::validate(request, rank); !status.ok()) {
        return status;
    }
    return request;
}

namespace {

/// The engine's operator for a caller's callback: folds the operands from the left.
void combine_by_callback(void* context, const std::byte* const* operands, std::size_t operand_count,
                         std::byte* target, std::size_t bytes) {
    const auto& user = *static_cast<const UserOperator*>(context);
    const std::size_t count = bytes / user.element_bytes;
    user.reduce(user.argument, operands[0], operands[1], target, count);
    for (std::size_t i = 2; i < operand_count; ++i) {
        user.reduce(user.argument, target, operands[i], target, count);
    }
}

} // namespace

CallBinding binding_of(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                       Rank rank_count) {
    CallBinding binding;
    VectorUse& use = binding.vectors;
    use = vector_use(key, rank);
    const auto element = static_cast<std::int64_t>(params.element_bytes);
    if (use.send) {
        use.lowest_send = lowest_displacement(params.send_counts, params.send_displs, rank_count);
        binding.input_offset = element * use.lowest_send;
    }
    if (use.receive && use.offsets) {
        use.lowest_receive =
            lowest_displacement(params.recv_counts, params.recv_displs, rank_count);
        binding.output_offset = element * use.lowest_receive;
    }
    binding.input_received = key.collective == Collective::bcast;
    if (graph::reduces(key.collective)) {
        binding.user = params.op == UCG_OP_USER;
        binding.combine =
            binding.user ? combine_by_callback
                         : engine::find_operator(static_cast<engine::Operator>(params.op),
                                                 static_cast<ElementType>(params.datatype - 1));
    }
    return binding;
}

} // namespace ucg::capi
