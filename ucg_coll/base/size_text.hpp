// Sizes as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ucg_coll/base/status.hpp"

namespace ucg {

/// "4096", "64k", "16M", "1G" (powers of 1024, as UCX writes sizes) in bytes. Fails with
/// invalid_argument and what was expected and found.
Result<std::uint64_t> parse_size(std::string_view text);

/// The shortest text that parse_size reads as `bytes`.
std::string size_text(std::uint64_t bytes);

} // namespace ucg
