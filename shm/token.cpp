#include "shm/token.hpp"

#include <cerrno>
#include <cstring>
#include <sys/random.h>

namespace ucg::shm {

Result<Token> random_token() {
    Token token;
    // Up to 256 bytes come whole once the kernel's pool is initialised; before that it blocks.
    ssize_t got = -1;
    do {
        got = ::getrandom(token.bits.data(), sizeof(token.bits), 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof(token.bits))) {
        return failure(Code::io_error, "shared memory: getrandom failed: {}", std::strerror(errno));
    }
    return token;
}

std::string to_text(const Token& token) {
    return fmt::format("{:016x}{:016x}", token.bits[0], token.bits[1]);
}

} // namespace ucg::shm
