#include "ucg_coll/capi/guard.hpp"

namespace ucg::capi {

ucg_status_t to_c(Code code) {
    switch (code) {
    case Code::ok: return UCG_OK;
    case Code::invalid_argument: return UCG_ERR_INVALID_PARAM;
    case Code::unsupported: return UCG_ERR_UNSUPPORTED;
    case Code::unreachable: return UCG_ERR_UNREACHABLE;
    case Code::out_of_memory: return UCG_ERR_NO_MEMORY;
    case Code::io_error: return UCG_ERR_IO_ERROR;
    case Code::timed_out: return UCG_ERR_TIMED_OUT;
    case Code::disagreement: return UCG_ERR_DISAGREEMENT;
    case Code::busy: return UCG_ERR_BUSY;
    }
    return UCG_ERR_INTERNAL;
}

} // namespace ucg::capi
