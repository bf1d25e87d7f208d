// Handlers that take the lines of log.hpp instead of standard error.
#pragma once

namespace ucg {

/// A function that takes one line, which ends with a line feed.
using LogHandler = void (*)(const char* line, void* argument);
/// Where lines go: a handler and the argument that it is called with.
struct LogSink {
    LogHandler take = nullptr; ///< Null: standard error.
    void* argument = nullptr;
};

/// Sends all further lines to `sink`, and returns the sink before it, to which a line that another
/// thread has begun may still go. Thread-safe.
LogSink set_log_sink(LogSink sink);

/// Passes a complete line on to the current sink. It is a LogHandler, so that another library with
/// a log of its own can have its lines taken by it.
void pass_log_line(const char* line, void* unused);

} // namespace ucg
