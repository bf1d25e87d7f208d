#include "ucg_coll/capi/call.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "ucg_coll/engine/operators.hpp"

namespace ucg::capi {
namespace {

using engine::ElementType;
using graph::Collective;

// Index: ucg_datatype_t; numbers, 16-bit floats, complex numbers, pairs.
constexpr std::uint64_t kElementBytes[] = {0, 1, 2, 4,  8, 1, 2,  4, 8,  4,  8,
                                           2, 2, 8, 16, 8, 8, 16, 8, 16, 16, 16};
static_assert(std::size(kElementBytes) == UCG_DT_LAST);
static_assert(static_cast<int>(ElementType::float64_int64) == UCG_DT_FLOAT64_INT64 - 1);
static_assert(static_cast<int>(Collective::exscan) == UCG_COLL_EXSCAN);
static_assert(static_cast<int>(Collective::alltoallv) == UCG_COLL_ALLTOALLV);
static_assert(static_cast<int>(Collective::neighbor_alltoallv) == UCG_COLL_NEIGHBOR_ALLTOALLV);

/// Returns the library's own operator. REQUIRES: both are known, not UCG_OP_USER or UCG_DT_OPAQUE.
engine::CombineFn kernel_of(ucg_op_t op, ucg_datatype_t datatype) {
    static_assert(static_cast<int>(engine::OperatorKind::bxor) == UCG_OP_USER - 1);
    const int index = op < UCG_OP_USER ? op : op - 1; // The engine has no name for the caller's.
    return engine::find_operator(static_cast<engine::OperatorKind>(index),
                                 static_cast<ElementType>(datatype - 1));
}

bool ints_given(const ucg_coll_params_t& params) {
    return (params.field_mask & UCG_COLL_PARAM_FIELD_INT_VECTORS) != 0;
}

bool vectors_given(const ucg_coll_params_t& params) {
    return ints_given(params) || (params.field_mask & UCG_COLL_PARAM_FIELD_VECTORS) != 0;
}

/// One vector of a call, in whichever of the two widths. Null: not given.
struct GivenVector {
    const void* data;
    bool ints;

    /// Those of counts are not negative: check_blocks().
    std::int64_t operator[](Rank i) const {
        return ints ? static_cast<const int*>(data)[i] : static_cast<const std::int64_t*>(data)[i];
    }
};

/// Where the blocks of one side of a call are.
struct GivenBlocks {
    GivenVector counts;
    GivenVector displs;

