// Files and standard streams of the command-line tools, and how tools end. Apart from cli.hpp,
// since CLI11 takes a compiler longer than most sources do.
#pragma once

#include <string>
#include <string_view>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// Exit statuses of every tool.
enum ExitStatus : int {
    kExitOk = 0,
    kExitFailed = 1, ///< The input is malformed, a file cannot be read, the system failed.
    kExitUsage = 2,  ///< The command line is wrong.
};

/// The whole content of a file, or of standard input if `path` is "-". Fails with io_error and the
/// file's name.
Result<std::string> read_input(const std::string& path);

/// Writes a file (replace_file.hpp), or standard output if `path` is "-" or its name in /dev, to
/// the end: a full disk is a failure. What goes to standard output is made printable(): names that
/// files gave do not command a terminal.
Status write_output(const std::string& path, std::string_view text);

/// Has all arrived that was printed to standard output without write_output()?
Status check_printed();

/// Could write_output() write there, as far as can be told without writing? For programs that
/// measure first. "-" and no path at all are fine.
Status check_output(const std::string& path);

/// The same failure with the name of the file in which it was found before the message.
Status in_file(const std::string& path, const Status& status);

} // namespace ucg::tools
