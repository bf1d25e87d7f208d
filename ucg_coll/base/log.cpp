#include "ucg_coll/base/log.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>

#include "ucg_coll/base/log_handler.hpp"
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

// One of the two pieces of mutable global state in the library: how much is logged.
std::atomic<LogLevel>& current_level() {
    static std::atomic<LogLevel> level{level_from_environment()};
    return level;
}

// The other piece of mutable global state is where lines go. The mutex is held while two words are
// read, not while a handler runs, which may log.
std::mutex sink_mutex;
LogSink current_sink;

LogSink sink() {
    const std::lock_guard lock(sink_mutex);
    return current_sink;
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

LogSink set_log_sink(LogSink sink) {
    const std::lock_guard lock(sink_mutex);
    return std::exchange(current_sink, sink);
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

void pass_log_line(const char* line, [[maybe_unused]] void* unused) {
    if (const LogSink taker = sink(); taker.take != nullptr) {
        taker.take(line, taker.argument);
        return;
    }
    // A failed write to standard error has nowhere to be reported.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, std::strlen(line));
}

void log_line(LogLevel level, std::string_view text) {
    if (level > log_level()) {
        return;
    }
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const std::string line = fmt::format("[{}:{}] ucg {}: {}\n", host.data(), ::getpid(),
                                         label(level), printable(text, LineBreaks::escape));
    pass_log_line(line.c_str(), nullptr);
}

} // namespace ucg
