// Alltoall without contention on a tree of switches: Faraj and Yuan, "Message scheduling for
// all-to-all personalized communication on Ethernet switched clusters", IPDPS 2005. The schedule is
// ucg_coll/aapc; here it becomes sends, receives, signals and awaits.
#include <algorithm>
#include <array>
#include <span>

#include "ucg_coll/plan/block_pieces.hpp"
#include "ucg_coll/plan/network.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {
namespace {

using aapc::Signaller;
using graph::Builder;
using graph::OpId;

/// Writes one rank's steps.
class Writer {
  public:
    /// `ranks` are those of the schedule's positions.
    Writer(Builder& builder, std::vector<aapc::Step> steps, Signaller signaller,
           std::span<const Rank> ranks, const BlockMap& source, const BlockMap& target)
        : builder_(builder), steps_(std::move(steps)), signaller_(signaller), ranks_(ranks),
          source_(source), target_(target), received_(steps_.size(), graph::kNoOp) {}

    void write() {
        builder_.copy(source_.block(builder_.rank()), target_.block(builder_.rank()));
        post_until_send(0);
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            if (!sends(i)) {
                signal(steps_[i], std::array{received_[i]});
            } else if (steps_[i].within_node) {
                const Rank to = rank(steps_[i].message.message.target);
                builder_.send(to, source_.block(to));
            } else {
                post_until_send(i + 1);
                send(i);
            }
        }
    }

  private:
    Rank rank(aapc::Position position) const { return ranks_[position]; }
    bool sends(std::size_t step) const {
        return rank(steps_[step].message.message.source) == builder_.rank();
    }

    /// Receives of all phases up to that of the own next send to another host, from step `first`
    /// on. A send waits for its receive, and others for that send: where a rank's receives of a
    /// phase stand behind a send of its own of an earlier one, ranks can wait for one another in a
    /// circle.
    void post_until_send(std::size_t first) {
        posted_ = std::max(posted_, first);
        for (; posted_ < steps_.size(); ++posted_) {
            if (!sends(posted_)) {
                const Rank from = rank(steps_[posted_].message.message.source);
                received_[posted_] = builder_.recv(from, target_.block(from));
            } else if (!steps_[posted_].within_node) {
                return;
            }
        }
    }

    /// One after the other. What is empty keeps its turn, since others rely on it for theirs.
    void send(std::size_t i) {
        const Rank to = rank(steps_[i].message.message.target);
        for (const aapc::Position other : steps_[i].awaits) {
            before_.push_back(builder_.await(rank(other)));
        }
        for (const std::uint32_t earlier : steps_[i].after) {
            before_.push_back(received_[earlier]);
        }
        const OpId sent = builder_.send(to, source_.block(to), before_);
        if (sent != graph::kNoOp) {
            before_.assign(1, sent);
        }
        if (signaller_ == Signaller::source) {
            signal(steps_[i], before_);
        }
    }

    void signal(const aapc::Step& step, Builder::After after) {
        for (const aapc::Position other : step.signals) {
            builder_.signal(rank(other), after);
        }
    }

    Builder& builder_;
    std::vector<aapc::Step> steps_;
    Signaller signaller_;
    std::span<const Rank> ranks_;
    const BlockMap& source_;
    const BlockMap& target_;
    std::vector<OpId> received_; ///< By step.
    std::size_t posted_ = 0;     ///< Receives of all steps before it are posted.
    std::vector<OpId> before_;   ///< What the next send of its own comes after.
};

/// In each phase, and on the link that limits, a message and the word that it has gone.
double scheduled_ns(const Facts& facts, const graph::Request& request, double phases) {
    const std::uint64_t block = uniform_bytes(request);
    const Link link = leader_link(facts);
    const double ns_per_byte = facts.network != nullptr ? facts.network->phases_ns_per_byte() : 0;
    const double links_ns = ns_per_byte * static_cast<double>(block);
    return link.copy_ns(block) + phases * link.message_ns(0) +
           std::max(phases * link.message_ns(block), links_ns);
}

graph::Schedule build_steps(const graph::Request& request, Rank rank, std::string_view name,
                            std::vector<aapc::Step> steps, Signaller signaller,
                            std::span<const Rank> ranks) {
    Builder builder(request, rank, name);
    if (request.collective == graph::Collective::alltoall && request.bytes == 0) {
        return builder.finish();
    }
    const Team team = Team::whole(request.rank_count, rank);
    const BlockMap target = output_blocks(builder, request);
    const BlockMap source =
        request.in_place ? set_aside(builder, team, target) : input_blocks(builder, request);
    Writer(builder, std::move(steps), signaller, ranks, source, target).write();
    return builder.finish();
}

