#include "perf/perftest/collectives/collective_data.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest {

namespace {

struct DatatypeRow {
    ucg_datatype_t datatype;
    std::string_view name;
    std::uint64_t bytes;
    bool integer;
};
/// The data types of whole numbers and floating-point numbers that fit into one word; data are
/// small whole numbers.
constexpr std::array<DatatypeRow, 10> kDatatypes = {{
    {UCG_DT_INT8, "int8", 1, true},
    {UCG_DT_INT16, "int16", 2, true},
    {UCG_DT_INT32, "int32", 4, true},
    {UCG_DT_INT64, "int64", 8, true},
    {UCG_DT_UINT8, "uint8", 1, true},
    {UCG_DT_UINT16, "uint16", 2, true},
    {UCG_DT_UINT32, "uint32", 4, true},
    {UCG_DT_UINT64, "uint64", 8, true},
    {UCG_DT_FLOAT32, "float32", 4, false},
    {UCG_DT_FLOAT64, "float64", 8, false},
}};

constexpr std::array<std::string_view, UCG_OP_USER> kOperations = {
    "sum", "prod", "min", "max", "land", "lor", "lxor", "band", "bor", "bxor"};

const DatatypeRow& row_of(ucg_datatype_t datatype) {
    const auto* const row = std::ranges::find(kDatatypes, datatype, &DatatypeRow::datatype);
    UCG_ASSERT(row != kDatatypes.end());
    return *row;
}

std::uint64_t apply(ucg_op_t operation, std::uint64_t left, std::uint64_t right) {
    switch (operation) {
    case UCG_OP_SUM: return left + right;
    case UCG_OP_PROD: return left * right;
    case UCG_OP_MIN: return std::min(left, right);
    case UCG_OP_MAX: return std::max(left, right);
    case UCG_OP_LAND: return left != 0 && right != 0 ? 1 : 0;
    case UCG_OP_LOR: return left != 0 || right != 0 ? 1 : 0;
    case UCG_OP_LXOR: return (left != 0) != (right != 0) ? 1 : 0;
    case UCG_OP_BAND: return left & right;
    case UCG_OP_BOR: return left | right;
    case UCG_OP_BXOR: return left ^ right;
    case UCG_OP_USER:
    case UCG_OP_MINLOC:
    case UCG_OP_MAXLOC:
    case UCG_OP_LAST: break;
    }
    UCG_ASSERT(operation < UCG_OP_USER);
    return 0;
}

/// Returns the bits of a whole number in a type.
std::uint64_t bits_of(ucg_datatype_t datatype, std::uint64_t number) {
    std::uint64_t bits = number;
    if (datatype == UCG_DT_FLOAT64) {
        const auto value = static_cast<double>(number);
        std::memcpy(&bits, &value, sizeof(value));
    } else if (datatype == UCG_DT_FLOAT32) {
        const auto value = static_cast<float>(number);
        bits = 0;
        std::memcpy(&bits, &value, sizeof(value));
    }
    const std::uint64_t bytes = element_bytes(datatype);
    return bytes == sizeof(bits) ? bits : bits & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

} // namespace

std::string_view name(ucg_datatype_t datatype) {
    const auto* const row = std::ranges::find(kDatatypes, datatype, &DatatypeRow::datatype);
    return row == kDatatypes.end() ? std::string_view() : row->name;
}

std::string_view name(ucg_op_t operation) {
    const auto index = static_cast<std::size_t>(operation);
    return index < kOperations.size() ? kOperations[index] : std::string_view();
}

std::optional<ucg_datatype_t> find_datatype(std::string_view name) {
    const auto* const row = std::ranges::find(kDatatypes, name, &DatatypeRow::name);
    return row == kDatatypes.end() ? std::nullopt : std::optional(row->datatype);
}

std::optional<ucg_op_t> find_operation(std::string_view name) {
    const auto* const found = std::ranges::find(kOperations, name);
    return found == kOperations.end()
               ? std::nullopt
               : std::optional(static_cast<ucg_op_t>(found - kOperations.begin()));
}

std::uint64_t element_bytes(ucg_datatype_t datatype) {
    return row_of(datatype).bytes;
}

bool applies(ucg_op_t operation, ucg_datatype_t datatype) {
    return operation <= UCG_OP_MAX || row_of(datatype).integer;
}

/// Returns one of a few small numbers, different from rank to rank and from element to element. In
/// a product, one factor of each element is not 1.
std::uint64_t CollectiveData::contribution(Rank rank, std::uint64_t element) const {
    const auto number = static_cast<std::uint64_t>(rank);
    if (!shape.reduces) {
        return (number * 37 + element * 11 + 1) % 127;
    }
    if (operation == UCG_OP_PROD) {
        return element % static_cast<std::uint64_t>(size) == number ? 2 + element % 3 : 1;
    }
    return (number * 5 + element * 3) % 8;
}

std::uint64_t CollectiveData::fold(Rank ranks, std::uint64_t element) const {
    std::uint64_t result = contribution(0, element);
    for (Rank rank = 1; rank < ranks; ++rank) {
        result = apply(operation, result, contribution(rank, element));
    }
    return result;
}

std::uint64_t CollectiveData::expected(Rank rank, std::uint64_t element) const {
    const std::uint64_t own_first = static_cast<std::uint64_t>(rank) * count;
    switch (shape.type) {
    case UCG_COLL_BCAST: return contribution(root, element);
    case UCG_COLL_REDUCE:
    case UCG_COLL_ALLREDUCE: return fold(size, element);
    case UCG_COLL_SCAN: return fold(rank + 1, element);
    case UCG_COLL_EXSCAN: return fold(rank, element);
    case UCG_COLL_REDUCE_SCATTER:
    case UCG_COLL_REDUCE_SCATTER_BLOCK: return fold(size, own_first + element);
    case UCG_COLL_SCATTER:
    case UCG_COLL_SCATTERV: return contribution(root, own_first + element);
    case UCG_COLL_ALLTOALL:
    case UCG_COLL_ALLTOALLV:
        return contribution(static_cast<Rank>(element / count), own_first + element % count);
    case UCG_COLL_NEIGHBOR_ALLTOALLV:
        return contribution(element < count ? (rank + 1) % size : (rank + size - 1) % size,
                            element);
    default: return contribution(static_cast<Rank>(element / count), element % count);
    }
}

void CollectiveData::fill(Rank rank, std::span<std::byte> buffer) const {
    const std::uint64_t width = element_bytes(datatype);
    for (std::uint64_t element = 0; element < buffer.size() / width; ++element) {
        const std::uint64_t bits = bits_of(datatype, contribution(rank, element));
        std::memcpy(buffer.data() + element * width, &bits, width);
    }
}

std::optional<CollectiveData::Difference>
CollectiveData::check(Rank rank, std::span<const std::byte> received) const {
    if (shape.type == UCG_COLL_EXSCAN && rank == 0) {
        return std::nullopt; // The result is undefined.
    }
    const std::uint64_t width = element_bytes(datatype);
    for (std::uint64_t element = 0; element < received.size() / width; ++element) {
        const std::uint64_t wanted = bits_of(datatype, expected(rank, element));
        std::uint64_t found = 0;
        std::memcpy(&found, received.data() + element * width, width);
        if (found != wanted) {
            return Difference{element, wanted, found};
        }
    }
    return std::nullopt;
}

} // namespace ucg::perftest
