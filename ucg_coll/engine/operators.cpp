#include "ucg_coll/engine/operators.hpp"

#include "ucg_coll/engine/kernels.hpp"

namespace ucg::engine {

KernelTable best_kernels() {
    KernelTable table = {};
    set_arithmetic_kernels(table);
    set_extremum_kernels(table);
    set_boolean_kernels(table);
    set_half_kernels(table);
    set_composite_kernels(table);
    return table;
}

CombineFn find_operator(OperatorKind op, ElementType type) {
    static const KernelTable kKernels = best_kernels();
    return kKernels[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
}

} // namespace ucg::engine
