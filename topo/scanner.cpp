#include "topo/scanner.hpp"

#include <algorithm>
#include <charconv>

namespace ucg::topo {

static constexpr std::string_view kBlanks = " \t\r";
static constexpr std::string_view kTokenEnds = " \t\r:,";

bool Scanner::next_line() {
    while (ok() && !rest_.empty()) {
        const std::size_t end = std::min(rest_.find('\n'), rest_.size());
        line_ = rest_.substr(0, end);
        line_ = line_.substr(0, line_.find('#'));
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        position_ = 0;
        token_begin_ = 0;
        ++line_number_;
        if (!peek().empty()) {
            return true;
        }
    }
    return false;
}

std::string_view Scanner::peek() {
    position_ = std::min(line_.find_first_not_of(kBlanks, position_), line_.size());
    if (position_ == line_.size()) {
        return {};
    }
    const std::size_t end = std::min(line_.find_first_of(kTokenEnds, position_), line_.size());
    return line_.substr(position_, std::max<std::size_t>(end - position_, 1));
}

std::string_view Scanner::take() {
    const std::string_view token = peek();
    token_begin_ = position_;
    position_ += token.size();
    return token;
}

bool Scanner::accept(std::string_view token) {
    if (!ok() || peek() != token) {
        return false;
    }
    take();
    return true;
}

void Scanner::expect(std::string_view token) {
    if (ok() && !accept(token)) {
        fail_expected(fmt::format("\"{}\"", token));
    }
}

std::uint64_t Scanner::number(std::string_view what, std::uint64_t max) {
    if (!ok()) {
        return 0;
    }
    const std::string_view token = peek();
    std::uint64_t value = 0;
    const char* const end = token.data() + token.size();
    const auto [stop, error] = std::from_chars(token.data(), end, value);
    if (token.empty() || stop != end || error == std::errc::invalid_argument) {
        fail_expected(what);
        return 0;
    }
    if (error != std::errc() || value > max) {
        fail_expected(fmt::format("{} of at most {}", what, max));
        return 0;
    }
    take();
    return value;
}

void Scanner::end_of_line() {
    if (ok() && !peek().empty()) {
        fail_expected("the end of the line");
    }
}

void Scanner::end_of_line_or(std::string_view token) {
    if (ok() && !peek().empty()) {
        fail_expected(fmt::format("\"{}\" or the end of the line", token));
    }
}

void Scanner::fail(std::string_view problem) {
    if (ok()) {
        fail_at(token_begin_, problem);
    }
}

void Scanner::fail_expected(std::string_view expected) {
    static constexpr std::size_t kShown = 40; // A token may be a whole file without blanks.
    const std::string_view token = peek();
    const std::string found = token.empty() ? std::string("the end of the line")
                                            : fmt::format("\"{}\"{}", token.substr(0, kShown),
                                                          token.size() > kShown ? "..." : "");
    fail_at(position_, fmt::format("expected {}, found {}", expected, found));
}

void Scanner::fail_at(std::size_t column, std::string_view problem) {
    status_ = failure(Code::invalid_argument, "line {}, column {}: {}", line_number_, column + 1,
                      problem);
}

} // namespace ucg::topo
