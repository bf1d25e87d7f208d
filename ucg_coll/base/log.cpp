#include "ucg_coll/base/log.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "ucg_coll/base/printable.hpp"

namespace ucg {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"error", "warn", "info", "debug", "trace"};

LogLevel level_from_environment() {
    const char* text = std::getenv("UCG_LOG_LEVEL");
    if (text == nullptr) {
        return LogLevel::warn;
    }
    const Result<LogLevel> level = parse_log_level(text);
    return level.ok() ? *level : LogLevel::warn;
}

// The one piece of mutable global state in the library: how much to say.
std::atomic<LogLevel>& current_level() {
    static std::atomic<LogLevel> level{level_from_environment()};
    return level;
}

std::string_view label(LogLevel level) {
    return level == LogLevel::warn ? "warning" : kLevelNames[static_cast<std::size_t>(level)];
}

} // namespace

LogLevel log_level() {
    return current_level().load(std::memory_order_relaxed);
}

void set_log_level(LogLevel level) {
    current_level().store(level, std::memory_order_relaxed);
}

Result<LogLevel> parse_log_level(std::string_view text) {
    for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
        if (text == kLevelNames[i]) {
            return static_cast<LogLevel>(i);
        }
    }
    return failure(Code::invalid_argument,
                   "unknown log level '{}': expected error, warn, info, debug or trace", text);
}

void log_line(LogLevel level, std::string_view text) {
    if (level > log_level()) {
        return;
    }
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const std::string line = fmt::format("[{}:{}] ucg {}: {}\n", host.data(), ::getpid(),
                                         label(level), printable(text, LineBreaks::escape));
    // A failed write to standard error has nowhere to be reported.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace ucg
