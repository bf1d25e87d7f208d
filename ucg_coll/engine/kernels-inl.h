// The loop over k operands in one pass, for any operator on the lanes of vectors. This file is
// included by kernels_*.cpp once for each instruction set, hence Highway's toggle in place of
// #pragma once.
//
// An operator is a class with
//     template <class D, class V> static V apply(D d, V left, V right)
// The result of each element is the left fold over the operands by `apply`, whatever the vector's
// width and wherever the element lies in it: results have the same bits on every instruction set.
// Only which NaN comes out of a sum or product of several NaN is the compiler's and the processor's
// choice.
#if defined(UCG_ENGINE_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef UCG_ENGINE_KERNELS_INL
#undef UCG_ENGINE_KERNELS_INL
#else
#define UCG_ENGINE_KERNELS_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "ucg_coll/engine/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace ucg::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
inline constexpr bool kOneLane = hn::MaxLanes(D()) == 1;

/// Loads a vector from any address. Highway's own loads of a single lane need it aligned.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
    using T = hn::TFromD<D>;
    if constexpr (kOneLane<D>) {
        T value;
        std::memcpy(&value, from, sizeof(T));
        return hn::Set(d, value);
    } else {
        return hn::LoadU(d, reinterpret_cast<const T*>(from));
    }
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, std::byte* to) {
    using T = hn::TFromD<D>;
    if constexpr (kOneLane<D>) {
        const T lane = hn::GetLane(value);
        std::memcpy(to, &lane, sizeof(T));
    } else {
        hn::StoreU(value, d, reinterpret_cast<T*>(to));
    }
}

/// The arguments of one call. Offsets below are in bytes from the start of every operand. The first
/// two operands have members of their own: the compiler must assume that a store changes
/// `operands`, and would read it again after each, and most calls have no further operands.
struct FoldArguments {
    const std::byte* first;
    const std::byte* second;
    const std::byte* const* operands;
    std::size_t operand_count;
    std::byte* target;
};

/// Returns the result for one vector at `offset`.
template <class Apply, class D>
HWY_INLINE hn::Vec<D> fold_vector(D d, const FoldArguments& fold, std::size_t offset) {
    auto left = Apply::apply(d, load(d, fold.first + offset), load(d, fold.second + offset));
    for (std::size_t k = 2; k < fold.operand_count; ++k) {
        left = Apply::apply(d, left, load(d, fold.operands[k] + offset));
    }
    return left;
}

/// Combines and stores four vectors from `offset` on, `step` bytes each. With four at a time, the
/// cost of the loop over the operands is hidden behind the loads.
template <class Apply, class D>
HWY_INLINE void fold_four(D d, const FoldArguments& fold, std::size_t offset, std::size_t step) {
    const std::byte* const left = fold.first + offset;
    const std::byte* right = fold.second + offset;
    auto first = Apply::apply(d, load(d, left), load(d, right));
    auto second = Apply::apply(d, load(d, left + step), load(d, right + step));
    auto third = Apply::apply(d, load(d, left + 2 * step), load(d, right + 2 * step));
    auto fourth = Apply::apply(d, load(d, left + 3 * step), load(d, right + 3 * step));
    for (std::size_t k = 2; k < fold.operand_count; ++k) {
        right = fold.operands[k] + offset;
        first = Apply::apply(d, first, load(d, right));
        second = Apply::apply(d, second, load(d, right + step));
        third = Apply::apply(d, third, load(d, right + 2 * step));
        fourth = Apply::apply(d, fourth, load(d, right + 3 * step));
    }
    std::byte* const to = fold.target + offset;
    store(d, first, to);
    store(d, second, to + step);
    store(d, third, to + 2 * step);
    store(d, fourth, to + 3 * step);
}

/// Returns how many bytes the first multiple of `step` lies behind the address `target`; 0 if
/// elements straddle these multiples.
template <typename T>
HWY_INLINE std::size_t bytes_to_boundary(const std::byte* target, std::size_t step) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(target) % step;
    return past % sizeof(T) == 0 && past != 0 ? step - past : 0;
}

