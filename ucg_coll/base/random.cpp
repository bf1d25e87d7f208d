#include "ucg_coll/base/random.hpp"

#include <cerrno>
#include <cstring>
#include <sys/random.h>

#include "ucg_coll/base/log.hpp"

namespace ucg {

Result<std::uint64_t> random_word() {
    std::uint64_t word = 0;
    ssize_t got = -1;
    do {
        got = ::getrandom(&word, sizeof(word), 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof(word))) {
        return failure(Code::io_error, "getrandom failed: {}", std::strerror(errno));
    }
    return word;
}

} // namespace ucg
