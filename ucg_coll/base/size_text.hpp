// Sizes in bytes as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ucg_coll/base/status.hpp"

namespace ucg {

/// Returns the bytes that a text such as "4096", "64k", "16M", "1G" or "1T" stands for (powers of
/// 1024, as UCX writes sizes). Fails with invalid_argument and what was expected and found.
Result<std::uint64_t> parse_size(std::string_view text);

/// Returns the shortest text that parse_size() reads as `bytes`.
std::string size_text(std::uint64_t bytes);

} // namespace ucg
