// Where the lines of log.hpp go, if not to standard error.
#pragma once

namespace ucg {

/// Takes a line, with its line feed.
using LogHandler = void (*)(const char* line, void* argument);
struct LogSink {
    LogHandler take = nullptr; ///< Null: standard error.
    void* argument = nullptr;
};

/// Returns where lines went before; one that another thread has begun may still go there.
/// Thread-safe.
LogSink set_log_sink(LogSink sink);

/// Hands on a line that is whole, as a handler: of another library with a log of its own.
void pass_log_line(const char* line, void* unused);

} // namespace ucg
