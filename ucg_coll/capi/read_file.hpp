// The files that a process reads when it starts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

/// Returns the whole content of a file. Fails with "PATH: cannot read WHAT: ..." and errno's value
/// in `error` (ENOENT is no news to some callers), or, with 0 in `error`, if the file has more than
/// `bytes_max` bytes: then it is something else, perhaps without an end.
Result<std::string> read_file(const std::string& path, std::string_view what, std::size_t bytes_max,
                              int& error);

} // namespace ucg::capi