    std::uint64_t count(Rank i) const { return static_cast<std::uint64_t>(counts[i]); }
};

GivenBlocks send_blocks(const ucg_coll_params_t& params) {
    if (ints_given(params)) {
        return {{params.int_send_counts, true}, {params.int_send_displs, true}};
    }
    return {{params.send_counts, false}, {params.send_displs, false}};
}

GivenBlocks receive_blocks(const ucg_coll_params_t& params, const VectorUse& use) {
    if (ints_given(params)) {
        return {{params.int_recv_counts, true},
                {use.offsets ? params.int_recv_displs : nullptr, true}};
    }
    return {{params.recv_counts, false}, {use.offsets ? params.recv_displs : nullptr, false}};
}

Status check_reduction(const ucg_coll_params_t& params) {
    if (!gives_reduction(params)) {
        return Status(Code::invalid_argument,
                      "a reducing collective needs datatype and op (UCG_COLL_PARAM_FIELD_REDUCE)");
    }
    if (params.op == UCG_OP_USER) {
        return params.reduce != nullptr
                   ? Status()
                   : Status(Code::invalid_argument, "op is UCG_OP_USER and reduce is NULL");
    }
    if (params.op >= UCG_OP_LAST || params.datatype >= UCG_DT_LAST) {
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
    return kernel_of(params.op, params.datatype) != nullptr
               ? Status()
               : failure(Code::unsupported, "op {} is not defined for datatype {}",
                         static_cast<int>(params.op), static_cast<int>(params.datatype));
}

/// Returns how many blocks a call has. REQUIRES: check_neighbors() has checked it.
BlockCounts block_counts(const ucg_coll_params_t& params, const VectorUse& use, Rank rank_count) {
    return use.neighbors ? BlockCounts{static_cast<Rank>(params.neighbors->destination_count),
                                       static_cast<Rank>(params.neighbors->source_count)}
                         : BlockCounts{rank_count, rank_count};
}

/// Returns the lowest displacement of a block that is not empty; 0 if there is none.
std::int64_t lowest_displacement(const GivenBlocks& given, Rank block_count) {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (Rank i = 0; given.displs.data != nullptr && i < block_count; ++i) {
        if (given.count(i) > 0) {
            lowest = std::min(lowest, given.displs[i]);
        }
    }
    return lowest == std::numeric_limits<std::int64_t>::max() ? 0 : lowest;
}

/// Nobody has a longer buffer.
constexpr std::uint64_t kBytesMax = std::numeric_limits<std::int64_t>::max();

/// Turns a number of elements into bytes. Returns false if that exceeds 64 bits.
template <typename Integer>
bool to_bytes(Integer elements, std::uint64_t element_bytes, Integer& bytes) {
    return !__builtin_mul_overflow(elements, element_bytes, &bytes);
}

/// Makes blocks from C's counts and displacements. Offsets are made non-negative by moving the base
/// to the lowest of them.
Status lay_out(const GivenBlocks& given, std::uint64_t element_bytes, Rank block_count,
               graph::Blocks& blocks) {
    const std::int64_t lowest = lowest_displacement(given, block_count);
    std::int64_t base = 0;
    bool fits = to_bytes(lowest, element_bytes, base);
    for (Rank i = 0; i < block_count && fits; ++i) {
        const std::uint64_t count = given.count(i);
        const std::uint64_t above =
            count == 0 || given.displs.data == nullptr
                ? 0
                : static_cast<std::uint64_t>(given.displs[i]) - static_cast<std::uint64_t>(lowest);
        fits = to_bytes(count, element_bytes, blocks.bytes.emplace_back()) &&
               blocks.bytes.back() <= kBytesMax &&
               to_bytes(above, element_bytes, blocks.offsets.emplace_back());
    }
    return fits ? Status()
                : failure(Code::invalid_argument,
                          "counts or displacements in elements of {} bytes exceed 2^63 bytes",
                          element_bytes);
}

/// Returns which vectors a call has on this rank; where they begin is not looked at.
VectorUse vector_use(const CallKey& key, Rank rank) {
    VectorUse use;
    switch (key.collective) {
    case Collective::alltoallv:
        use.send = !key.in_place;
        use.receive = true;
        break;
    case Collective::neighbor_alltoallv:
        use.send = true;
        use.receive = true;
        use.neighbors = true;
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

bool vectors_missing(const GivenBlocks& given, bool offsets) {
    return given.counts.data == nullptr || (offsets && given.displs.data == nullptr);
}

/// A count of 64 bits that is too large for a signed one is one that was negative: callers pass
/// MPI_Count and ptrdiff_t on.
bool negative_count(const GivenBlocks& given, Rank block_count) {
    for (Rank i = 0; i < block_count; ++i) {
        if (given.counts[i] < 0) {
            return true;
        }
    }
    return false;
}

Status check_blocks(const GivenBlocks& given, bool offsets, Collective collective,
                    Rank block_count) {
    if (block_count > 0 && vectors_missing(given, offsets)) {
        return failure(Code::invalid_argument, "{}: a vector of counts or displacements is NULL",
                       graph::name(collective));
    }
    if (negative_count(given, block_count)) {
        return failure(Code::invalid_argument, "{}: a count is negative", graph::name(collective));
    }
    return {};
}

Status check_ends(std::span<const int> ends, std::string_view what, Rank rank_count) {
    const auto wrong = std::find_if(ends.begin(), ends.end(),
                                    [&](int end) { return end < 0 || end >= rank_count; });
    return wrong == ends.end()
               ? Status()
               : failure(Code::invalid_argument,
                         "neighbor_alltoallv: {} {} is {}, not a rank of a group of {}", what,
                         wrong - ends.begin(), *wrong, rank_count);
}

Status check_neighbors(const ucg_coll_params_t& params, Rank rank_count) {
    if ((params.field_mask & UCG_COLL_PARAM_FIELD_NEIGHBORS) == 0 || params.neighbors == nullptr) {
        return Status(Code::invalid_argument,
                      "neighbor_alltoallv needs neighbors (UCG_COLL_PARAM_FIELD_NEIGHBORS)");
    }
    const ucg_neighbors_t& given = *params.neighbors;
    constexpr auto kMax = static_cast<std::uint32_t>(std::numeric_limits<Rank>::max());
    if (given.destination_count > kMax || given.source_count > kMax) {
        return failure(Code::invalid_argument,
                       "neighbor_alltoallv: {} destinations and {} sources, at most {} each",
                       given.destination_count, given.source_count, kMax);
    }
    if ((given.destination_count > 0 && given.destinations == nullptr) ||
        (given.source_count > 0 && given.sources == nullptr)) {
        return Status(Code::invalid_argument,
                      "neighbor_alltoallv: destinations or sources is NULL");
    }
    const Status status =
        check_ends({given.destinations, given.destination_count}, "destination", rank_count);
    return status.ok() ? check_ends({given.sources, given.source_count}, "source", rank_count)
                       : status;
}

Status check_vectors(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                     Rank rank_count) {
    const VectorUse use = vector_use(key, rank);
    if ((use.send || use.receive) && !vectors_given(params)) {
        return failure(Code::invalid_argument,
                       "{} needs counts and displacements (UCG_COLL_PARAM_FIELD_VECTORS)",
                       graph::name(key.collective));
    }
    Status status = use.neighbors ? check_neighbors(params, rank_count) : Status();
    const BlockCounts counts = status.ok() ? block_counts(params, use, rank_count) : BlockCounts{};
    if (status.ok() && use.send) {
        status = check_blocks(send_blocks(params), true, key.collective, counts.send);
    }
    if (status.ok() && use.receive) {
        status =
            check_blocks(receive_blocks(params, use), use.offsets, key.collective, counts.receive);
    }
    return status;
}

} // namespace

Result<CallKey> key_of(const ucg_coll_params_t& params, Rank rank, Rank rank_count) {
    if (params.type < 0 || params.type >= UCG_COLL_LAST) {
        return failure(Code::invalid_argument, "unknown collective {}{}",
                       static_cast<int>(params.type),
                       params.type == UCG_COLL_LAST // By ucg_short_params().
                           ? ", or a short form with a datatype that has no size"
                           : "");
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
    key.nonblocking = (params.flags & UCG_COLL_FLAG_NONBLOCKING) != 0;
    if (graph::reduces(key.collective)) {
        if (Status status = check_reduction(params); !status.ok()) {
            return status;
        }
        key.element_bytes = params.element_bytes;
        key.commutative = (params.flags & UCG_COLL_FLAG_NON_COMMUTATIVE) == 0;
        key.foreign_operator = params.op == UCG_OP_USER;
    }
    const bool counted = !graph::has_block_vectors(key.collective) ||
                         key.collective == Collective::gatherv ||
                         key.collective == Collective::scatterv;
    if (counted && key.collective != Collective::barrier &&
        (!to_bytes(params.count, params.element_bytes, key.bytes) || key.bytes > kBytesMax)) {
        return failure(Code::invalid_argument, "{} elements of {} bytes are more than 2^63 bytes",
                       params.count, params.element_bytes);
    }
    if (Status status = check_vectors(params, key, rank, rank_count); !status.ok()) {
        return status;
    }
    return key;
}

namespace {

/// Calls `visit(vector, bytes)` for each vector in use, in the order of ucg_coll_params_t, until it
/// returns false; then so does this.
template <typename Visit>
bool for_each_vector(const ucg_coll_params_t& params, const VectorUse& use,
                     const BlockCounts& counts, Visit&& visit) {
    const std::size_t width = ints_given(params) ? sizeof(int) : sizeof(std::int64_t);
    const auto sent = static_cast<std::size_t>(counts.send);
    const auto received = static_cast<std::size_t>(counts.receive);
    if (use.send) {
        const GivenBlocks send = send_blocks(params);
        if (!visit(send.counts.data, sent * width) || !visit(send.displs.data, sent * width)) {
            return false;
        }
    }
    if (use.receive) {
        const GivenBlocks receive = receive_blocks(params, use);
        if (!visit(receive.counts.data, received * width) ||
            (use.offsets && !visit(receive.displs.data, received * width))) {
            return false;
        }
    }
    return !use.neighbors || (visit(params.neighbors->destinations, sent * sizeof(int)) &&
                              visit(params.neighbors->sources, received * sizeof(int)));
}

/// Does a call have so many destinations and sources? The call may not have been checked.
bool same_degrees(const ucg_coll_params_t& params, const BlockCounts& counts) {
    const ucg_neighbors_t* given = params.neighbors;
    return given != nullptr &&
           given->destination_count == static_cast<std::uint32_t>(counts.send) &&
           given->source_count == static_cast<std::uint32_t>(counts.receive);
}

} // namespace

GivenVectors::GivenVectors(const ucg_coll_params_t& params, const VectorUse& use, Rank rank_count)
    : counts_(block_counts(params, use, rank_count)) {
    for_each_vector(params, use, counts_, [this](const void* given, std::size_t length) {
        const auto* bytes = static_cast<const std::byte*>(given);
        vectors_.insert(vectors_.end(), bytes, bytes + length);
        return true;
    });
}

bool GivenVectors::repeated_by(const ucg_coll_params_t& params, const VectorUse& use) const {
    if (use.neighbors && !same_degrees(params, counts_)) {
        return false;
    }
    const std::byte* kept = vectors_.data();
    return for_each_vector(params, use, counts_, [&kept](const void* given, std::size_t length) {
        const bool same =
            length == 0 || (given != nullptr && std::memcmp(kept, given, length) == 0);
        kept += length;
        return same;
    });
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
    request.nonblocking = key.nonblocking;
    request.foreign_operator = key.foreign_operator;
    const VectorUse use = vector_use(key, rank);
    const BlockCounts counts = block_counts(params, use, rank_count);
    Status status;
    if (use.send) {
        status = lay_out(send_blocks(params), params.element_bytes, counts.send, request.send);
    }
    if (status.ok() && use.receive) {
        status = lay_out(receive_blocks(params, use), params.element_bytes, counts.receive,
                         request.receive);
    }
    if (use.neighbors) {
        const ucg_neighbors_t& given = *params.neighbors;
        request.send.peers.assign(given.destinations, given.destinations + counts.send);
        request.receive.peers.assign(given.sources, given.sources + counts.receive);
    }
    if (!status.ok()) {
        return status;
    }
    status = graph::validate(request, rank);
    if (!status.ok()) {
        return status;
    }
    return request;
}

std::uint64_t bytes_of_others(const ucg_coll_params_t& params, Rank rank, Rank rank_count) {
    const GivenBlocks received = receive_blocks(params, {.receive = true});
    std::uint64_t count = 0;
    for (Rank i = 0; i < rank_count; ++i) {
        count += i == rank ? 0 : received.count(i);
    }
    return count * params.element_bytes;
}

std::vector<graph::EdgeRoom> edges_between_hosts(const ucg_coll_params_t& params, Rank rank,
                                                 const topo::Placement& placement) {
    const ucg_neighbors_t& ends = *params.neighbors;
    const GivenBlocks sent = send_blocks(params);
    const GivenBlocks received = receive_blocks(params, {.receive = true});
    std::vector<graph::EdgeRoom> edges;
    for (Rank i = 0; i < static_cast<Rank>(ends.destination_count); ++i) {
        if (!placement.same_host(rank, ends.destinations[i])) {
            edges.push_back({rank, ends.destinations[i], sent.count(i) * params.element_bytes});
        }
    }
    for (Rank i = 0; i < static_cast<Rank>(ends.source_count); ++i) {
        if (!placement.same_host(rank, ends.sources[i])) {
            edges.push_back({ends.sources[i], rank, received.count(i) * params.element_bytes});
        }
    }
    return edges;
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

/// Like combine_by_callback(), for a callback that can fail: what follows a failure is left out.
void combine_by_fallible_callback(void* context, const std::byte* const* operands,
                                  std::size_t operand_count, std::byte* target, std::size_t bytes) {
    auto& user = *static_cast<UserOperator*>(context);
    const std::size_t count = bytes / user.element_bytes;
    const std::byte* left = operands[0];
    user.status = UCG_OK;
    for (std::size_t i = 1; i < operand_count && user.status == UCG_OK; ++i) {
        user.status = user.fallible_reduce(user.argument, left, operands[i], target, count);
        left = target;
    }
}

/// Returns the engine's operator for the caller's operator of a call.
engine::CombineFn combine_of(const ucg_coll_params_t& params) {
    return is_fallible(params) ? combine_by_fallible_callback : combine_by_callback;
}

} // namespace

std::uint64_t datatype_bytes(ucg_datatype_t datatype) {
    const auto index = static_cast<std::size_t>(datatype);
    return index < std::size(kElementBytes) ? kElementBytes[index] : 0;
}

CallBinding binding_of(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                       Rank rank_count) {
    CallBinding binding;
    binding.vectors = vector_use(key, rank);
    const VectorUse& use = binding.vectors;
    const BlockCounts counts = block_counts(params, use, rank_count);
    const auto element = static_cast<std::int64_t>(params.element_bytes);
    if (use.send) {
        binding.input_offset = element * lowest_displacement(send_blocks(params), counts.send);
    }
    if (use.receive) {
        binding.output_offset =
            element * lowest_displacement(receive_blocks(params, use), counts.receive);
    }
    binding.input_received = key.collective == Collective::bcast;
    if (graph::reduces(key.collective)) {
        binding.user = params.op == UCG_OP_USER;
        binding.combine = binding.user ? combine_of(params) : kernel_of(params.op, params.datatype);
    }
    return binding;
}

} // namespace ucg::capi
