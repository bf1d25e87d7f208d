// Assertions for our own bugs. They stay on in release builds: a wrong result is worse than an
// abort, and the ones on the hot path are a compare of two registers.
#pragma once

namespace ucg {

/// Prints what failed and where, then aborts. Does not return.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

} // namespace ucg

#define UCG_ASSERT(expression)                                                                     \
    (__builtin_expect(!!(expression), 1)                                                           \
         ? static_cast<void>(0)                                                                    \
         : ::ucg::assertion_failed(#expression, __FILE__, __LINE__))

/// Checks that cost too much for release builds.
#ifdef NDEBUG
#define UCG_DEBUG_ASSERT(expression) static_cast<void>(0)
#else
#define UCG_DEBUG_ASSERT(expression) UCG_ASSERT(expression)
#endif
