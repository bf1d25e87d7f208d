// Files whose content changes at once, for whoever reads them and whatever ends the writer.
#pragma once

#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// Returns the failure "PATH: cannot WHAT: ..." with errno's description.
Status io_failure(std::string_view what, const std::string& path);

/// Gives a file a new content. A plain file is replaced by a new one, with its mode and owner, that
/// is complete on the disk; a symbolic link stays, and the file that it names is replaced. Some
/// files are written in place instead, since replacing them is impossible or would go unnoticed:
/// devices and pipes, files that this process has open (/dev/fd/3), files with several names, and
/// files beside which no other can be made.
Status replace_file(const std::string& path, std::string_view text);

} // namespace ucg::tools
