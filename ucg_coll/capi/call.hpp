// A collective call as C gives it, turned into what the planner and the engine understand.
#pragma once

#include <cstdint>

#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::capi {

/// What identifies a plan without vectors: compared on every call, so it is flat and small.
struct CallKey {
    std::uint64_t bytes = 0;
    std::uint32_t element_bytes = 1;
    Rank root = 0;
    graph::Collective collective = graph::Collective::barrier;
    bool in_place = false;
    bool commutative = true;

    bool operator==(const CallKey&) const = default;

    std::uint64_t hash() const {
        std::uint64_t mixed = bytes * 0x9e3779b97f4a7c15ULL;
        mixed ^= (std::uint64_t{element_bytes} << 32) ^ static_cast<std::uint32_t>(root);
        mixed ^= static_cast<std::uint64_t>(collective) << 56;
        mixed ^= (std::uint64_t{in_place} << 55) ^ (std::uint64_t{commutative} << 54);
        return (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ULL;
    }
};

/// A caller's operator, bound to one running collective.
struct UserOperator {
    ucg_reduce_cb_t reduce = nullptr;
    void* argument = nullptr;
    std::uint64_t element_bytes = 1;
};

/// The key of a call. Fails with invalid_argument, naming the field, or unsupported (operator and
/// datatype do not go together). REQUIRES nothing: checks everything that a rank can check alone.
Result<CallKey> key_of(const ucg_coll_params_t& params, Rank rank, Rank rank_count);

/// Does the call carry vectors, so that the key alone does not identify its plan?
bool has_vectors(const CallKey& key);

/// Would request_of() give `request` again? Without allocating, for a request of the same key.
bool has_same_vectors(const graph::Request& request, const ucg_coll_params_t& params,
                      const CallKey& key, Rank rank);

/// The full request. `key` is that of `params`.
Result<graph::Request> request_of(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                                  Rank rank_count);

/// The buffers and the operator. `user` receives the caller's operator, if there is one, and must
/// outlive the collective.
engine::Binding bind(const ucg_coll_params_t& params, const CallKey& key, Rank rank,
                     Rank rank_count, UserOperator& user);

} // namespace ucg::capi
