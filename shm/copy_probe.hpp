// What the kernel's copy between processes (peer_copy.hpp) costs here, learned at set-up: a few
// copies of this process's own memory, which take the same way through the kernel as another's.
#pragma once

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Some bytes take `fixed_ns` and, for each of them, `per_byte_ns`.
struct KernelCopies {
    double fixed_ns = 0;
    double per_byte_ns = 0;
};

/// The least of a few times, some 30 us in all, so that whoever else wants the processor does not
/// matter. Fails with io_error where the kernel does not permit such copies.
Result<KernelCopies> probe_kernel_copies();

} // namespace ucg::shm
