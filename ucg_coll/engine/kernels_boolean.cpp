// Kernels of the logical and bitwise operators, which are defined for integers only.
#include "ucg_coll/engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ucg_coll/engine/kernels_boolean.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ucg_coll/engine/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ucg::engine {
namespace HWY_NAMESPACE {

struct BitwiseAnd {
    template <class D, class V>
    static HWY_INLINE V apply(D, V left, V right) {
        return hn::And(left, right);
    }
};

struct BitwiseOr {
    template <class D, class V>
    static HWY_INLINE V apply(D, V left, V right) {
        return hn::Or(left, right);
    }
};

struct BitwiseXor {
    template <class D, class V>
    static HWY_INLINE V apply(D, V left, V right) {
        return hn::Xor(left, right);
    }
};

/// Returns 1 in lanes that are not 0, and 0 in the others.
template <class D, class V>
HWY_INLINE V truth(D d, V value) {
    return hn::IfThenZeroElse(hn::Eq(value, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}));
}

/// A logical operator is the bitwise one on truth values.
template <class Bitwise>
struct Logical {
    template <class D, class V>
    static HWY_INLINE V apply(D d, V left, V right) {
        return Bitwise::apply(d, truth(d, left), truth(d, right));
    }
};

/// Sets the kernels of a bitwise operator. One kernel serves all types, since lanes do not matter.
template <class Bitwise>
void set_bitwise(KernelRow& row) {
    for (const ElementType type :
         {ElementType::int8, ElementType::int16, ElementType::int32, ElementType::int64,
          ElementType::uint8, ElementType::uint16, ElementType::uint32, ElementType::uint64}) {
        kernel_of(row, type) = combine<Bitwise, std::uint8_t>;
    }
}

void set_boolean(KernelTable& table) {
    set_integers_by_bits<Logical<BitwiseAnd>>(row_of(table, OperatorKind::land));
    set_integers_by_bits<Logical<BitwiseOr>>(row_of(table, OperatorKind::lor));
    set_integers_by_bits<Logical<BitwiseXor>>(row_of(table, OperatorKind::lxor));
    set_bitwise<BitwiseAnd>(row_of(table, OperatorKind::band));
    set_bitwise<BitwiseOr>(row_of(table, OperatorKind::bor));
    set_bitwise<BitwiseXor>(row_of(table, OperatorKind::bxor));
}

} // namespace HWY_NAMESPACE
} // namespace ucg::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ucg::engine {

HWY_EXPORT(set_boolean);

void set_boolean_kernels(KernelTable& table) {
    HWY_DYNAMIC_DISPATCH(set_boolean)(table);
}

} // namespace ucg::engine
#endif
