#include "perf/perftest/collectives/collective_data.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ucg_coll/base/assert.hpp"

namespace ucg::perftest {

namespace {

enum class Kind { integer, real, complex };

struct DatatypeRow {
    ucg_datatype_t datatype;
    std::string_view name;
    Kind kind;
};
/// The datatypes of numbers; data are small whole numbers, and of complex numbers real ones.
constexpr std::array<DatatypeRow, 14> kDatatypes = {{
    {UCG_DT_INT8, "int8", Kind::integer},
    {UCG_DT_INT16, "int16", Kind::integer},
    {UCG_DT_INT32, "int32", Kind::integer},
    {UCG_DT_INT64, "int64", Kind::integer},
    {UCG_DT_UINT8, "uint8", Kind::integer},
    {UCG_DT_UINT16, "uint16", Kind::integer},
    {UCG_DT_UINT32, "uint32", Kind::integer},
    {UCG_DT_UINT64, "uint64", Kind::integer},
    {UCG_DT_FLOAT32, "float32", Kind::real},
    {UCG_DT_FLOAT64, "float64", Kind::real},
    {UCG_DT_FLOAT16, "float16", Kind::real},
    {UCG_DT_BFLOAT16, "bfloat16", Kind::real},
    {UCG_DT_COMPLEX64, "complex64", Kind::complex},
    {UCG_DT_COMPLEX128, "complex128", Kind::complex},
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

bool is_half(ucg_datatype_t datatype) {
    return datatype == UCG_DT_FLOAT16 || datatype == UCG_DT_BFLOAT16;
}

/// Returns the bytes of a number, or of a complex number's part.
std::uint64_t part_bytes(ucg_datatype_t datatype) {
    return element_bytes(datatype) / (row_of(datatype).kind == Kind::complex ? 2 : 1);
}

std::uint32_t float32_bits(std::uint64_t number) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(number));
}

/// Returns the bits of a whole number that binary16 has, up to 2,048, from those of its float32:
/// another bias of the exponent, and ten bits of the fraction.
std::uint64_t float16_bits(std::uint64_t number) {
    constexpr std::uint32_t kBiasDifference = 127 - 15;
    return number == 0 ? 0 : (float32_bits(number) >> 13) - (kBiasDifference << 10);
}

/// Returns the bits of a whole number in a type; of a complex number, those of the real part.
std::uint64_t bits_of(ucg_datatype_t datatype, std::uint64_t number) {
    switch (datatype) {
    case UCG_DT_FLOAT64:
    case UCG_DT_COMPLEX128: return std::bit_cast<std::uint64_t>(static_cast<double>(number));
    case UCG_DT_FLOAT32:
    case UCG_DT_COMPLEX64: return float32_bits(number);
    case UCG_DT_FLOAT16: return float16_bits(number);
    case UCG_DT_BFLOAT16: return float32_bits(number) >> 16;
    default: break;
    }
    const std::uint64_t bytes = element_bytes(datatype);
    return bytes == sizeof(number) ? number : number & ((std::uint64_t{1} << (8 * bytes)) - 1);
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
    return ucg_datatype_bytes(datatype);
}

bool applies(ucg_op_t operation, ucg_datatype_t datatype) {
    switch (row_of(datatype).kind) {
    case Kind::integer: return true;
    case Kind::real: return operation <= UCG_OP_MAX;
    case Kind::complex: break;
    }
    return operation == UCG_OP_SUM || operation == UCG_OP_PROD;
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
    // Halves count to 256 or 2,048 without rounding.
    return (number * 5 + element * 3) % (is_half(datatype) ? 2 : 8);
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
    const std::uint64_t part = part_bytes(datatype);
    for (std::uint64_t element = 0; element < buffer.size() / width; ++element) {
        const std::uint64_t bits = bits_of(datatype, contribution(rank, element));
        std::byte* const here = buffer.data() + element * width;
        std::memcpy(here, &bits, part);
        std::memset(here + part, 0, width - part);
    }
}

std::optional<CollectiveData::Difference>
CollectiveData::check(Rank rank, std::span<const std::byte> received) const {
    if (shape.type == UCG_COLL_EXSCAN && rank == 0) {
        return std::nullopt; // The result is undefined.
    }
    const std::uint64_t width = element_bytes(datatype);
    const std::uint64_t part = part_bytes(datatype);
    for (std::uint64_t element = 0; element < received.size() / width; ++element) {
        const std::uint64_t wanted = bits_of(datatype, expected(rank, element));
        std::uint64_t found = 0;
        std::uint64_t imaginary = 0;
        const std::byte* const here = received.data() + element * width;
        std::memcpy(&found, here, part);
        std::memcpy(&imaginary, here + part, width - part);
        if (found != wanted || imaginary != 0) {
            return Difference{element, wanted, found};
        }
    }
    return std::nullopt;
}

} // namespace ucg::perftest
