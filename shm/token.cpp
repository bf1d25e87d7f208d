#include "shm/token.hpp"

#include "ucg_coll/base/random.hpp"

namespace ucg::shm {

Result<Token> random_token() {
    Token token;
    for (std::uint64_t& bits : token.bits) {
        const Result<std::uint64_t> word = random_word();
        if (!word) {
            return word.status();
        }
        bits = *word;
    }
    return token;
}

std::string to_text(const Token& token) {
    return fmt::format("{:016x}{:016x}", token.bits[0], token.bits[1]);
}

} // namespace ucg::shm
