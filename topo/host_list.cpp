#include "topo/host_list.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ucg::topo {

namespace {

constexpr std::size_t kNameMax = 255;
constexpr std::size_t kDigitsMax = 18; // Fits 64 bits.

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

class Expander {
  public:
    explicit Expander(std::string_view text) : text_(text) {}

    Result<std::vector<std::string>> run() {
        std::size_t begin = 0;
        bool in_brackets = false;
        for (std::size_t i = 0; i <= text_.size() && status_.ok(); ++i) {
            const char c = i < text_.size() ? text_[i] : ',';
            const bool at_end = i == text_.size();
            const bool mismatch = in_brackets ? c == '[' || at_end : c == ']';
            if (mismatch) {
                refuse("brackets do not match");
            } else if (c == ',' && !in_brackets) {
                expand_word(text_.substr(begin, i - begin));
                begin = i + 1;
            }
            in_brackets = c == '[' || (in_brackets && c != ']');
        }
        if (!status_.ok()) {
            return status_;
        }
        return std::move(names_);
    }

  private:
    // The pieces of a name, each a list of alternatives; a piece outside brackets has one.
    using Pieces = std::vector<std::vector<std::string>>;

    void refuse(std::string_view reason) {
        static constexpr std::size_t kShown = 60; // The text may have thousands of characters.
        if (status_.ok()) {
            status_ = failure(Code::invalid_argument, "host list '{}{}': {}",
                              text_.substr(0, kShown), text_.size() > kShown ? "..." : "", reason);
        }
    }

    void expand_word(std::string_view word) {
        if (word.empty()) {
            refuse("empty name");
            return;
        }
        Pieces pieces;
        std::size_t combinations = 1;
        std::size_t constant = 0; // Characters outside brackets.
        while (!word.empty() && status_.ok()) {
            const std::size_t open = std::min(word.find('['), word.size());
            pieces.push_back({std::string(word.substr(0, std::min(open, kNameMax + 1)))});
            constant += open;
            word.remove_prefix(open);
            if (!word.empty()) {
                const std::size_t close = word.find(']');
                pieces.push_back(expand_brackets(word.substr(1, close - 1)));
                combinations *= pieces.back().size();
                word.remove_prefix(close + 1);
            }
            if (constant > kNameMax) {
                refuse(fmt::format("a name has at most {} characters", kNameMax));
            }
            if (names_.size() + combinations > kHostListMax) {
                refuse(fmt::format("more than {} names", kHostListMax));
            }
        }
        if (status_.ok()) {
            combine(pieces, combinations);
        }
    }

    void combine(const Pieces& pieces, std::size_t combinations) {
        for (std::size_t number = 0; number < combinations; ++number) {
            std::size_t rest = number;
            std::size_t stride = combinations;
            std::string name;
            for (const std::vector<std::string>& piece : pieces) {
                stride /= piece.size();
                name += piece[rest / stride];
                rest %= stride;
            }
            names_.push_back(std::move(name));
        }
    }

    std::vector<std::string> expand_brackets(std::string_view text) {
        std::vector<std::string> numbers;
        for (std::size_t begin = 0; begin <= text.size() && status_.ok();) {
            const std::size_t comma = std::min(text.find(',', begin), text.size());
            add_range(text.substr(begin, comma - begin), numbers);
            begin = comma + 1;
        }
        return numbers;
    }

    void add_range(std::string_view item, std::vector<std::string>& numbers) {
        const std::size_t dash = item.find('-');
        const std::string_view low = item.substr(0, dash);
        const std::string_view high = dash == std::string_view::npos ? low : item.substr(dash + 1);
        const auto is_number = [](std::string_view digits) {
            return !digits.empty() && digits.size() <= kDigitsMax &&
                   std::all_of(digits.begin(), digits.end(), is_digit);
        };
        if (!is_number(low) || !is_number(high)) {
            refuse(fmt::format("'{}' is not a number or a range", item.substr(0, 40)));
            return;
        }
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        std::from_chars(low.data(), low.data() + low.size(), first);
        std::from_chars(high.data(), high.data() + high.size(), last);
        if (first > last) {
            refuse(fmt::format("range '{}' runs backwards", item));
        } else if (last - first >= kHostListMax - std::min(numbers.size(), kHostListMax)) {
            refuse(fmt::format("more than {} names", kHostListMax));
        }
        for (std::uint64_t n = first; n <= last && status_.ok(); ++n) {
            numbers.push_back(fmt::format("{:0{}}", n, low.size()));
        }
    }

    std::string_view text_;
    std::vector<std::string> names_;
    Status status_;
};

/// A name split before its trailing digits.
struct Numbered {
    std::string_view prefix;
    std::string_view digits; // May be empty.

    explicit Numbered(std::string_view name) {
        std::size_t begin = name.size();
        while (begin > 0 && name.size() - begin < kDigitsMax && is_digit(name[begin - 1])) {
            --begin;
        }
        prefix = name.substr(0, begin);
        digits = name.substr(begin);
    }
};

/// Returns the digits of the number after `digits` in a range whose first number has `width`
/// digits.
std::string next_digits(std::string_view digits, std::size_t width) {
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return fmt::format("{:0{}}", number + 1, width);
}

} // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view text) {
    return Expander(text).run();
}

std::string host_list(std::span<const std::string_view> names) {
    std::string text;
    for (std::size_t i = 0; i < names.size();) {
        const Numbered head(names[i]);
        std::string ranges; // Numbers of all consecutive names with this prefix.
        std::size_t count = 0;
        while (i < names.size()) {
            const Numbered low(names[i]);
            if (low.prefix != head.prefix || (low.digits.empty() && count > 0)) {
                break;
            }
            std::string_view high = low.digits;
            for (++i, ++count; !high.empty() && i < names.size(); ++i, ++count) {
                const Numbered next(names[i]);
                if (next.prefix != head.prefix ||
                    next.digits != next_digits(high, low.digits.size())) {
                    break;
                }
                high = next.digits;
            }
            ranges += fmt::format("{}{}", ranges.empty() ? "" : ",", low.digits);
            ranges += high != low.digits ? fmt::format("-{}", high) : "";
            if (low.digits.empty()) {
                break;
            }
        }
        text += text.empty() ? "" : ",";
        text += count > 1 ? fmt::format("{}[{}]", head.prefix, ranges)
                          : fmt::format("{}{}", head.prefix, ranges);
    }
    return text;
}

} // namespace ucg::topo
