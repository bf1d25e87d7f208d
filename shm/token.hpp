// 128 random bits: a heap's name, which is also that of its socket, so that anybody on the host can
// read it; or its key, which nobody learns but by the heap's address. Knowing the key is half of
// the right to map the heap; the other half is being the same user.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// A name or a key.
struct Token {
    std::array<std::uint64_t, 2> bits = {};

    // The check takes the comparison's literal zero for a null pointer.
    auto operator<=>(const Token&) const = default; // NOLINT(modernize-use-nullptr)
};

/// Returns a new token. Fails with io_error when the system has no random numbers.
Result<Token> random_token();

/// Returns the token as 32 hexadecimal digits.
std::string to_text(const Token& token);

} // namespace ucg::shm
