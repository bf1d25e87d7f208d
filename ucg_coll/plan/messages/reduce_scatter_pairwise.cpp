// Pairwise reduce-scatter: every member sends each block of its vector to the block's owner, who
// combines the contributions in rank order. Serves any operator. Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", 2005, section 3.4.
//
// Contributions arrive from the members above, then, starting over, from those below. Two running
// results, of the upper part (which begins with the own contribution) and of the lower part, keep
// the order; contributions are taken into them several at a time.
#include <algorithm>
#include <array>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

/// Number of contributions that are combined at a time. As many again are on their way meanwhile.
constexpr Rank kFanIn = 8;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_blocks(request)),
        3 * all_blocks(request), [&](const Link& link) {
            return reduce_scatter_pairwise_ns(link, request.rank_count, longest_block(request));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kReduceScatterPairwise.name);
    reduce_scatter_pairwise(builder, Team::whole(request.rank_count, rank),
                            reduce_scatter_source(builder, request),
                            reduce_scatter_target(builder, request));
    return builder.finish();
}

/// A result that grows by operands on its right.
class Running {
  public:
    void start(Slice first) { value_ = {first}; }

    void append(Builder& builder, std::span<const Slice> operands) {
        if (operands.empty()) {
            return;
        }
        value_.insert(value_.end(), operands.begin(), operands.end());
        if (accumulator_.length == 0) {
            accumulator_ = builder.scratch(operands[0].length);
        }
        builder.reduce(value_, accumulator_);
        value_ = {accumulator_};
    }

    /// The result so far, in one slice; none if nothing was added.
    const std::vector<Slice>& value() const { return value_; }

  private:
    Slice accumulator_;
    std::vector<Slice> value_;
};

/// One member's part.
class Exchange {
  public:
    Exchange(Builder& builder, const Team& team, const BlockMap& source, Slice target)
        : builder_(builder), team_(team), source_(source), target_(target), sent_(2 * kFanIn) {
        const Rank places = std::min(2 * kFanIn, team.size() - 1);
        for (Rank i = 0; i < places; ++i) {
            places_.push_back(builder.scratch(target.length));
        }
    }

    void run() {
        if (team_.size() - 1 <= 2 * kFanIn) {
            post(1, team_.size());
            combine_all();
            return;
        }
        upper_.start(source_.block(team_.index()));
        post(1, 1 + kFanIn);
        for (Rank first = 1; first < team_.size(); first += kFanIn) {
            // The next batch is on its way while this one is combined.
            post(first + kFanIn, std::min(first + 2 * kFanIn, team_.size()));
            combine(first, std::min(first + kFanIn, team_.size()));
        }
        std::vector<Slice> operands = lower_.value();
        operands.insert(operands.end(), upper_.value().begin(), upper_.value().end());
        reduce_to_result(builder_, operands, target_);
    }

  private:
    /// Returns where the contribution of the member that is `step` above arrives.
    Slice place(Rank step) const {
        return places_[static_cast<std::size_t>(step - 1) % places_.size()];
    }

    void post(Rank first_step, Rank last_step) {
        // Sends come first: a receive may copy a message that is there already, which takes long,
        // and ranks that wait for the sends can copy meanwhile.
        for (Rank step = first_step; step < last_step; ++step) {
            const Rank to = neighbour_index(team_, -step);
            sent_.push({builder_.send(team_.rank(to), source_.block(to), sent_.after())});
        }
        for (Rank step = first_step; step < last_step; ++step) {
            builder_.recv(team_.rank(neighbour_index(team_, step)), place(step));
        }
    }

    void combine(Rank first_step, Rank last_step) {
        // From this step on contributions come from the members below.
        const Rank border = std::clamp(team_.size() - team_.index(), first_step, last_step);
        upper_.append(builder_, places_of(first_step, border));
        lower_.append(builder_, places_of(border, last_step));
    }

    void combine_all() {
        const Rank border = team_.size() - team_.index();
        std::vector<Slice> operands = places_of(border, team_.size());
        operands.push_back(source_.block(team_.index()));
        const std::vector<Slice> above = places_of(1, border);
        operands.insert(operands.end(), above.begin(), above.end());
        reduce_to_result(builder_, operands, target_);
    }

    std::vector<Slice> places_of(Rank first_step, Rank last_step) const {
        std::vector<Slice> slices;
        for (Rank step = first_step; step < last_step; ++step) {
            slices.push_back(place(step));
        }
        return slices;
    }

    Builder& builder_;
    const Team& team_;
    const BlockMap& source_;
    Slice target_;
    MessageWindow sent_;
    std::vector<Slice> places_; ///< Scratch, used again and again.
    Running upper_;
    Running lower_;
};

} // namespace

void reduce_scatter_pairwise(Builder& builder, const Team& team, const BlockMap& source,
                             Slice target) {
    Exchange(builder, team, source, target).run();
}

double reduce_scatter_pairwise_ns(const Link& link, Rank count, std::uint64_t longest) {
    if (count == 1) {
        return link.copy_ns(longest);
    }
    const std::uint64_t total = longest * static_cast<std::uint64_t>(count);
    // The messages of a batch are on their way at once.
    const double contention_ns = count > 2 ? link.contention_ns(total - longest) : 0;
    const auto steps_ns = [&](const Link& step) {
        return step.phase_ns(longest, Source::settled, Link::round_of(count - 1));
    };
    const double messages_ns = link.to_all_ns(1, count, steps_ns) + contention_ns;
    if (count - 1 <= 2 * kFanIn) { // All are combined in one pass.
        return messages_ns + link.reduce_arrived_ns(static_cast<unsigned>(count), longest, total);
    }
    const auto batches = static_cast<double>(
        divide_up(static_cast<std::uint64_t>(count - 1), static_cast<std::uint64_t>(kFanIn)));
    const double batch_ns = link.reduce_arrived_ns(kFanIn + 1, longest, total);
    // Across hosts the next batch is on its way while one is combined; on a host both are work.
    return link.is_across_hosts() ? std::max(messages_ns, batches * batch_ns) + batch_ns
                                  : messages_ns + batches * batch_ns;
}

constexpr Algorithm kReduceScatterPairwise = {
    .name = "pairwise",
    .collective = graph::Collective::reduce_scatter,
    .summary =
        "every block to its owner, combined in rank order (Thakur, Rabenseifner, Gropp 2005)",
    .cost_ns = cost_ns,
    .build = build,
};

constexpr Algorithm kReduceScatterBlockPairwise =
    for_collective(kReduceScatterPairwise, graph::Collective::reduce_scatter_block);

} // namespace ucg::plan
