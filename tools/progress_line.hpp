// A line on the terminal that shows how far long work has come.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace ucg::tools {

/// A progress line on standard error. It appears after the first second, is rewritten at most five
/// times a second, and is erased by the destructor. Where standard error is not a terminal nothing
/// is written.
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

    /// Shows text(), which is called only if it is time to show something.
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
