// Internal to choice.hpp: when every rank is done with a schedule of recursive multiplying, where
// all links are equal. A sum of phases does not know that who is late after one of them need not be
// who has most to do in the next.
#pragma once

#include <limits>
#include <vector>

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/multiplying/seats.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Priced by a link for one length, one schedule after another. Keeps its memory.
class MultiplyingRanks {
  public:
    /// REQUIRES: link.has_plain_messages(bytes). The link must outlive it.
    MultiplyingRanks(const Link& link, std::uint64_t bytes)
        : link_(link), bytes_(bytes), message_(link.message_terms(bytes)) {}

    /// When the last of `rank_count` ranks is done; infinity if that is not before `limit_ns`.
    /// Takes time in their messages, or in those of one rank where all have the same to do.
    /// REQUIRES: fits(schedule, rank_count).
    double finish_ns(const MultiplyingSchedule& schedule, Rank rank_count,
                     double limit_ns = std::numeric_limits<double>::infinity());

  private:
    /// A rank that acts: a worker, or a member of the remainder.
    struct Actor {
        double clock_ns = 0;
        double gap_over_ns = 0;               ///< The next message may leave,
        double left_ns = 0;                   ///< as the last one has.
        std::vector<double> arrivals_ns = {}; ///< Of what was sent to it and is not yet taken.
    };

    void start(Rank workers, Rank members);
    /// Until when the busiest of those who act has been busy.
    double latest_ns() const;
    double reduce_ns(Rank operands);
    void send(Actor& from, Actor& to) const;
    void take_and_reduce(Actor& actor, Rank operands);
    void collapse(const MultiplyingSeats& seats, const Phase& phase);
    void multiply(const Phase& phase, Rank distance);
    double expand_ns(const MultiplyingSeats& seats, const Phase& phase);
    Actor& actor(const MultiplyingSeats::Part& part) {
        return part.member != kNoRank ? members_[static_cast<std::size_t>(part.member)]
                                      : workers_[static_cast<std::size_t>(part.worker)];
    }

    const Link& link_;
    std::uint64_t bytes_;
    cost::MessageTerms message_;
    Rank reduced_operands_ = 0; ///< Of the latest reduction: most are like the one before.
    double reduced_ns_ = 0;
    std::vector<Actor> workers_; ///< One, where all have the same to do.
    std::vector<Actor> members_;
};

} // namespace ucg::plan
