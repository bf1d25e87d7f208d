// The text of recursive multiplying's schedules, both ways.
#include <charconv>

#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::plan {
namespace {

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    Result<MultiplyingSchedule> schedule() {
        MultiplyingSchedule schedule;
        while (good() && !(text_.empty() && schedule.phases.empty())) {
            schedule.phases.push_back(phase());
            if (!good() || position_ == text_.size()) {
                break;
            }
            letter(',', "',' or the end");
        }
        if (!good()) {
            return status_;
        }
        return schedule;
    }

  private:
    bool good() const { return status_.ok(); }

    void fail(std::string_view what) {
        if (!good()) {
            return;
        }
        const std::string found =
            position_ < text_.size() ? fmt::format("'{}'", text_[position_]) : "the end";
        status_ = failure(Code::invalid_argument, "'{}', position {}: expected {}, found {}", text_,
                          position_, what, found);
    }

    void letter(char wanted, std::string_view what) {
        if (!good()) {
            return;
        }
        if (position_ == text_.size() || text_[position_] != wanted) {
            fail(what);
            return;
        }
        ++position_;
    }

    Rank number(std::string_view what) {
        if (!good()) {
            return 0;
        }
        const char* const begin = text_.data() + position_;
        const char* const end = text_.data() + text_.size();
        Rank value = 0;
        // A sign is no part of a number here, though from_chars would take it.
        const bool digit = begin != end && *begin >= '0' && *begin <= '9';
        const auto [rest, error] = std::from_chars(begin, end, value);
        if (!digit || error == std::errc::result_out_of_range) {
            fail(digit ? fmt::format("{} in the range of ranks", what) : std::string(what));
            return 0;
        }
        position_ += static_cast<std::size_t>(rest - begin);
        return value;
    }

    Phase phase() {
        const char kind = position_ < text_.size() ? text_[position_] : '\0';
        ++position_;
        switch (kind) {
        case 'a': return factor_phase(number("the base, a number"));
        case 'c': return folding(PhaseKind::collapse);
        case 'e': return folding(PhaseKind::expand);
        case 'm': return merging(PhaseKind::merge);
        case 'n': return merging(PhaseKind::inverse_merge);
        default:
            --position_;
            fail("a phase: aB, cTmB, eTmB, mRgGaB or nRgGaB");
            return {};
        }
    }

    Phase folding(PhaseKind kind) {
        const Rank threshold = number("the threshold, a number");
        letter('m', "'m' and the base");
        return {kind, number("the base, a number"), threshold, 0};
    }

    Phase merging(PhaseKind kind) {
        const Rank remainder = number("the remainder, a number");
        letter('g', "'g' and the number of groups");
        const Rank groups = number("the number of groups");
        letter('a', "'a' and the base");
        return {kind, number("the base, a number"), remainder, groups};
    }

    std::string_view text_;
    std::size_t position_ = 0;
    Status status_;
};

} // namespace

Result<MultiplyingSchedule> parse_multiplying_schedule(std::string_view text) {
    return Parser(text).schedule();
}

std::string to_text(const Phase& phase) {
    switch (phase.kind) {
    case PhaseKind::factor: return fmt::format("a{}", phase.base);
    case PhaseKind::collapse: return fmt::format("c{}m{}", phase.count, phase.base);
    case PhaseKind::expand: return fmt::format("e{}m{}", phase.count, phase.base);
    case PhaseKind::merge: return fmt::format("m{}g{}a{}", phase.count, phase.groups, phase.base);
    case PhaseKind::inverse_merge:
        return fmt::format("n{}g{}a{}", phase.count, phase.groups, phase.base);
    }
    UCG_ASSERT(false);
    return {};
}

std::string to_text(const MultiplyingSchedule& schedule) {
    std::string text;
    for (const Phase& phase : schedule.phases) {
        text += text.empty() ? "" : ",";
        text += to_text(phase);
    }
    return text;
}

} // namespace ucg::plan
