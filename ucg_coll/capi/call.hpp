// A collective call as C gives it, turned into what the planner and the engine understand.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::capi {

/// A call as it was given, without its buffers and vectors: calls of one shape with equal vectors
/// have one plan and one operator. It is compared on every call, so it is a few words, and nothing
/// is worked out for it.
struct CallShape {
    std::uint64_t count = 0;
    std::uint64_t element_bytes = 0;
    // Each word is made of two fields that do not lie beside one another in the caller's structure.
    // The caller has just stored them; a compiler would read neighbours by one load, and no
    // processor forwards two stores to one load.
    std::uint64_t root_and_type = 0;
    std::uint64_t op_and_flags = 0;
    std::uint64_t fields_and_datatype = 0; ///< The bits of the field mask known here, the datatype.

    bool operator==(const CallShape& other) const {
        return ((count ^ other.count) | (element_bytes ^ other.element_bytes) |
                (root_and_type ^ other.root_and_type) | (op_and_flags ^ other.op_and_flags) |
                (fields_and_datatype ^ other.fields_and_datatype)) == 0;
    }

    /// Returns a hash for which an odd number multiplies the fields and spreads them, so that all
    /// show in its uppermost bits.
    std::uint64_t hash() const {
        const std::uint64_t mixed = count ^ element_bytes << 32U ^ std::rotl(root_and_type, 20) ^
                                    std::rotl(op_and_flags, 40) ^
                                    std::rotl(fields_and_datatype, 44);
        return mixed * 0x9e3779b97f4a7c15ULL;
    }
};

/// Has the caller set datatype and operator? If not, they may be anything, even uninitialised.
inline bool gives_reduction(const ucg_coll_params_t& params) {
    return (params.field_mask & UCG_COLL_PARAM_FIELD_REDUCE) != 0;
}

inline CallShape shape_of(const ucg_coll_params_t& params) {
    constexpr std::uint64_t kKnown = UCG_COLL_PARAM_FIELD_REDUCE | UCG_COLL_PARAM_FIELD_VECTORS |
                                     UCG_COLL_PARAM_FIELD_INT_VECTORS |
                                     UCG_COLL_PARAM_FIELD_NEIGHBORS;
    const auto word = [](std::uint64_t high, auto low) {
        return high << 32U | static_cast<std::uint32_t>(low);
    };
    CallShape shape = {.count = params.count,
                       .element_bytes = params.element_bytes,
                       .root_and_type = word(params.root, params.type),
                       .op_and_flags = params.flags,
                       .fields_and_datatype = (params.field_mask & kKnown) << 32U};
    if (gives_reduction(params)) {
        shape.op_and_flags = word(params.op, params.flags);
        shape.fields_and_datatype |= static_cast<std::uint32_t>(params.datatype);
    }
    return shape;
}

/// The fields of a call that make its shape.
struct GivenValues {
    std::uint64_t field_mask = 0;
    std::uint64_t count = 0;
    std::uint64_t element_bytes = 0;
    ucg_coll_type_t type = UCG_COLL_BARRIER;
    std::uint32_t flags = 0;
    std::uint32_t root = 0;
    ucg_datatype_t datatype = UCG_DT_OPAQUE;
    ucg_op_t op = UCG_OP_SUM;

    GivenValues() = default;
    explicit GivenValues(const ucg_coll_params_t& params)
        : field_mask(params.field_mask), count(params.count), element_bytes(params.element_bytes),
          type(params.type), flags(params.flags), root(params.root) {
        if (gives_reduction(params)) {
            datatype = params.datatype;
            op = params.op;
        }
    }

    /// Are the fields of that call equal? Then the two calls have one shape.
    bool same(const ucg_coll_params_t& params) const {
        return count == params.count && element_bytes == params.element_bytes &&
               type == params.type && root == params.root && flags == params.flags &&
               field_mask == params.field_mask &&
               (!gives_reduction(params) || (datatype == params.datatype && op == params.op));
    }
};

/// What identifies a plan, apart from vectors.
struct CallKey {
    std::uint64_t bytes = 0;
    std::uint64_t element_bytes = 1;
    Rank root = 0;
    graph::Collective collective = graph::Collective::barrier;
    bool in_place = false;
    bool commutative = true;
    bool nonblocking = false;
    bool foreign_operator = false;

    bool operator==(const CallKey&) const = default;

