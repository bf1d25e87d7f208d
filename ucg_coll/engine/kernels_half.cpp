// Kernels of 16-bit floating-point numbers: half precision and bfloat16. Each step is computed in
// single precision and rounded to nearest, ties to even, by integer operations alone, so that it
// has the same bits on every instruction set; a step is of two operands, as for all other types.
#include "ucg_coll/engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ucg_coll/engine/kernels_half.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ucg_coll/engine/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ucg::engine {
namespace HWY_NAMESPACE {

/// Returns which lanes are NaN. The numbers are not compared with themselves, since the result of
/// Highway's Ne for NaN differs between instruction sets.
template <class D32, class V32>
HWY_INLINE auto is_nan(D32 d, V32 bits) {
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFU));
    return hn::Lt(hn::Set(d, 0x7F800000U), magnitude);
}

/// The format bfloat16: the upper half of a single-precision number.
struct Bfloat16 {
    template <class D32, class V32>
    static HWY_INLINE auto widen(D32, V32 bits) {
        return hn::BitCast(hn::RebindToFloat<D32>(), hn::ShiftLeft<16>(bits));
    }

    template <class D32, class VF>
    static HWY_INLINE auto narrow(D32 d, VF value) {
        const auto bits = hn::BitCast(d, value);
        const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
        const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFFU))));
        const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d, 0x40U));
        const auto nan = is_nan(d, bits);
        return hn::IfThenElse(nan, quiet, rounded);
    }
};

/// The format IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
struct Binary16 {
    static constexpr std::uint32_t kBias = 127 - 15; ///< Between the two exponents.
    static constexpr std::uint32_t kLeastNormal = (kBias + 1) << 23U;
    static constexpr std::uint32_t kTooLarge = (kBias + 31) << 23U; ///< 65536.
    static constexpr std::uint32_t kInfinity = 0x7C00;

    template <class D32, class V32>
    static HWY_INLINE auto widen(D32 d, V32 bits) {
        const hn::RebindToFloat<D32> df;
        const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, 0x8000U)));
        const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFU));
        const auto shifted = hn::ShiftLeft<13>(magnitude);
        const auto normal = hn::Add(shifted, hn::Set(d, kBias << 23U));
        // A subnormal number gets a leading one, which is then subtracted, so that no intermediate
        // result is subnormal in single precision: processors may be set to take those for zero.
        const auto one = hn::Set(d, kLeastNormal);
        const auto subnormal =
            hn::BitCast(d, hn::Sub(hn::BitCast(df, hn::Add(shifted, one)), hn::BitCast(df, one)));
        const auto special = hn::Or(shifted, hn::Set(d, 0x7F800000U));
        const auto finite =
            hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400U)), subnormal, normal);
        const auto wide = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, kInfinity)), finite, special);
        return hn::BitCast(df, hn::Or(wide, sign));
    }

    template <class D32, class VF>
    static HWY_INLINE auto narrow(D32 d, VF value) {
        const hn::RebindToFloat<D32> df;
        const auto bits = hn::BitCast(d, value);
        const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000U));
        const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFU));
        // The addition rounds a fraction that becomes subnormal to its last place.
        constexpr std::uint32_t kAligns = (kBias + 23 - 10 + 1) << 23U;
        const auto aligns = hn::Set(d, kAligns);
        const auto subnormal = hn::Sub(
            hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), hn::BitCast(df, aligns))), aligns);
        const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1U));
        const auto normal = hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(d, kBias << 23U)),
                                                       hn::Add(odd, hn::Set(d, 0x0FFFU))));
        const auto nan = is_nan(d, bits);
        const auto special =
            hn::IfThenElse(nan, hn::Set(d, kInfinity | 0x0200U), hn::Set(d, kInfinity));
        const auto finite =
            hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, kLeastNormal)), subnormal, normal);
        const auto narrow =
            hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, kTooLarge)), finite, special);
        return hn::Or(narrow, sign);
    }
};

