// The operator of a running collective, as the engine sees it: a function that combines ranges of
// bytes.
#pragma once

#include <cstddef>

namespace ucg::engine {

/// A function that sets target = operands[0] op operands[1] op ..., from the left, with at least
/// two operands. The target and each operand are `bytes` long, a multiple of the element's size.
/// operands[0] may be `target`; the other operands do not overlap it.
using CombineFn = void (*)(void* context, const std::byte* const* operands,
                           std::size_t operand_count, std::byte* target, std::size_t bytes);

/// An operator: a function and its context, which is not owned and must outlive the collective.
struct Reduction {
    CombineFn combine = nullptr; ///< Null for collectives that do not reduce.
    /// Null for the library's own operators, which the engine calls. An operator with a context is
    /// the program's: it may take any time and wait for other threads, so the engine leaves it to
    /// its caller (Engine::take_operator()).
    void* context = nullptr;

    /// Returns whether the operator is the program's.
    bool foreign() const { return context != nullptr; }
};

} // namespace ucg::engine
