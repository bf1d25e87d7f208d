// Files that change at once, for whoever reads them and whatever ends the writer.
#pragma once

#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// What the system, by errno, could not do with a file: "PATH: cannot WHAT: ...".
Status io_failure(std::string_view what, const std::string& path);

/// Gives a file a new content. A plain file is replaced, with its mode and owner, by one that is
/// complete on the disk; a symbolic link stays, and what it names is replaced. Written where it is,
/// not replaced, is what would be missed or cannot be: devices and pipes, what this process has
/// open
/// (/dev/fd/3), a file with several names, one beside which no other can be made.
Status replace_file(const std::string& path, std::string_view text);

} // namespace ucg::tools
