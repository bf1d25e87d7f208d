// The operator of a running collective, as the engine sees it: combine byte ranges.
#pragma once

#include <cstddef>

namespace ucg::engine {

/// target = operands[0] op operands[1] op ... (operand_count >= 2), `bytes` long each, a multiple
/// of the element's size. operands[0] may be `target`; the others do not overlap it.
using CombineFn = void (*)(void* context, const std::byte* const* operands,
                           std::size_t operand_count, std::byte* target, std::size_t bytes);

/// Value; `context` is borrowed and must outlive the collective.
struct Reduction {
    CombineFn combine = nullptr; ///< Null for collectives that do not reduce.
    void* context = nullptr;
};

} // namespace ucg::engine
