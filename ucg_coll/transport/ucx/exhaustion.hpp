// What to do when memory runs out in UCX's callbacks, where nothing may be thrown: UCX is written
// in C.
#pragma once

#include <new>

#include "ucg_coll/base/base.hpp"

namespace ucg::transport::ucx {

/// The status of everything that fails because memory ran out. The first call makes it, in
/// UcxCore::create(), before it is needed.
inline const Status& memory_ran_out() {
    static const Status status(Code::out_of_memory,
                               "memory ran out while messages came or went; what was on the way "
                               "is lost");
    return status;
}

/// Returns the failure that `make` returns, or memory_ran_out() where there is no memory for its
/// text.
template <typename Make>
Status described(Make make) {
    try {
        return make();
    } catch (const std::bad_alloc&) {
        return memory_ran_out();
    }
}

/// Runs `work`, which may throw std::bad_alloc alone. Returns whether memory was enough.
template <typename Work>
[[nodiscard]] bool suffices(Work work) {
    try {
        work();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

} // namespace ucg::transport::ucx
