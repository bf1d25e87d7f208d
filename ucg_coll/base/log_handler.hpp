// Where the lines of log.hpp go, if not to standard error.
#pragma once

namespace ucg {

/// Takes a line, with its line feed.
using LogHandler = void (*)(const char* line, void* argument);
/// Null: standard error again. A line that another thread has begun may still go where lines went
/// before. Thread-safe.
void set_log_handler(LogHandler handler, void* argument);

/// Hands on a line that is whole, as a handler: of another library with a log of its own.
void pass_log_line(const char* line, void* unused);

} // namespace ucg
