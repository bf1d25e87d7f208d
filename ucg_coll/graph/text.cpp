#include "ucg_coll/graph/text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ucg_coll/graph/print.hpp"

namespace ucg::graph {

namespace {

bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/// Returns a word as it is, and any other text in double quotes, with \" \\ and \xHH.
std::string quoted(std::string_view text) {
    bool plain = !text.empty();
    for (const char c : text) {
        plain = plain && is_word_character(c);
    }
    if (plain) {
        return std::string(text);
    }
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        } else {
            result += c;
        }
    }
    return result + '"';
}

std::string dependencies_text(const Schedule& schedule, std::uint32_t index) {
    const IndexRange range = dependency_range(schedule, index);
    std::string text;
    for (std::uint32_t d = range.first; d < range.last; ++d) {
        const std::uint32_t op = schedule.dependencies[d].op;
        const std::uint32_t distance = schedule.dependencies[d].distance;
        text += fmt::format("{} {}", text.empty() ? " after" : "", op);
        if (distance > 0) {
            text += fmt::format("(-{})", distance);
        }
    }
    return text;
}

constexpr std::uint64_t kDistanceMax = 15;
constexpr std::uint64_t kOpMax = kOpsMax - 1;
constexpr std::uint64_t kOperandsMax = 0xffff;

/// Reads the text line by line, one token at a time. The first mistake is kept; after it all tokens
/// read as empty, so that not every caller has to check for failure.
class Parser {
  public:
    explicit Parser(std::string_view text) : rest_(text) {}

    Result<Schedule> run();

  private:
    void parse_header();
    void parse_repeat();
    void close_repeat();
    void parse_op();
    void parse_operands(Op& op);
    void parse_dependencies();
    void parse_dependency();
    Slice parse_slice();
    Stride parse_stride();
    OpKind parse_kind();
    std::string parse_name();
    std::string parse_quoted();
    char parse_escape();

    bool next_line();
    void skip_space();
    std::string_view peek_token();
    bool accept(std::string_view token);
    void require(std::string_view token);
    std::uint64_t number(std::string_view what, std::uint64_t max);
    std::uint64_t number(std::string_view what) {
        return number(what, std::numeric_limits<std::uint64_t>::max());
    }
    Rank rank();
    void fail(std::string_view expected);
    bool failed() const { return !status_.ok(); }

    std::string_view rest_; // The lines behind line_.
    std::string_view line_;
    std::size_t column_ = 0; // The cursor, as an index into line_.
    std::size_t line_number_ = 0;
    Status status_;
    Schedule schedule_;
};

/// Goes to the next line that is not empty and not a comment. Returns false if there is none, or
/// after a mistake.
bool Parser::next_line() {
    while (!rest_.empty() && !failed()) {
        const std::size_t end = rest_.find('\n');
        line_ = rest_.substr(0, end);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
        column_ = 0;
        ++line_number_;
        skip_space();
        if (column_ < line_.size() && line_[column_] != '#') {
            return true;
        }
    }
    return false;
}

void Parser::skip_space() {
    while (column_ < line_.size() &&
           (line_[column_] == ' ' || line_[column_] == '\t' || line_[column_] == '\r')) {
        ++column_;
    }
}

/// Moves the cursor over white space and returns the token at the cursor: digits, a word, "->",
/// "..", or one character; empty at the end of the line and after a mistake.
std::string_view Parser::peek_token() {
    if (failed()) {
        return {};
    }
    skip_space();
    const std::string_view here = line_.substr(column_);
    for (const std::string_view pair : {"->", ".."}) {
        if (here.substr(0, 2) == pair) {
            return pair;
        }
    }
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto is_letter = [&](char c) { return is_word_character(c) && c != '-' && c != '.'; };
    std::size_t length = 0;
    if (!here.empty() && is_digit(here[0])) {
        while (length < here.size() && is_digit(here[length])) {
            ++length;
        }
    } else {
        while (length < here.size() && is_letter(here[length])) {
            ++length;
        }
    }
    return here.substr(0, std::max<std::size_t>(length, 1));
}

bool Parser::accept(std::string_view token) {
    if (failed() || peek_token() != token) {
        return false;
    }
    column_ += token.size();
    return true;
}

void Parser::require(std::string_view token) {
    if (!accept(token)) {
        fail(fmt::format("\"{}\"", token));
    }
}

void Parser::fail(std::string_view expected) {
    if (failed()) {
        return;
    }
    const std::string_view token = peek_token(); // This also moves the cursor to it.
    const std::string found = token.empty() ? "the end of the line" : fmt::format("\"{}\"", token);
    status_ = failure(Code::invalid_argument, "line {}, column {}: expected {}, found {}",
                      line_number_, column_ + 1, expected, found);
}

std::uint64_t Parser::number(std::string_view what, std::uint64_t max) {
    const std::string_view token = peek_token();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (token.empty() || error == std::errc::invalid_argument) {
        fail(what);
        return 0;
    }
    if (error != std::errc() || value > max) {
        fail(fmt::format("{} of at most {}", what, max));
        return 0;
    }
    column_ += token.size();
    return value;
}

