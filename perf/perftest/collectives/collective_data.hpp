// Numbers that ranks contribute to a collective, and the results that must come out, for the check
// of results. Values are chosen so that every sum and product is exact in a floating-point type;
// integers wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "perf/perftest/collectives/collective_shape.hpp"

namespace ucg::perftest {

/// Returns "float64" for UCG_DT_FLOAT64; empty for a type without a name.
std::string_view name(ucg_datatype_t datatype);
std::string_view name(ucg_op_t operation);
/// Returns the type of this name; no value if ucg.h has no such name.
std::optional<ucg_datatype_t> find_datatype(std::string_view name);
std::optional<ucg_op_t> find_operation(std::string_view name);

std::uint64_t element_bytes(ucg_datatype_t datatype);
/// Returns whether the operator can be used: logical and bitwise operators apply to integers only,
/// and to complex numbers only sum and product.
bool applies(ucg_op_t operation, ucg_datatype_t datatype);

/// One collective call as all ranks make it, without buffers.
struct CollectiveData {
    const CollectiveShape& shape;
    Rank size = 1;
    Rank root = 0;
    std::uint64_t count = 0; ///< Elements of one block.
    ucg_datatype_t datatype = UCG_DT_FLOAT64;
    ucg_op_t operation = UCG_OP_SUM;
    bool in_place = false; ///< What a rank sends is where its result will be.

    std::uint64_t block_bytes() const { return count * element_bytes(datatype); }
    std::uint64_t send_bytes(Rank rank) const {
        return block_count(shape.send, rank, root, size) * block_bytes();
    }
    /// Returns where in the receive buffer a rank's contribution begins, in place.
    std::uint64_t place_bytes(Rank rank) const {
        return send_bytes(rank) < receive_bytes(rank)
                   ? static_cast<std::uint64_t>(rank) * block_bytes()
                   : 0;
    }
    std::uint64_t receive_bytes(Rank rank) const {
        return block_count(shape.receive, rank, root, size) * block_bytes();
    }

    /// Sets `buffer` to what `rank` sends, from its first element on. The root of bcast sends from
    /// its receive buffer.
    void fill(Rank rank, std::span<std::byte> buffer) const;

    /// The first element at which what `rank` has received differs from the right result.
    struct Difference {
        std::uint64_t element;
        std::uint64_t expected; ///< Of a complex number the real part.
        std::uint64_t found;    ///< Like `expected`, as the bits of the type.
    };
    std::optional<Difference> check(Rank rank, std::span<const std::byte> received) const;

  private:
    std::uint64_t contribution(Rank rank, std::uint64_t element) const;
    std::uint64_t expected(Rank rank, std::uint64_t element) const;
    std::uint64_t fold(Rank ranks, std::uint64_t element) const;
};

} // namespace ucg::perftest
