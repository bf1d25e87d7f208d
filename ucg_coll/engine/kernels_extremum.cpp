// Kernels of min and max.
#include "ucg_coll/engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ucg_coll/engine/kernels_extremum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ucg_coll/engine/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ucg::engine {
namespace HWY_NAMESPACE {

// Highway's Min and Max of floating-point numbers differ between instruction sets where an operand
// is NaN or both are zeros of different sign. A comparison does not: without a strict order the
// left operand stays. On x86 that is one instruction, which returns its second operand unless the
// first is strictly less (or greater).
inline constexpr bool kOneInstruction = HWY_TARGET < (1LL << (HWY_HIGHEST_TARGET_BIT_X86 + 1));

struct Minimum {
    template <class D, class V>
    static HWY_INLINE V apply(D, V left, V right) {
        if constexpr (!hwy::IsFloat<hn::TFromD<D>>()) {
            return hn::Min(left, right);
        } else if constexpr (kOneInstruction) {
            return hn::Min(right, left);
        } else {
            return hn::IfThenElse(hn::Lt(right, left), right, left);
        }
    }
};

struct Maximum {
    template <class D, class V>
    static HWY_INLINE V apply(D, V left, V right) {
        if constexpr (!hwy::IsFloat<hn::TFromD<D>>()) {
            return hn::Max(left, right);
        } else if constexpr (kOneInstruction) {
            return hn::Max(right, left);
        } else {
            return hn::IfThenElse(hn::Lt(left, right), right, left);
        }
    }
};

void set_extremum(KernelTable& table) {
    set_integers_by_value<Minimum>(row_of(table, OperatorKind::min));
    set_floats<Minimum>(row_of(table, OperatorKind::min));
    set_integers_by_value<Maximum>(row_of(table, OperatorKind::max));
    set_floats<Maximum>(row_of(table, OperatorKind::max));
}

} // namespace HWY_NAMESPACE
} // namespace ucg::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ucg::engine {

HWY_EXPORT(set_extremum);

void set_extremum_kernels(KernelTable& table) {
    HWY_DYNAMIC_DISPATCH(set_extremum)(table);
}

} // namespace ucg::engine
#endif
