// 128 random bits: a heap's name, which its socket bears and so anybody of the host can read, or
// its key, which nobody learns but by its address. Knowing the key is half of the right to map the
// heap; the other half is being the same user.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

struct Token {
    std::array<std::uint64_t, 2> bits = {};

    // The check takes the comparison's literal zero for a null pointer.
    auto operator<=>(const Token&) const = default; // NOLINT(modernize-use-nullptr)
};

/// Fails with io_error when the system has no random numbers.
Result<Token> random_token();

/// 32 hexadecimal digits.
std::string to_text(const Token& token);

} // namespace ucg::shm