// By the tree of links.

bool eligible(const Facts& facts, const graph::Request& request) {
    static_cast<void>(request);
    return facts.network != nullptr;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    return scheduled_ns(facts, request, static_cast<double>(facts.network->phases().count()));
}

graph::Schedule build_for(const Facts& facts, const graph::Request& request, Rank rank,
                          Signaller signaller) {
    const aapc::Phases& phases = facts.network->phases();
    const aapc::Layout& layout = phases.layout();
    std::vector<Rank> ranks;
    ranks.reserve(layout.member_count());
    for (aapc::Position position = 0; position < layout.member_count(); ++position) {
        ranks.push_back(static_cast<Rank>(layout.member(position)));
    }
    const aapc::Position self = layout.position(static_cast<std::uint32_t>(rank));
    return build_steps(request, rank, signaller == Signaller::source ? "aapc" : "aapc:destination",
                       aapc::steps_of(phases, self, signaller), signaller, ranks);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    return build_for(facts, request, rank, Signaller::source);
}

/// Who receives nothing cannot say when it would have come, and lengths of an alltoallv are known
/// to two ranks alone.
Result<graph::Schedule> build_with(const Facts& facts, const graph::Request& request, Rank rank,
                                   std::string_view argument) {
    if (argument == "source") {
        return build_for(facts, request, rank, Signaller::source);
    }
    if (argument != "destination") {
        return failure(Code::invalid_argument, "expected source or destination");
    }
    if (request.collective == graph::Collective::alltoallv) {
        return failure(Code::unsupported, "the blocks of an alltoallv may be empty, and who "
                                          "receives nothing cannot tell when");
    }
    return build_for(facts, request, rank, Signaller::destination);
}

// By a list that was loaded.

bool is_loaded(const Facts& facts, const graph::Request& request) {
    static_cast<void>(request);
    return facts.loaded != nullptr;
}

double loaded_ns(const Facts& facts, const graph::Request& request) {
    return scheduled_ns(facts, request, static_cast<double>(facts.loaded->listed->phase_count));
}

graph::Schedule build_loaded(const Facts& facts, const graph::Request& request, Rank rank) {
    const LoadedSchedule& loaded = *facts.loaded;
    const auto own = std::find(loaded.ranks.begin(), loaded.ranks.end(), rank);
    const auto position = static_cast<aapc::Position>(own - loaded.ranks.begin());
    return build_steps(request, rank, "file:" + loaded.path,
                       aapc::steps_of(*loaded.listed, position), Signaller::source, loaded.ranks);
}

Result<graph::Schedule> build_loaded_from(const Facts& facts, const graph::Request& request,
                                          Rank rank, std::string_view argument) {
    if (argument != facts.loaded->path) {
        return failure(Code::invalid_argument, "what is loaded is {}", facts.loaded->path);
    }
    return build_loaded(facts, request, rank);
}

template <graph::Collective collective>
constexpr Algorithm loaded_row() {
    return {
        .name = "file",
        .collective = collective,
        .summary = "phases and synchronisations that were loaded from a file (ucg_aapc)",
        .eligible = is_loaded,
        .cost_ns = loaded_ns,
        .build = build_loaded,
        .needs = "a schedule that was loaded when the context was made, and one rank on each of "
                 "its machines",
        .build_with = build_loaded_from,
        .argument = "the file's path",
    };
}

template <graph::Collective collective>
constexpr Algorithm row() {
    return {
        .name = "aapc",
        .collective = collective,
        .summary = "phases without contention on a tree of switches (Faraj, Yuan 2005)",
        .eligible = eligible,
        .cost_ns = cost_ns,
        .build = build,
        .needs = "a file that describes the network between the hosts (UCG_TOPOLOGY)",
        .build_with = build_with,
        .argument = "who says that a message has gone, source or destination",
    };
}

} // namespace

const Algorithm kAlltoallAapc = row<graph::Collective::alltoall>();
const Algorithm kAlltoallvAapc = row<graph::Collective::alltoallv>();
const Algorithm kAlltoallFile = loaded_row<graph::Collective::alltoall>();
const Algorithm kAlltoallvFile = loaded_row<graph::Collective::alltoallv>();

} // namespace ucg::plan
