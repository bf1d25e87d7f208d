// A line on the terminal that says how far long work has come.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace ucg::tools {

/// Written over five times a second, after the first one, and gone at its end; nothing where
/// standard error is not a terminal.
class ProgressLine {
  public:
    ProgressLine() = default;
    ~ProgressLine() {
        if (shown_) {
            std::fputs("\r\033[K", stderr);
        }
    }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// `text()` is asked only when it is shown.
    template <typename Text>
    void update(Text text) {
        const Clock::time_point now = Clock::now();
        if (!is_terminal_ || now < next_) {
            return;
        }
        next_ = now + std::chrono::milliseconds(200);
        std::fputs(("\r" + std::string(text()) + "\033[K").c_str(), stderr);
        shown_ = true;
    }

  private:
    using Clock = std::chrono::steady_clock;

    bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
    bool shown_ = false;
    Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
};

} // namespace ucg::tools