/// Reads a rank, or "-1" for none.
Rank Parser::rank() {
    if (accept("-")) {
        static_cast<void>(number("1", 1));
        return kNoRank;
    }
    return static_cast<Rank>(number("a rank", std::numeric_limits<Rank>::max()));
}

char Parser::parse_escape() {
    const std::string_view here = line_.substr(column_);
    if (here.substr(0, 1) == "x" && here.size() >= 3) {
        unsigned value = 0;
        const auto [end, error] = std::from_chars(here.data() + 1, here.data() + 3, value, 16);
        if (error == std::errc() && end == here.data() + 3) {
            column_ += 3;
            return static_cast<char>(value);
        }
    } else if (!here.empty() && (here[0] == '"' || here[0] == '\\')) {
        ++column_;
        return here[0];
    }
    fail("one of \\\", \\\\, \\xHH");
    return 0;
}

std::string Parser::parse_quoted() {
    require("\"");
    std::string result;
    while (!failed()) {
        if (column_ >= line_.size()) {
            fail("a closing quote");
            break;
        }
        const char c = line_[column_++];
        if (c == '"') {
            break;
        }
        result += c == '\\' ? parse_escape() : c;
    }
    return result;
}

std::string Parser::parse_name() {
    if (peek_token() == "\"") {
        return parse_quoted();
    }
    const std::size_t begin = column_;
    while (!failed() && column_ < line_.size() && is_word_character(line_[column_])) {
        ++column_;
    }
    if (column_ == begin) {
        fail("the name of an algorithm");
    }
    return std::string(line_.substr(begin, column_ - begin));
}

void Parser::parse_header() {
    require("schedule");
    const std::string_view word = peek_token();
    const std::optional<Collective> collective = parse_collective(word);
    if (!collective) {
        fail("the name of a collective");
        return;
    }
    schedule_.collective = *collective;
    column_ += word.size();
    skip_space();
    schedule_.algorithm = parse_name();
    require("rank");
    schedule_.rank = rank();
    require("of");
    schedule_.rank_count = rank();
    require("input");
    schedule_.input_bytes = number("a number of bytes");
    require("output");
    schedule_.output_bytes = number("a number of bytes");
    require("scratch");
    schedule_.scratch_bytes = number("a number of bytes");
    require("element");
    schedule_.element_bytes = number("a number of bytes");
    schedule_.in_place = accept("in_place");
    schedule_.exposed = accept("exposed");
    schedule_.helped = accept("helped");
    if (accept("own_scratch")) {
        schedule_.own_scratch_bytes = number("a number of bytes");
    }
    if (accept("staging_buffer")) {
        schedule_.staging_buffer_bytes = number("a number of bytes");
    }
    schedule_.flag_slots = accept("flag_slot");
    if (schedule_.flag_slots) {
        schedule_.flag_slot_bytes = number("a number of bytes");
    }
}

/// Checks that all ops of the repeat that was read last have been read.
void Parser::close_repeat() {
    if (failed() || schedule_.repeats.empty()) {
        return;
    }
    const Repeat& repeat = schedule_.repeats.back();
    const std::uint64_t end = std::uint64_t{repeat.first_op} + repeat.op_count;
    if (end > schedule_.ops.size()) {
        status_ =
            failure(Code::invalid_argument, "line {}: the repeat of ops {}..{} has no op {} yet",
                    line_number_, repeat.first_op, end - 1, schedule_.ops.size());
    }
}

void Parser::parse_repeat() {
    close_repeat();
    Repeat repeat;
    const std::size_t begin = column_;
    repeat.first_op = static_cast<std::uint32_t>(number("the number of an op", kOpMax));
    if (repeat.first_op != schedule_.ops.size() && !failed()) {
        column_ = begin;
        fail(fmt::format("op {}, before which the repeat stands", schedule_.ops.size()));
    }
    require("..");
    const std::uint64_t last = number("the number of an op", kOpMax);
    if (last < repeat.first_op) {
        fail("a range that does not end before it begins");
    }
    repeat.op_count = static_cast<std::uint32_t>(last - repeat.first_op + 1);
    require("times");
    repeat.iterations = number("a number of iterations");
    require("segment");
    repeat.segment_bytes = number("a number of bytes");
    require("last");
    repeat.last_bytes = number("a number of bytes");
    if (accept("rotation")) {
        repeat.rotation = static_cast<std::uint32_t>(number("a number of buffers", kRotationMax));
    }
    schedule_.repeats.push_back(repeat);
}

OpKind Parser::parse_kind() {
    for (const OpKind kind : kOpKinds) {
        if (accept(name(kind))) {
            return kind;
        }
    }
    fail("send, recv, copy, reduce, signal, await, publish or share");
    return OpKind::copy;
}

Stride Parser::parse_stride() {
    // No white space may come between a slice and its stride.
    const char here = column_ < line_.size() ? line_[column_] : ' ';
    if (here == '+' || here == '%') {
        ++column_;
    }
    return here == '+' ? Stride::advance : here == '%' ? Stride::rotate : Stride::fixed;
}

