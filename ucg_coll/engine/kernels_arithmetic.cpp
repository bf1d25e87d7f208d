// Kernels of sum and prod.
#include "ucg_coll/engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ucg_coll/engine/kernels_arithmetic.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ucg_coll/engine/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ucg::engine {
namespace HWY_NAMESPACE {

struct Sum {
    template <class D, class V>
    static HWY_INLINE V apply(D, V left, V right) {
        return hn::Add(left, right);
    }
};

/// Returns the products of bytes, which Highway does not have. Products at even places are the low
/// halves of products of 16-bit lanes; those at odd places are high halves, if one of the two
/// factors is left in its place.
template <class D, class V>
HWY_INLINE V multiply_bytes(D d, V left, V right) {
    if constexpr (kOneLane<D>) {
        const unsigned product = static_cast<unsigned>(hn::GetLane(left)) * hn::GetLane(right);
        return hn::Set(d, static_cast<std::uint8_t>(product));
    } else {
        const hn::RepartitionToWide<D> pairs;
        const auto a = hn::BitCast(pairs, left);
        const auto b = hn::BitCast(pairs, right);
        const auto low = hn::Set(pairs, std::uint16_t{0x00FF});
        const auto even = hn::And(hn::Mul(a, b), low);
        const auto odd = hn::Mul(hn::ShiftRight<8>(a), hn::AndNot(low, b));
        return hn::BitCast(d, hn::Or(even, odd));
    }
}

struct Product {
    template <class D, class V>
    static HWY_INLINE V apply(D d, V left, V right) {
        if constexpr (sizeof(hn::TFromD<D>) == 1) {
            return multiply_bytes(d, left, right);
        } else {
            return hn::Mul(left, right);
        }
    }
};

void set_arithmetic(KernelTable& table) {
    set_integers_by_bits<Sum>(row_of(table, OperatorKind::sum));
    set_floats<Sum>(row_of(table, OperatorKind::sum));
    set_integers_by_bits<Product>(row_of(table, OperatorKind::prod));
    set_floats<Product>(row_of(table, OperatorKind::prod));
}

} // namespace HWY_NAMESPACE
} // namespace ucg::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ucg::engine {

HWY_EXPORT(set_arithmetic);

void set_arithmetic_kernels(KernelTable& table) {
    HWY_DYNAMIC_DISPATCH(set_arithmetic)(table);
}

} // namespace ucg::engine
#endif
