// Reads the text forms of this folder word by word. Private to topo.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "ucg_coll/base/base.hpp"

namespace ucg::topo {

/// Splits text into tokens, which are runs of characters other than blanks, ':' and ','; the latter
/// two are tokens of their own. What follows '#' on a line is skipped. The first mismatch sticks:
/// from then on nothing is consumed, every call returns false or 0, and status() tells what was
/// expected where.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    /// Goes to the next line that holds a token. Returns false at the end of the text or after a
    /// failure.
    bool next_line();

    /// Consumes the next token if it is `token`; returns whether it was.
    bool accept(std::string_view token);
    /// Fails unless the next token is `token`; consumes it.
    void expect(std::string_view token);
    /// Consumes and returns a decimal number not above `max`. `what` names it in the message: "a
    /// core's number".
    std::uint64_t number(std::string_view what, std::uint64_t max);
    std::uint32_t number32(std::string_view what,
                           std::uint32_t max = std::numeric_limits<std::uint32_t>::max()) {
        return static_cast<std::uint32_t>(number(what, max));
    }
    /// Fails unless the line has no further token.
    void end_of_line();
    /// Fails like end_of_line(), with a message that names `token` as something that could have
    /// stood here too.
    void end_of_line_or(std::string_view token);

    /// Records "line L, column C: `problem`" at the token consumed last.
    void fail(std::string_view problem);

    bool ok() const { return status_.ok(); }
    const Status& status() const { return status_; }

  private:
    std::string_view peek();
    std::string_view take();
    void fail_expected(std::string_view expected);
    void fail_at(std::size_t column, std::string_view problem);

    std::string_view rest_;       // Lines that are not begun yet.
    std::string_view line_;       // The present line without its comment.
    std::size_t position_ = 0;    // Index into line_.
    std::size_t token_begin_ = 0; // Index of the token consumed last.
    std::uint64_t line_number_ = 0;
    Status status_;
};

} // namespace ucg::topo
