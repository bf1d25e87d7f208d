// Messages to the user on standard error, one line each: "[host:pid] ucg warning: ...".
// The level comes from UCG_LOG_LEVEL (error, warn, info, debug, trace; default warn) and can be set
// by the program that hosts the library (Open MPI's coll_ucg_verbose). Whoever finds an error logs
// it; all others pass it on.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "ucg_coll/base/status.hpp"

namespace ucg {

enum class LogLevel { error, warn, info, debug, trace };

/// Returns the level above which nothing is printed. Thread-safe, like set_log_level().
LogLevel log_level();
void set_log_level(LogLevel level);

/// Parses "error", "warn", "info", "debug" or "trace".
Result<LogLevel> parse_log_level(std::string_view text);

/// Writes one line if `level` is enabled. Thread-safe: a line is one write(2).
void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (level <= log_level()) {
        log_line(level, fmt::format(format, std::forward<Args>(args)...));
    }
}

/// Returns a Status with a formatted sentence. Does not log.
template <typename... Args>
Status failure(Code code, fmt::format_string<Args...> format, Args&&... args) {
    return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace ucg
