// Files and standard streams of the command-line tools, and how tools end. Apart from cli.hpp,
// since CLI11 takes a compiler longer than most sources do.
#pragma once

#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// The exit statuses of every tool.
enum ExitStatus : int {
    kExitOk = 0,
    kExitFailed = 1, ///< The input is malformed, a file cannot be read, the system failed.
    kExitUsage = 2,  ///< The command line is wrong.
};

/// Returns the whole content of a file, or of standard input if `path` is "-". Fails with io_error
/// and the file's name.
Result<std::string> read_input(const std::string& path);

/// Writes `text` to a file (replace_file.hpp), or to standard output if `path` is "-" or names
/// standard output in /dev. A full disk is a failure. Text for standard output is made printable(),
/// so that names from files cannot send control sequences to a terminal.
Status write_output(const std::string& path, std::string_view text);

/// Returns a failure if something that was printed to standard output without write_output() could
/// not be written.
Status check_printed();

/// Returns a failure if write_output() could not write to `path`, as far as can be told without
/// writing. For programs that measure before they write. "-" and an empty path succeed.
Status check_output(const std::string& path);

/// Returns the same failure with the name of the file in which it was found before the message.
Status in_file(const std::string& path, const Status& status);

} // namespace ucg::tools