/// Combines a range of at least one vector. The first and the last vector may overlap those
/// between, so that stores between are aligned and no elements are left over. These two are
/// computed before anything is stored, since the target may be an operand, and are stored last;
/// lanes that they share with other vectors then have these values already.
template <class Apply, class D>
HWY_INLINE void fold_vectors(D d, const FoldArguments& fold, std::size_t bytes) {
    const std::size_t step = hn::Lanes(d) * sizeof(hn::TFromD<D>);
    const std::size_t last = bytes - step;
    const auto head = fold_vector<Apply>(d, fold, 0);
    const auto tail = fold_vector<Apply>(d, fold, last);
    if (bytes > 2 * step) {
        std::size_t offset = bytes_to_boundary<hn::TFromD<D>>(fold.target, step);
        for (; offset + 4 * step <= bytes; offset += 4 * step) {
            fold_four<Apply>(d, fold, offset, step);
        }
        for (; offset < last; offset += step) {
            store(d, fold_vector<Apply>(d, fold, offset), fold.target + offset);
        }
    }
    store(d, head, fold.target);
    store(d, tail, fold.target + last);
}

template <class Apply, typename T>
HWY_NOINLINE void combine_any(const std::byte* const* operands, std::size_t operand_count,
                              std::byte* target, std::size_t bytes) {
    const hn::ScalableTag<T> whole;
    const hn::CappedTag<T, 16 / sizeof(T)> narrow;
    const hn::CappedTag<T, 1> single;
    const FoldArguments fold{operands[0], operands[1], operands, operand_count, target};
    if (bytes >= hn::Lanes(whole) * sizeof(T)) {
        fold_vectors<Apply>(whole, fold, bytes);
    } else if (bytes >= hn::Lanes(narrow) * sizeof(T)) {
        fold_vectors<Apply>(narrow, fold, bytes);
    } else {
        for (std::size_t offset = 0; offset < bytes; offset += sizeof(T)) {
            store(single, fold_vector<Apply>(single, fold, offset), target + offset);
        }
    }
}

/// The kernel, a CombineFn. The shortest case, one element of two operands, is handled without
/// vectors.
template <class Apply, typename T>
void combine(void*, const std::byte* const* operands, std::size_t operand_count, std::byte* target,
             std::size_t bytes) {
    const hn::CappedTag<T, 1> single;
    if (operand_count == 2 && bytes == sizeof(T)) {
        store(single, Apply::apply(single, load(single, operands[0]), load(single, operands[1])),
              target);
        return;
    }
    combine_any<Apply, T>(operands, operand_count, target, bytes);
}

inline CombineFn& kernel_of(KernelRow& row, ElementType type) {
    return row[static_cast<std::size_t>(type)];
}

/// Sets the kernels of an operator that gives signed and unsigned integers the same bits, since
/// signed ones wrap around: both share a kernel.
template <class Apply>
void set_integers_by_bits(KernelRow& row) {
    kernel_of(row, ElementType::int8) = kernel_of(row, ElementType::uint8) =
        combine<Apply, std::uint8_t>;
    kernel_of(row, ElementType::int16) = kernel_of(row, ElementType::uint16) =
        combine<Apply, std::uint16_t>;
    kernel_of(row, ElementType::int32) = kernel_of(row, ElementType::uint32) =
        combine<Apply, std::uint32_t>;
    kernel_of(row, ElementType::int64) = kernel_of(row, ElementType::uint64) =
        combine<Apply, std::uint64_t>;
}

template <class Apply>
void set_integers_by_value(KernelRow& row) {
    kernel_of(row, ElementType::int8) = combine<Apply, std::int8_t>;
    kernel_of(row, ElementType::int16) = combine<Apply, std::int16_t>;
    kernel_of(row, ElementType::int32) = combine<Apply, std::int32_t>;
    kernel_of(row, ElementType::int64) = combine<Apply, std::int64_t>;
    kernel_of(row, ElementType::uint8) = combine<Apply, std::uint8_t>;
    kernel_of(row, ElementType::uint16) = combine<Apply, std::uint16_t>;
    kernel_of(row, ElementType::uint32) = combine<Apply, std::uint32_t>;
    kernel_of(row, ElementType::uint64) = combine<Apply, std::uint64_t>;
}

template <class Apply>
void set_floats(KernelRow& row) {
    kernel_of(row, ElementType::float32) = combine<Apply, float>;
    kernel_of(row, ElementType::float64) = combine<Apply, double>;
}

} // namespace HWY_NAMESPACE
} // namespace ucg::engine
HWY_AFTER_NAMESPACE();

#endif
