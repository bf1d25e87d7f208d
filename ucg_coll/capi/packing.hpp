// Calls whose elements lie in memory in a way that only the caller knows: they are packed before
// the collective starts and unpacked after it, piece by piece, by the caller's functions. The
// collective itself is of packed elements, so that no plan depends on a layout and ranks may
// differ in them.
//
// Threading: one thread at a time for each; the caller's functions are called under no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/collective.hpp"

namespace ucg::capi {

inline bool has_layouts(const ucg_coll_params_t& params) {
    return (params.field_mask & UCG_COLL_PARAM_FIELD_LAYOUTS) != 0;
}

/// A call with layouts, and the call on packed elements that takes its place.
class Packing {
  public:
    /// Takes memory for what is packed. Fails with invalid_argument for what ucg_coll_init() would
    /// refuse, and for layouts without functions.
    static Result<std::unique_ptr<Packing>> make(const ucg_coll_params_t& params, Rank rank,
                                                 Rank rank_count);

    /// The call on packed elements. Its vectors and buffers live as long as this object.
    const ucg_coll_params_t& call() const { return call_; }

    /// Sets the caller's buffers from now on.
    void rebind(const void* send, void* receive);

    /// Packs what this rank contributes; to be called before each start. A failure does not keep
    /// the collective from starting, since peers wait for it: end() returns it.
    void load();
    /// To be called after the collective has ended with `outcome`: unpacks the result, once for
    /// each load(), unless something has failed. Returns the status with which the collective then
    /// ends; the same if called again.
    ucg_status_t end(ucg_status_t outcome);

  private:
    /// Elements that lie one after the other, both in the caller's memory and packed.
    struct Block {
        std::int64_t place = 0;   ///< From the caller's buffer, in bytes.
        std::uint64_t packed = 0; ///< Offset in the packed memory, in bytes.
        std::uint64_t bytes = 0;
    };
    /// What the call contributes, or what it receives.
    struct Side {
        const ucg_layout_t* layout = nullptr; ///< Null: elements are dense; nothing is packed.
        std::vector<Block> blocks;
        std::vector<std::uint64_t> counts; ///< For the call on packed elements.
        std::vector<std::int64_t> displs;
        std::unique_ptr<std::byte[]> memory;
    };

    /// Bytes of a side's packed memory.
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = ~std::uint64_t{0};
    };

    Packing() = default;
    void lay_out(Side& side, const std::vector<std::uint64_t>& bytes,
                 const std::vector<std::uint64_t>& offsets, std::int64_t lowest) const;
    Range contributed(const graph::Request& request, Rank rank) const;
    void add_whole(Side& side, std::uint64_t bytes) const;
    void set_vectors();
    void take_memory();
    void pack(const Side& side, const std::byte* from, Range range);
    void unpack(const Side& side, std::byte* to);

    ucg_coll_params_t call_ = {};
    ucg_layout_t layouts_[2] = {};
    std::int64_t element_bytes_ = 1;
    Side input_;
    Side output_;
    bool input_received_ = false; ///< The one buffer of the call is recv_buffer.
    bool in_place_ = false;
    Range contributed_;    ///< In place: what this rank contributes of the output.
    bool receives_ = true; ///< The first rank of an exscan does not.
    const std::byte* user_input_ = nullptr;
    std::byte* user_output_ = nullptr;
    ucg_status_t status_ = UCG_OK; ///< First failure of the caller's functions, or the outcome.
    bool loaded_ = false;
};

} // namespace ucg::capi
