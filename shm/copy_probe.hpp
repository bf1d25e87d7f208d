// What the kernel's copy between processes (peer_copy.hpp) costs here, learned at set-up: a few
// copies of this process's own memory, which take the same way through the kernel as another's.
#pragma once

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What a copy by the kernel takes, in nanoseconds: `fixed_ns`, and `per_byte_ns` for each byte.
struct KernelCopies {
    double fixed_ns = 0;
    double per_byte_ns = 0;
};

/// Measures it. Takes some 30 us; the least of a few times counts, so that other users of the
/// processor do not matter. Fails with io_error where the kernel does not permit such copies.
Result<KernelCopies> probe_kernel_copies();

} // namespace ucg::shm
