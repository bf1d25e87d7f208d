#include "ucg_coll/base/status.hpp"

#include <cstdio>
#include <cstdlib>

namespace ucg {

std::string_view name(Code code) {
    switch (code) {
    case Code::ok: return "success";
    case Code::invalid_argument: return "invalid argument";
    case Code::unsupported: return "unsupported";
    case Code::unreachable: return "unreachable";
    case Code::out_of_memory: return "out of memory";
    case Code::io_error: return "input/output error";
    case Code::timed_out: return "timed out";
    case Code::disagreement: return "ranks disagree";
    case Code::busy: return "still in use";
    }
    return "unknown";
}

void assertion_failed(const char* expression, const char* file, int line) {
    std::fprintf(stderr, "ucg: internal error: '%s' does not hold at %s:%d\n", expression, file,
                 line);
    std::abort();
}

} // namespace ucg