/// Operators on 32-bit lanes that hold 16-bit numbers.
template <class Format>
struct SumOf {
    template <class D32, class V32>
    static HWY_INLINE V32 apply(D32 d, V32 left, V32 right) {
        return Format::narrow(d, hn::Add(Format::widen(d, left), Format::widen(d, right)));
    }
};

template <class Format>
struct ProductOf {
    template <class D32, class V32>
    static HWY_INLINE V32 apply(D32 d, V32 left, V32 right) {
        return Format::narrow(d, hn::Mul(Format::widen(d, left), Format::widen(d, right)));
    }
};

template <class Format>
struct MinimumOf {
    template <class D32, class V32>
    static HWY_INLINE V32 apply(D32 d, V32 left, V32 right) {
        const auto less = hn::Lt(Format::widen(d, right), Format::widen(d, left));
        return hn::IfThenElse(hn::RebindMask(d, less), right, left);
    }
};

template <class Format>
struct MaximumOf {
    template <class D32, class V32>
    static HWY_INLINE V32 apply(D32 d, V32 left, V32 right) {
        const auto less = hn::Lt(Format::widen(d, left), Format::widen(d, right));
        return hn::IfThenElse(hn::RebindMask(d, less), right, left);
    }
};

template <class D, class V32>
HWY_INLINE auto to_16_bits(D d, V32 bits) {
    return hn::DemoteTo(d, hn::BitCast(hn::Rebind<std::int32_t, D>(), bits));
}

#if HWY_TARGET != HWY_SCALAR // HWY_SCALAR has no vectors with halves.
template <class Wide, class D, class V>
HWY_INLINE V apply_to_halves(D d, V left, V right) {
    const hn::Half<D> half;
    const hn::RepartitionToWide<D> wide;
    const auto low = Wide::apply(wide, hn::PromoteTo(wide, hn::LowerHalf(half, left)),
                                 hn::PromoteTo(wide, hn::LowerHalf(half, right)));
    const auto high = Wide::apply(wide, hn::PromoteTo(wide, hn::UpperHalf(half, left)),
                                  hn::PromoteTo(wide, hn::UpperHalf(half, right)));
    return hn::Combine(d, to_16_bits(half, high), to_16_bits(half, low));
}
#endif

template <class Wide, class D, class V>
HWY_INLINE V apply_to_lane(D d, V left, V right) {
    const hn::Rebind<std::uint32_t, D> wide;
    return to_16_bits(d, Wide::apply(wide, hn::PromoteTo(wide, left), hn::PromoteTo(wide, right)));
}

/// Makes an operator on 32-bit lanes one on 16-bit lanes.
template <class Wide>
struct Widened {
    template <class D, class V>
    static HWY_INLINE V apply(D d, V left, V right) {
#if HWY_TARGET != HWY_SCALAR
        if constexpr (!kOneLane<D>) {
            return apply_to_halves<Wide>(d, left, right);
        } else
#endif
        {
            return apply_to_lane<Wide>(d, left, right);
        }
    }
};

template <class Format>
void set_format(KernelTable& table, ElementType type) {
    kernel_of(row_of(table, OperatorKind::sum), type) =
        combine<Widened<SumOf<Format>>, std::uint16_t>;
    kernel_of(row_of(table, OperatorKind::prod), type) =
        combine<Widened<ProductOf<Format>>, std::uint16_t>;
    kernel_of(row_of(table, OperatorKind::min), type) =
        combine<Widened<MinimumOf<Format>>, std::uint16_t>;
    kernel_of(row_of(table, OperatorKind::max), type) =
        combine<Widened<MaximumOf<Format>>, std::uint16_t>;
}

void set_half(KernelTable& table) {
    set_format<Binary16>(table, ElementType::float16);
    set_format<Bfloat16>(table, ElementType::bfloat16);
}

} // namespace HWY_NAMESPACE
} // namespace ucg::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ucg::engine {

HWY_EXPORT(set_half);

void set_half_kernels(KernelTable& table) {
    HWY_DYNAMIC_DISPATCH(set_half)(table);
}

} // namespace ucg::engine
#endif
