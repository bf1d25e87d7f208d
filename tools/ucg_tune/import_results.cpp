#include "tools/ucg_tune/import_results.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "ucg_coll/base/log.hpp"

namespace ucg::tools {

namespace {

constexpr std::string_view kPercentile = "_percentile_lat";
/// The columns that follow iterations and the percentile in the header.
constexpr std::string_view kOtherColumns =
    "avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr";
constexpr std::size_t kFigures = 8;
constexpr double kNsPerUs = 1000;
constexpr double kBytesPerMb = 1024 * 1024;
/// The largest values of a time of a message, in microseconds, and of a length.
constexpr double kMicrosecondsMax = 1e9;
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 40;

std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> words;
    for (;;) {
        const std::size_t comma = line.find(',');
        words.push_back(line.substr(0, comma));
        if (comma == std::string_view::npos) {
            return words;
        }
        line.remove_prefix(comma + 1);
    }
}

template <typename T>
std::optional<T> number(std::string_view word) {
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || word.empty()) {
        return std::nullopt;
    }
    return value;
}

/// Parses a number that can be a time or a rate, up to `most`.
std::optional<double> amount(std::string_view word, double most) {
    const std::optional<double> value = number<double>(word);
    return value && std::isfinite(*value) && *value >= 0 && *value <= most ? value : std::nullopt;
}

/// Returns whether the line is text beside results: ucx_perftest's table, UCX's log, comments.
bool is_beside(std::string_view line) {
    return line.empty() || std::string_view("#+|[").find(line.front()) != std::string_view::npos ||
           line.starts_with("Waiting for connection") || line.starts_with("Accepted connection");
}

bool is_head(const std::vector<std::string_view>& words) {
    return std::find(words.begin(), words.end(), "iterations") != words.end();
}

class Reader {
  public:
    Status line(std::string_view text) {
        ++number_;
        if (is_beside(text)) {
            return {};
        }
        const std::vector<std::string_view> words = split(text);
        if (is_head(words)) {
            return head(words, text);
        }
        return has_head_ ? row(words, text)
                         : expected("the header that ucx_perftest -v prints", text);
    }

    Result<std::vector<PerftestRow>> take() {
        if (rows_.empty()) {
            return failure(Code::invalid_argument,
                           "expected results of ucx_perftest -v -b, found none");
        }
        return std::move(rows_);
    }

  private:
    Status expected(std::string_view what, std::string_view found) const {
        return failure(Code::invalid_argument, "line {}: expected {}, found '{}'", number_, what,
                       found.substr(0, 80));
    }

    /// Reads the header line, such as "calibrate,iterations,50.0_percentile_lat,avg_lat,..."
    Status head(const std::vector<std::string_view>& words, std::string_view text) {
        if (words.size() != kFigures + 1 || words[1] != "iterations") {
            return expected("a column for the names of one batch file before 'iterations'", text);
        }
        std::string_view rank = words[2];
        const bool is_rank = rank.ends_with(kPercentile);
        rank.remove_suffix(is_rank ? kPercentile.size() : 0);
        const std::optional<double> percentile = amount(rank, 100);
        if (!is_rank || !percentile || !text.ends_with(kOtherColumns)) {
            return expected("the columns of ucx_perftest -v", text);
        }
        percentile_ = *percentile;
        has_head_ = true;
        return {};
    }

    Status row(const std::vector<std::string_view>& words, std::string_view text) {
        if (words.size() != kFigures + 1) {
            return expected(fmt::format("{} columns", kFigures + 1), text);
        }
        if (words[1].starts_with("[thread ")) {
            return {}; // A report during the run.
        }
        PerftestRow row;
        row.percentile = percentile_;
        if (!name(words[0], row)) {
            return expected("a test and its size as name, such as am_lat_8", words[0]);
        }
        const std::optional<std::uint64_t> iterations = number<std::uint64_t>(words[1]);
        const std::optional<double> percentile = amount(words[2], kMicrosecondsMax);
        const std::optional<double> overall = amount(words[4], kMicrosecondsMax);
        const std::optional<double> bandwidth = amount(words[6], 1e12);
        if (!iterations || *iterations == 0) {
            return expected("a number of iterations", words[1]);
        }
        if (!percentile || !overall || *overall == 0 || !bandwidth) {
            return expected("times in microseconds and a bandwidth in MB/s", text);
        }
        row.iterations = *iterations;
        row.percentile_ns = *percentile * kNsPerUs;
        row.overall_ns = *overall * kNsPerUs;
        row.bytes_per_ns = *bandwidth * kBytesPerMb / 1e9;
        keep(std::move(row));
        return {};
    }

    static bool name(std::string_view word, PerftestRow& row) {
        const std::size_t last = word.rfind('_');
        if (last == std::string_view::npos || last == 0) {
            return false;
        }
        const std::optional<std::uint64_t> bytes = number<std::uint64_t>(word.substr(last + 1));
        row.test = word.substr(0, last);
        row.bytes = bytes.value_or(0);
        return bytes && *bytes >= 1 && *bytes <= kBytesMax;
    }

    void keep(PerftestRow row) {
        const auto same = std::find_if(rows_.begin(), rows_.end(), [&](const PerftestRow& other) {
            return other.test == row.test && other.bytes == row.bytes &&
                   other.percentile == row.percentile;
        });
        if (same != rows_.end()) {
            *same = std::move(row);
        } else {
            rows_.push_back(std::move(row));
        }
    }

    int number_ = 0;
    bool has_head_ = false;
    double percentile_ = 50;
    std::vector<PerftestRow> rows_;
};

} // namespace

Result<std::vector<PerftestRow>> parse_perftest(std::string_view text) {
    Reader reader;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (Status status = reader.line(line); !status.ok()) {
            return status;
        }
    }
    return reader.take();
}

} // namespace ucg::tools
