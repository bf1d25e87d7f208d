// Kernels for elements that consist of several numbers: products of complex numbers, and pairs of a
// value and its index. Sums of complex numbers are sums of their parts.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ucg_coll/engine/kernels.hpp"

namespace ucg::engine {
namespace {

template <typename T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

/// A complex number. It is multiplied by the definition, without C's special cases for infinities.
template <typename T>
struct Complex {
    T real;
    T imaginary;

    Complex operator*(const Complex& right) const {
        return {real * right.real - imaginary * right.imaginary,
                real * right.imaginary + imaginary * right.real};
    }
};

template <typename T>
void multiply(void*, const std::byte* const* operands, std::size_t operand_count, std::byte* target,
              std::size_t bytes) {
    for (std::size_t offset = 0; offset < bytes; offset += sizeof(Complex<T>)) {
        auto product = load<Complex<T>>(operands[0] + offset);
        for (std::size_t k = 1; k < operand_count; ++k) {
            product = product * load<Complex<T>>(operands[k] + offset);
        }
        std::memcpy(target + offset, &product, sizeof(product));
    }
}

/// A value and its index, as C lays out a structure of both: there may be padding behind the index.
template <typename Value, typename Index>
struct Located {
    Value value;
    Index index;
};

struct Less {
    template <typename T>
    static bool better(T candidate, T best) {
        return candidate < best;
    }
};

struct Greater {
    template <typename T>
    static bool better(T candidate, T best) {
        return candidate > best;
    }
};

/// The kernel of minloc and maxloc. The result is, of equal values, the pair with the lowest index;
/// where two values do not compare, the left pair.
template <class Order, typename Pair>
void locate(void*, const std::byte* const* operands, std::size_t operand_count, std::byte* target,
            std::size_t bytes) {
    for (std::size_t offset = 0; offset < bytes; offset += sizeof(Pair)) {
        const std::byte* best = operands[0] + offset;
        for (std::size_t k = 1; k < operand_count; ++k) {
            const auto left = load<Pair>(best);
            const auto right = load<Pair>(operands[k] + offset);
            if (Order::better(right.value, left.value) ||
                (right.value == left.value && right.index < left.index)) {
                best = operands[k] + offset;
            }
        }
        std::memmove(target + offset, best, sizeof(Pair)); // `best` may be in the target.
    }
}

CombineFn& kernel_of(KernelTable& table, OperatorKind op, ElementType type) {
    return row_of(table, op)[static_cast<std::size_t>(type)];
}

template <typename Value, typename Index>
void set_locations(KernelTable& table, ElementType type) {
    kernel_of(table, OperatorKind::minloc, type) = locate<Less, Located<Value, Index>>;
    kernel_of(table, OperatorKind::maxloc, type) = locate<Greater, Located<Value, Index>>;
}

} // namespace

void set_composite_kernels(KernelTable& table) {
    kernel_of(table, OperatorKind::sum, ElementType::complex64) =
        kernel_of(table, OperatorKind::sum, ElementType::float32);
    kernel_of(table, OperatorKind::sum, ElementType::complex128) =
        kernel_of(table, OperatorKind::sum, ElementType::float64);
    kernel_of(table, OperatorKind::prod, ElementType::complex64) = multiply<float>;
    kernel_of(table, OperatorKind::prod, ElementType::complex128) = multiply<double>;
    set_locations<std::int16_t, std::int32_t>(table, ElementType::int16_int32);
    set_locations<std::int32_t, std::int32_t>(table, ElementType::int32_int32);
    set_locations<std::int64_t, std::int32_t>(table, ElementType::int64_int32);
    set_locations<float, std::int32_t>(table, ElementType::float32_int32);
    set_locations<double, std::int32_t>(table, ElementType::float64_int32);
    set_locations<std::int64_t, std::int64_t>(table, ElementType::int64_int64);
    set_locations<double, std::int64_t>(table, ElementType::float64_int64);
}

} // namespace ucg::engine
