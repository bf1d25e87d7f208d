// Checks, before anything is connected, whether a UCT interface offers what a test with certain
// parameters needs.
#pragma once

#include "perf/perftest/primitives/uct_link.hpp"
#include "perf/perftest/test.hpp"

namespace ucg::perftest {

/// The operation that a test repeats.
enum class UctCommand { am, put, get, add, fetch_add, swap, compare_swap };

constexpr bool is_atomic(UctCommand command) {
    return command >= UctCommand::add;
}

/// The largest -W: sequence numbers of one byte must tell old from new.
inline constexpr unsigned kWindowMax = 127;

/// Returns ok, or a failure whose sentence names what the parameters or the interface lack.
Status check_uct(const UctResource& resource, UctCommand command, const Parameters& parameters);

} // namespace ucg::perftest
