#include "ucg_coll/plan/algorithms_by_size.hpp"

#include <algorithm>

namespace ucg::plan {
namespace {

using Range = AlgorithmsBySize::Range;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_part_of_a_name(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}

/// One item of the list, and where it begins in the text.
struct Item {
    Range range;
    bool ranged = false;
    std::size_t position = 0;
};

class Parser {
  public:
    Parser(graph::Collective collective, std::string_view text)
        : collective_(collective), text_(text) {}

    Result<AlgorithmsBySize> list() {
        std::vector<Item> items;
        while (good() && !text_.empty()) {
            items.push_back(item());
            if (position_ == text_.size()) {
                break;
            }
            letter(';', "';' or the end");
        }
        return good() ? arrange(std::move(items)) : status_;
    }

  private:
    bool good() const { return status_.ok(); }

    void fail_at(std::size_t position, std::string_view what) {
        if (good()) {
            status_ =
                failure(Code::invalid_argument, "'{}', position {}: {}", text_, position, what);
        }
    }

    void fail(std::string_view wanted) {
        const std::string found =
            position_ < text_.size() ? fmt::format("'{}'", text_.substr(position_, 1)) : "the end";
        fail_at(position_, fmt::format("expected {}, found {}", wanted, found));
    }

    void letter(char wanted, std::string_view what) {
        if (position_ == text_.size() || text_[position_] != wanted) {
            fail(what);
            return;
        }
        ++position_;
    }

    /// Reads and returns the text up to the next character that is one of `ends`, or up to the end.
    std::string_view until(std::string_view ends) {
        const std::size_t begin = position_;
        position_ = std::min(text_.find_first_of(ends, position_), text_.size());
        return text_.substr(begin, position_ - begin);
    }

    Item item() {
        Item item;
        item.position = position_;
        if (position_ < text_.size() && is_digit(text_[position_])) {
            item.ranged = true;
            range(item.range);
        }
        item.range.algorithm = algorithm(item.ranged);
        return item;
    }

    void range(Range& range) {
        const std::size_t begin = position_;
        range.begin = size();
        letter('-', "'-' and the end of a range of sizes");
        range.end = size();
        letter(':', "':' and an algorithm");
        if (range.begin >= range.end) {
            fail_at(begin, "the range is empty: its end does not belong to it");
        }
        if (!sizes_are_uniform(collective_)) {
            fail_at(begin, fmt::format("{} has no ranges of sizes: not all ranks know its lengths",
                                       graph::name(collective_)));
        }
    }

    std::uint64_t size() {
        const std::size_t begin = position_;
        const std::string_view word = until("-:;");
        if (word == "inf") {
            return AlgorithmsBySize::kNoEnd;
        }
        const Result<std::uint64_t> bytes = parse_size(word);
        if (!bytes.ok()) {
            fail_at(begin, fmt::format("{} (or inf)", bytes.status().message()));
            return 0;
        }
        return *bytes;
    }

    /// "name" or "name:argument".
    std::string_view algorithm(bool ranged) {
        const std::size_t begin = position_;
        if (position_ < text_.size() && is_letter(text_[position_])) {
            do {
                ++position_;
            } while (position_ < text_.size() && is_part_of_a_name(text_[position_]));
        }
        if (position_ == begin) {
            fail(ranged ? "the name of an algorithm"
                        : "the name of an algorithm or a range of sizes such as 0-4k");
        }
        if (position_ < text_.size() && text_[position_] != ':' && text_[position_] != ';') {
            fail("':' and an argument, ';' or the end");
        }
        until(";");
        return text_.substr(begin, position_ - begin);
    }

    Result<AlgorithmsBySize> arrange(std::vector<Item> items) {
        std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
            return a.range.begin < b.range.begin;
        });
        std::vector<Range> ranges;
        const Item* otherwise = nullptr;
        for (const Item& item : items) {
            if (item.ranged) {
                if (!ranges.empty() && item.range.begin < ranges.back().end) {
                    fail_at(item.position, "the range overlaps another");
                }
                ranges.push_back(item.range);
                continue;
            }
            if (otherwise != nullptr) {
                fail_at(item.position, "a second algorithm without a range of sizes");
            }
            otherwise = &item;
        }
        if (!good()) {
            return status_;
        }
        return AlgorithmsBySize(std::move(ranges),
                                otherwise == nullptr ? "" : otherwise->range.algorithm);
    }

    graph::Collective collective_;
    std::string_view text_;
    std::size_t position_ = 0;
    Status status_;
};

std::string end_text(std::uint64_t end) {
    return end == AlgorithmsBySize::kNoEnd ? "inf" : size_text(end);
}

} // namespace

std::string_view AlgorithmsBySize::algorithm(std::uint64_t bytes) const {
    for (const Range& range : ranges_) {
        if (bytes >= range.begin && bytes < range.end) {
            return range.algorithm;
        }
    }
    return otherwise_;
}

std::vector<Range> AlgorithmsBySize::all_sizes() const {
    std::vector<Range> all;
    const auto add = [&](std::uint64_t begin, std::uint64_t end, const std::string& algorithm) {
        if (begin == end) {
            return;
        }
        if (!all.empty() && all.back().algorithm == algorithm) {
            all.back().end = end;
        } else {
            all.push_back({begin, end, algorithm});
        }
    };
    std::uint64_t covered = 0;
    for (const Range& range : ranges_) {
        add(covered, range.begin, otherwise_);
        add(range.begin, range.end, range.algorithm);
        covered = range.end;
    }
    add(covered, kNoEnd, otherwise_);
    return all;
}

bool sizes_are_uniform(graph::Collective collective) {
    switch (collective) {
    case graph::Collective::gatherv:
    case graph::Collective::scatterv:
    case graph::Collective::alltoallv:
    case graph::Collective::neighbor_alltoallv: return false;
    default: return true;
    }
}

Result<AlgorithmsBySize> parse_algorithms_by_size(graph::Collective collective,
                                                  std::string_view text) {
    return Parser(collective, text).list();
}

std::string to_text(const AlgorithmsBySize& algorithms) {
    std::string text;
    for (const Range& range : algorithms.ranges()) {
        text += fmt::format("{}{}-{}:{}", text.empty() ? "" : ";", size_text(range.begin),
                            end_text(range.end), range.algorithm);
    }
    if (!algorithms.otherwise().empty()) {
        text += fmt::format("{}{}", text.empty() ? "" : ";", algorithms.otherwise());
    }
    return text;
}

} // namespace ucg::plan
