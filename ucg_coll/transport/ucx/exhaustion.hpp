// When memory runs out in what UCX calls back, where nothing may be thrown: UCX is written in C.
#pragma once

#include <new>

#include "ucg_coll/base/base.hpp"

namespace ucg::transport::ucx {

/// Made before it is needed: by the first call, in Core::open().
inline const Status& memory_ran_out() {
    static const Status status(Code::out_of_memory,
                               "memory ran out while messages came or went; what was on the way "
                               "is lost");
    return status;
}

/// The failure that `make` makes; that of memory where there is none for its text.
template <typename Make>
Status described(Make make) {
    try {
        return make();
    } catch (const std::bad_alloc&) {
        return memory_ran_out();
    }
}

/// Whether memory was enough for `work`, which may throw std::bad_alloc alone.
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