    std::uint64_t hash() const {
        std::uint64_t mixed = bytes * 0x9e3779b97f4a7c15ULL;
        mixed ^= std::rotl(element_bytes, 32) ^ static_cast<std::uint32_t>(root);
        mixed ^= static_cast<std::uint64_t>(collective) << 56;
        mixed ^= (std::uint64_t{in_place} << 55) ^ (std::uint64_t{commutative} << 54);
        mixed ^= (std::uint64_t{nonblocking} << 53) ^ (std::uint64_t{foreign_operator} << 52);
        return (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ULL;
    }
};

/// A caller's operator, bound to one running collective.
struct UserOperator {
    union {
        ucg_reduce_cb_t reduce = nullptr;
        ucg_fallible_reduce_cb_t fallible_reduce; ///< In use if is_fallible() of the call.
    };
    void* argument = nullptr;
    std::uint64_t element_bytes = 1;
    ucg_status_t status = UCG_OK; ///< What the latest call returned.
};

inline bool is_fallible(const ucg_coll_params_t& params) {
    return (params.flags & UCG_COLL_FLAG_FALLIBLE) != 0;
}

/// Returns the caller's operator of the collective that has this reduction; null if the operator is
/// the library's own.
inline const UserOperator* user_operator(const engine::Reduction& reduction) {
    return static_cast<const UserOperator*>(reduction.context);
}

/// Returns the key of a call. Fails with invalid_argument, naming the field, or with unsupported
/// (operator and datatype do not go together). REQUIRES nothing: it checks everything that a rank
/// can check alone.
Result<CallKey> key_of(const ucg_coll_params_t& params, Rank rank, Rank rank_count);

/// Returns the full request of a call. `key` is that of `params`.
Result<graph::Request> request_of(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                                  Rank rank_count);

/// Returns the size of an element of that type, in bytes; 0 for UCG_DT_OPAQUE and for what is no
/// datatype.
std::uint64_t datatype_bytes(ucg_datatype_t datatype);

/// Returns how many bytes an alltoallv brings this rank from other ranks. REQUIRES: key_of() has
/// checked the call.
std::uint64_t bytes_of_others(const ucg_coll_params_t& params, Rank rank, Rank rank_count);

/// Returns the edges of a neighbourhood collective that this rank has with ranks of other hosts, in
/// the order of the call, with the lengths of their blocks. REQUIRES: key_of() has checked the
/// call.
std::vector<graph::EdgeRoom> edges_between_hosts(const ucg_coll_params_t& params, Rank rank,
                                                 const topo::Placement& placement);

/// Which vectors a call has on one rank.
struct VectorUse {
    bool send = false;
    bool receive = false;
    bool offsets = true;    ///< Receive blocks have displacements.
    bool neighbors = false; ///< A block for each destination and source, instead of each rank.
};

/// How many blocks each side of a call has.
struct BlockCounts {
    Rank send = 0;
    Rank receive = 0;
};

/// How the buffers and the operator of a call are bound: the same for all calls of its shape with
/// equal vectors.
struct CallBinding {
    VectorUse vectors;
    std::int64_t input_offset = 0; ///< From the caller's buffer to the engine's, in bytes.
    std::int64_t output_offset = 0;
    bool input_received = false;         ///< The one buffer of the call is recv_buffer.
    bool user = false;                   ///< The operator is the caller's.
    engine::CombineFn combine = nullptr; ///< Null: the call does not reduce.

    /// Returns the binding for a call's buffers and operator. Copies the caller's operator, if
    /// there is one, to `operator_p`, which must outlive the collective.
    engine::Binding apply(const ucg_coll_params_t& params, UserOperator& operator_p) const {
        if (user) [[unlikely]] {
            if (is_fallible(params)) {
                operator_p.fallible_reduce = params.fallible_reduce;
            } else {
                operator_p.reduce = params.reduce;
            }
            operator_p.argument = params.reduce_arg;
            operator_p.element_bytes = params.element_bytes;
            operator_p.status = UCG_OK;
        }
        return {input(params.send_buffer, params.recv_buffer),
                output(params.recv_buffer),
                {combine, user ? &operator_p : nullptr}};
    }

    /// Return the engine's buffers for those of a call.
    std::byte* input(const void* send, void* receive) const {
        // The engine only reads the input: verify proves it of every plan.
        void* const given = input_received ? receive : const_cast<void*>(send);
        return static_cast<std::byte*>(given) + input_offset;
    }
    std::byte* output(void* receive) const {
        return static_cast<std::byte*>(receive) + output_offset;
    }
};

/// Returns the binding of a call. `key` is that of `params`.
CallBinding binding_of(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                       Rank rank_count);

/// A call's vectors as the caller gave them. A call that repeats an earlier one is found by
/// comparing bytes. So a call whose vectors differ only where they mean nothing, in the
/// displacement of an empty block, counts as another call (of the same plan).
class GivenVectors {
  public:
    GivenVectors() = default;
    /// Copies the call's vectors. REQUIRES: key_of() has checked the call.
    GivenVectors(const ucg_coll_params_t& params, const VectorUse& use, Rank rank_count);

    /// Does a call of the same shape give these vectors? False for a call that lacks some of them.
    bool repeated_by(const ucg_coll_params_t& params, const VectorUse& use) const;

  private:
    BlockCounts counts_;
    std::vector<std::byte> vectors_; ///< Those in use, in the order of ucg_coll_params_t.
};

} // namespace ucg::capi