Slice Parser::parse_slice() {
    Slice slice;
    bool found = false;
    for (const BufferKind kind : kBufferKinds) {
        if (!found && accept(name(kind))) {
            slice.buffer = kind;
            found = true;
        }
    }
    if (!found) {
        fail("input, output, scratch or flag_slot");
        return slice;
    }
    slice.owner = accept("@") ? rank() : schedule_.rank;
    require("[");
    slice.offset = number("an offset");
    require(":");
    const std::uint64_t end = number("an end offset");
    if (end < slice.offset) {
        fail("a slice that does not end before it begins");
    }
    slice.length = end - slice.offset;
    require("]");
    if (!failed()) {
        slice.stride = parse_stride();
    }
    return slice;
}

void Parser::parse_operands(Op& op) {
    op.first_operand = static_cast<std::uint32_t>(schedule_.operands.size());
    while (!failed() && peek_token() != "->") {
        if (op.operand_count == kOperandsMax) {
            fail("at most 65535 operands");
            return;
        }
        schedule_.operands.push_back(parse_slice());
        ++op.operand_count;
    }
}

void Parser::parse_dependency() {
    Dependency dependency;
    dependency.op = number("the number of an op", kOpMax) & kOpMax;
    if (accept("(")) {
        require("-");
        dependency.distance = number("a number of iterations", kDistanceMax) & kDistanceMax;
        require(")");
    }
    schedule_.dependencies.push_back(dependency);
}

void Parser::parse_dependencies() {
    if (!accept("after")) {
        return;
    }
    do {
        parse_dependency();
    } while (!failed() && !peek_token().empty());
}

void Parser::parse_op() {
    const std::size_t begin = column_;
    const std::uint64_t index = number("the number of an op, or \"repeat\"", kOpMax);
    if (index != schedule_.ops.size()) {
        column_ = begin;
        fail(fmt::format("op {}", schedule_.ops.size()));
    }
    require(":");
    Op op;
    op.first_dependency = static_cast<std::uint32_t>(schedule_.dependencies.size());
    op.kind = parse_kind();
    switch (op.kind) {
    case OpKind::send:
        require("to");
        op.peer = rank();
        op.source = parse_slice();
        break;
    case OpKind::recv:
        require("from");
        op.peer = rank();
        op.target = parse_slice();
        break;
    case OpKind::copy:
    case OpKind::publish: op.source = parse_slice(); break;
    case OpKind::share:
        op.source = parse_slice();
        op.target = {0, op.source.length, schedule_.rank, BufferKind::flag_slot, Stride::fixed};
        break;
    case OpKind::reduce: parse_operands(op); break;
    case OpKind::signal:
    case OpKind::await: op.peer = rank(); break;
    }
    if (op.kind == OpKind::copy || op.kind == OpKind::reduce) {
        require("->");
        op.target = parse_slice();
    }
    parse_dependencies();
    schedule_.ops.push_back(op);
}

Result<Schedule> Parser::run() {
    const auto end_line = [&] {
        if (!failed() && !peek_token().empty()) {
            fail("the end of the line");
        }
    };
    if (!next_line()) {
        return failure(Code::invalid_argument,
                       "line {}, column 1: expected \"schedule\", found the end of the text",
                       line_number_ + 1);
    }
    parse_header();
    end_line();
    while (next_line()) {
        if (accept("repeat")) {
            parse_repeat();
        } else {
            parse_op();
        }
        end_line();
    }
    close_repeat();
    if (failed()) {
        return status_;
    }
    return std::move(schedule_);
}

} // namespace

std::string to_text(const Schedule& schedule) {
    std::string text = fmt::format(
        "schedule {} {} rank {} of {} input {} output {} scratch {} element {}{}{}{}{}{}{}\n",
        name(schedule.collective), quoted(schedule.algorithm), schedule.rank, schedule.rank_count,
        schedule.input_bytes, schedule.output_bytes, schedule.scratch_bytes, schedule.element_bytes,
        schedule.in_place ? " in_place" : "", schedule.exposed ? " exposed" : "",
        schedule.helped ? " helped" : "",
        schedule.own_scratch_bytes > 0 ? fmt::format(" own_scratch {}", schedule.own_scratch_bytes)
                                       : "",
        schedule.staging_buffer_bytes > 0
            ? fmt::format(" staging_buffer {}", schedule.staging_buffer_bytes)
            : "",
        schedule.flag_slots ? fmt::format(" flag_slot {}", schedule.flag_slot_bytes) : "");
    std::size_t next_repeat = 0;
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        if (next_repeat < schedule.repeats.size() && schedule.repeats[next_repeat].first_op == i) {
            const Repeat& repeat = schedule.repeats[next_repeat++];
            text += fmt::format("repeat {}..{} times {} segment {} last {} rotation {}\n", i,
                                i + repeat.op_count - 1, repeat.iterations, repeat.segment_bytes,
                                repeat.last_bytes, repeat.rotation);
        }
        text += fmt::format("{}: {}{}\n", i, op_text(schedule, schedule.ops[i]),
                            dependencies_text(schedule, i));
    }
    return text;
}

Result<Schedule> parse_text(std::string_view text) {
    return Parser(text).run();
}

} // namespace ucg::graph
