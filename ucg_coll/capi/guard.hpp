// The C edge: every extern "C" function is one call to guarded().
#pragma once

#include <new>

#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

ucg_status_t to_c(Code code);
inline ucg_status_t to_c(const Status& status) {
    return to_c(status.code());
}

/// Runs `body`, which returns ucg_status_t; turns any exception into a code.
template <typename Body>
ucg_status_t guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return UCG_ERR_NO_MEMORY;
    } catch (...) {
        return UCG_ERR_INTERNAL;
    }
}

/// Logs a failure that was found here, and returns its code. A Status that came from below was
/// logged there; the C edge is where statuses made by our own checks end. A caller who is told that
/// something is not supported, or busy, does it in another way or later, as the contract says: only
/// who looks for that reads of it.
inline ucg_status_t report(const Status& status) {
    if (!status.ok()) {
        const bool by_contract = status.code() == Code::unsupported || status.code() == Code::busy;
        log(by_contract ? LogLevel::debug : LogLevel::error, "{}", status.message());
    }
    return to_c(status);
}

} // namespace ucg::capi
