#include "ucg_coll/plan/multiplying/schedule.hpp"

#include <limits>
#include <optional>

namespace ucg::plan {
namespace {

constexpr std::int64_t kRankMax = std::numeric_limits<Rank>::max();

/// Follows the phases from the first to the last and keeps what they have said so far.
class Reading {
  public:
    explicit Reading(const MultiplyingSchedule& schedule) : phases_(schedule.phases) {}

    Result<Rank> rank_count() {
        for (place_ = 0; place_ < phases_.size(); ++place_) {
            if (Status status = take(phases_[place_]); !status.ok()) {
                return status;
            }
        }
        if (Status status = check_closed(); !status.ok()) {
            return status;
        }
        return total();
    }

  private:
    Status wrong(std::size_t place, const std::string& reason) const {
        return failure(Code::invalid_argument, "phase {} ({}) {}", place + 1,
                       to_text(phases_[place]), reason);
    }
    Status wrong(const std::string& reason) const { return wrong(place_, reason); }

    Status take(const Phase& phase) {
        if (expanded_) {
            return wrong("follows an expand, which is the last phase");
        }
        if (phase.base < 2) {
            return wrong("has a base below 2");
        }
        if (phase.base > kPhaseOperandsMax) {
            return wrong(fmt::format("has a base above {}", kPhaseOperandsMax));
        }
        switch (phase.kind) {
        case PhaseKind::collapse: return take_collapse(phase);
        case PhaseKind::expand: return take_expand(phase);
        case PhaseKind::merge: return take_merge(phase);
        case PhaseKind::inverse_merge:
        case PhaseKind::factor: return take_factor(phase);
        }
        UCG_ASSERT(false);
        return {};
    }

    Status take_collapse(const Phase& phase) {
        if (place_ != 0) {
            return wrong("is a collapse, which is the first phase");
        }
        if (phase.count < phase.base || phase.count % phase.base != 0) {
            return wrong(
                fmt::format("has the threshold {}, which is no positive multiple of the base {}",
                            phase.count, phase.base));
        }
        collapse_ = phase;
        return {};
    }

    Status take_expand(const Phase& phase) {
        if (!collapse_ || collapse_->count != phase.count || collapse_->base != phase.base) {
            return wrong(collapse_ ? fmt::format("does not undo {}", to_text(*collapse_))
                                   : "has no collapse to undo");
        }
        expanded_ = true;
        return {};
    }

    Status take_merge(const Phase& phase) {
        if (place_ != (collapse_ ? 1U : 0U)) {
            return wrong("is a merge, which is the first phase but for a collapse");
        }
        if (phase.count < 1 || phase.groups < 1) {
            return wrong("merges nothing: remainder and groups are at least 1");
        }
        merge_place_ = place_;
        return multiply(phase);
    }

    Status take_factor(const Phase& phase) {
        if (inverse_place_) {
            return wrong("follows an inverse merge, which only an expand may");
        }
        if (phase.kind == PhaseKind::inverse_merge) {
            if (!merge_place_ || phases_[*merge_place_].count != phase.count) {
                return wrong(merge_place_ ? fmt::format("has another remainder than {}",
                                                        to_text(phases_[*merge_place_]))
                                          : "has no merge to undo");
            }
            inverse_place_ = place_;
        }
        return multiply(phase);
    }

    Status multiply(const Phase& phase) {
        product_ *= phase.base;
        return product_ <= kRankMax
                   ? Status()
                   : wrong(fmt::format("takes the product of the bases above {}", kRankMax));
    }

    Status check_closed() const {
        if (merge_place_ && !inverse_place_) {
            return wrong(*merge_place_, "has no inverse merge at the end");
        }
        if (collapse_ && !expanded_) {
            return wrong(0, "has no expand at the end");
        }
        Status status = check_groups(merge_place_);
        return status.ok() ? check_groups(inverse_place_) : status;
    }

    /// Checks that all groups of the face together are the ranks that multiply.
    Status check_groups(std::optional<std::size_t> place) const {
        if (!place) {
            return {};
        }
        const Phase& phase = phases_[*place];
        const std::int64_t ranks = std::int64_t{phase.groups} * phase.base;
        if (ranks != product_) {
            return wrong(*place, fmt::format("has {} groups of {}, {} ranks, but the product of "
                                             "the bases is {}: it needs {} groups",
                                             phase.groups, phase.base, ranks, product_,
                                             product_ / phase.base));
        }
        const std::int64_t operands =
            phase.base + (std::int64_t{phase.count} + phase.groups - 1) / phase.groups;
        return operands <= kPhaseOperandsMax
                   ? Status()
                   : wrong(*place, fmt::format("reduces {} operands at a time, {} are possible",
                                               operands, kPhaseOperandsMax));
    }

    Result<Rank> total() const {
        const std::int64_t acting = product_ + (merge_place_ ? phases_[*merge_place_].count : 0);
        const std::int64_t groups = collapse_ ? collapse_->count / collapse_->base : 0;
        if (acting < groups) {
            return wrong(0, fmt::format("leaves {} ranks at least, but the phases inside are for "
                                        "{}",
                                        groups, acting));
        }
        const std::int64_t ranks = acting + (collapse_ ? groups * (collapse_->base - 1) : 0);
        if (ranks > kRankMax) {
            return failure(Code::invalid_argument, "the phases are for {} ranks, {} are possible",
                           ranks, kRankMax);
        }
        return static_cast<Rank>(ranks);
    }

    const std::vector<Phase>& phases_;
    std::size_t place_ = 0;
    std::int64_t product_ = 1;
    std::optional<Phase> collapse_;
    std::optional<std::size_t> merge_place_;
    std::optional<std::size_t> inverse_place_;
    bool expanded_ = false;
};

} // namespace

Result<Rank> rank_count_of(const MultiplyingSchedule& schedule) {
    return Reading(schedule).rank_count();
}

Status fits(const MultiplyingSchedule& schedule, Rank rank_count) {
    const Result<Rank> count = rank_count_of(schedule);
    if (!count.ok()) {
        return count.status();
    }
    if (*count != rank_count) {
        return failure(Code::invalid_argument, "the schedule '{}' is for {} ranks, not for {}",
                       to_text(schedule), *count, rank_count);
    }
    return {};
}

} // namespace ucg::plan
