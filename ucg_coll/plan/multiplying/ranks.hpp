// Internal to choice.hpp: prices schedules of recursive multiplying rank by rank, where all links
// are equal. A sum over phases cannot tell that the rank that is late after one phase need not be
// the one that has most to do in the next.
#pragma once

#include <limits>
#include <vector>

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/multiplying/seats.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Prices one schedule after another, by a link and for one length of vectors. Keeps its memory
/// between schedules.
class MultiplyingRanks {
  public:
    /// REQUIRES: link.has_plain_messages(bytes). The link must outlive it.
    MultiplyingRanks(const Link& link, std::uint64_t bytes)
        : link_(link), bytes_(bytes), message_(link.message_terms(bytes)) {}

    /// Returns when the last of `rank_count` ranks is done; infinity if that is not before
    /// `limit_ns`. Takes time proportional to the messages of all ranks, or to those of one rank
    /// where all have the same to do. REQUIRES: fits(schedule, rank_count).
    double finish_ns(const MultiplyingSchedule& schedule, Rank rank_count,
                     double limit_ns = std::numeric_limits<double>::infinity());

  private:
    /// A rank that acts: a worker, or a member of the remainder.
    struct Actor {
        double clock_ns = 0;                  ///< When its processor is free.
        double gap_over_ns = 0;               ///< When its next message may leave.
        double left_ns = 0;                   ///< When its latest message has left.
        std::vector<double> arrivals_ns = {}; ///< When messages arrive that it has not taken yet.
    };

    void start(Rank workers, Rank members);
    /// Returns when the last acting rank is free and all messages sent have left.
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
    Rank reduced_operands_ = 0;  ///< Of the latest reduction; most have as many as the one before.
    double reduced_ns_ = 0;      ///< What that reduction costs.
    std::vector<Actor> workers_; ///< Only one where all ranks have the same to do.
    std::vector<Actor> members_;
};

} // namespace ucg::plan
