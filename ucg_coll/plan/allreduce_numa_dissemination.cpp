// Allreduce by dissemination in shared memory: in step i each rank combines its partial result with
// that of the rank 2^i away, which it reads where it lies. Counts that are no power of two: excess
// ranks hand in and fetch. Li, Hoefler and Snir (HPDC 2013), section 2.3. Partners exchange, so
// that all ranks combine in rank order and come to the same bits.
#include <bit>

#include "ucg_coll/plan/fold.hpp"
#include "ucg_coll/plan/shared_pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

// A partner's signal in one strip says that it has read the strip before.
constexpr std::uint32_t kRotation = 2;

unsigned steps_of(Rank count) {
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(count))) - 1;
}

/// Two windows, and a partial result before each step.
std::uint32_t places(Rank count) {
    return kRotation * (2 + steps_of(count));
}

Strips strips_of(const Facts& facts, const graph::Request& request) {
    return strips_for(facts.shared, request.bytes, request.element_bytes, kRotation,
                      places(request.rank_count));
}

bool eligible(const Facts& facts, const graph::Request& request) {
    return strips_fit(facts, request, places(request.rank_count));
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    return publish_ns(facts, request.bytes) + meet_ns(facts) +
           for_strips_ns(strips_of(facts, request), [&](std::uint64_t bytes) {
               return cost::dissemination_ns(facts.shared.node, bytes);
           });
}

/// One rank's part in one strip after the other.
class Dissemination {
  public:
    Dissemination(Builder& builder, const Facts& facts, const graph::Request& request)
        : builder_(builder), request_(request),
          team_(Team::whole(request.rank_count, builder.rank())), fold_(team_),
          strips_(strips_of(facts, request)) {
        for (unsigned step = 0; step < steps_of(request.rank_count); ++step) {
            partials_.push_back(builder.scratch(strips_.window_bytes()));
        }
    }

    void run(const Facts& facts) {
        builder_.window(strips_.window_bytes());
        OpIds last = for_each_strip(builder_, strips_, 1, [&](const Strip& strip) {
            return fold_.acts() ? act(strip) : hand_in_and_fetch(strip);
        });
        meet(builder_, facts, team_, last);
    }

  private:
    StripOps hand_in_and_fetch(const Strip& strip) {
        const Rank actor = team_.rank(fold_.partner());
        const OpId published = builder_.publish(source(strip), strip.after);
        builder_.signal(actor, std::array{published});
        const OpId ready = builder_.await(actor);
        const OpId copied =
            builder_.copy(at_rank(actor, target(strip)), target(strip), std::array{ready});
        return {published, {copied}};
    }

    StripOps act(const Strip& strip) {
        StripOps ops{begin(strip), {}};
        ops.last = {ops.first};
        for (unsigned step = 0; step < partials_.size(); ++step) {
            const Rank position = fold_.position() ^ static_cast<Rank>(1U << step);
            const Rank peer = team_.rank(fold_.member(position));
            builder_.signal(peer, ops.last);
            const OpId ready = builder_.await(peer);
            const Slice mine = partial(strip, step, fold_.position());
            const Slice theirs = at_rank(peer, partial(strip, step, position));
            const bool lower = fold_.position() < position;
            const bool last = step + 1 == partials_.size();
            ops.last = {
                builder_.reduce(std::array{lower ? mine : theirs, lower ? theirs : mine},
                                last ? target(strip) : strip.scratch(partials_[step + 1], strips_),
                                std::array{ready, ops.last.front()})};
        }
        if (fold_.partner() != kNoRank) {
            ops.last = {builder_.publish(target(strip), ops.last)};
            ops.last = {builder_.signal(team_.rank(fold_.partner()), ops.last)};
        }
        return ops;
    }

    /// Makes what the first step reads. In place it lies in scratch, since the result will stand
    /// where the contribution was.
    OpId begin(const Strip& strip) {
        if (fold_.partner() != kNoRank) {
            const Rank other = team_.rank(fold_.partner());
            const OpId ready = builder_.await(other, strip.after);
            const Slice theirs = at_rank(other, source(strip));
            const bool lower = builder_.rank() < other;
            return builder_.reduce(
                std::array{lower ? source(strip) : theirs, lower ? theirs : source(strip)},
                strip.scratch(partials_[0], strips_), std::array{ready});
        }
        return request_.in_place
                   ? builder_.copy(source(strip), strip.scratch(partials_[0], strips_), strip.after)
                   : builder_.publish(source(strip), strip.after);
    }

    /// The partial result of who acts at `position`, before a step.
    Slice partial(const Strip& strip, unsigned step, Rank position) const {
        const bool stands_for_two = position < team_.size() - fold_.size();
        return step == 0 && !stands_for_two && !request_.in_place
                   ? source(strip)
                   : strip.scratch(partials_[step], strips_);
    }

    Slice source(const Strip& strip) const { return strip.of(contribution(builder_, request_)); }
    Slice target(const Strip& strip) const { return strip.of(builder_.output(0, request_.bytes)); }

    Builder& builder_;
    const graph::Request& request_;
    Team team_;
    Fold fold_;
    Strips strips_;
    std::vector<Slice> partials_;
};

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceNumaDissemination.name);
    Dissemination(builder, facts, request).run(facts);
    return builder.finish();
}

} // namespace

const Algorithm kAllreduceNumaDissemination = {
    .name = "numa_dissemination",
    .collective = graph::Collective::allreduce,
    .summary = "partners at growing distances read each other (Li, Hoefler, Snir 2013)",
    .eligible = eligible,
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeedsSharedMemory,
};

} // namespace ucg::plan
