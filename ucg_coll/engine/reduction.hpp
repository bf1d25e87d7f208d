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
    /// Null for the library's own operators, which the engine calls. What has one is the program's:
    /// it may take as long as it likes and wait for other threads; see Engine::take_operator().
    void* context = nullptr;

    bool foreign() const { return context != nullptr; }
};

} // namespace ucg::engine
