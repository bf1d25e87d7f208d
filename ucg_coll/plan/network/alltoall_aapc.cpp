// Alltoall without contention on a tree of switches: Faraj and Yuan, "Message scheduling for
// all-to-all personalized communication on Ethernet switched clusters", IPDPS 2005. The schedule is
// ucg_coll/aapc; here it becomes sends, receives, signals and awaits.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/network/network.hpp"
#include "ucg_coll/plan/network/rows.hpp"

namespace ucg::plan {
namespace {

using aapc::Signaller;
using graph::Builder;
using graph::OpId;

/// The largest window: more messages at a time on a link are as good as any number.
constexpr std::uint32_t kWindowMax = 64;

/// The windows on one switch, where a link carries so many messages at a time: 4 hide the signals
/// between phases, and 6 even out lengths that differ (perf/aapc/measured). Where messages meet on
/// links between switches as well, their queues hold up signals and acknowledgements for as long as
/// a window gains.
constexpr std::uint32_t kWindowOneSwitch = 4;
constexpr std::uint32_t kWindowOneSwitchUneven = 6;

/// How many times as long phases of unequal messages take as equal ones of the same mean: measured
/// for lengths of 0 to twice the mean (perf/aapc/measured, topologies b and c).
constexpr double kUneven = 1.1;

/// Writes one rank's steps.
class Writer {
  public:
    /// ranks[position] is the rank at a position of the schedule.
    Writer(Builder& builder, std::vector<aapc::MemberStep> steps, std::span<const Rank> ranks,
           const BlockMap& source, const BlockMap& target)
        : builder_(builder), steps_(std::move(steps)), ranks_(ranks), source_(source),
          target_(target), ended_(steps_.size()) {}

    void write() {
        builder_.copy(source_.block(builder_.rank()), target_.block(builder_.rank()));
        post_receives();
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            if (sends(i)) {
                send(i);
            }
            for (const aapc::Signal& signal : steps_[i].signals) {
                builder_.signal(rank(signal.to), ended_[signal.ended]);
            }
        }
    }

  private:
    Rank rank(aapc::Position position) const { return ranks_[position]; }
    bool sends(std::size_t step) const {
        return rank(steps_[step].message.message.source) == builder_.rank();
    }

    /// Posts all receives first. A send waits for its receive, and other ranks wait for that send:
    /// if a rank's receives came after sends of its own, ranks could wait for one another in a
    /// circle. And where messages differ in length, a rank that is behind would hold up others that
    /// have bytes for it.
    void post_receives() {
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            if (!sends(i)) {
                const Rank from = rank(steps_[i].message.message.source);
                ended_[i].assign(1, builder_.recv(from, target_.block(from)));
            }
        }
    }

    /// Sends the message of step `i`. An empty message keeps its place in the order, since others
    /// rely on it: it has ended when it could have begun.
    void send(std::size_t i) {
        const Rank to = rank(steps_[i].message.message.target);
        const graph::Slice block = source_.block(to);
        std::vector<OpId> before = all_ended(steps_[i].after);
        std::vector<OpId> awaits;
        for (const aapc::Position other : steps_[i].awaits) {
            // In an empty step the first await stands for all that the step waits for. Otherwise
            // each of many empty steps in a row would list what all before it have waited for.
            const bool first = block.length == 0 && awaits.empty();
            awaits.push_back(builder_.await(rank(other), first ? before : std::vector<OpId>()));
        }
        if (block.length == 0) {
            ended_[i] = awaits.empty() ? std::move(before) : std::move(awaits);
            return;
        }
        before.insert(before.end(), awaits.begin(), awaits.end());
        ended_[i].assign(1, builder_.send(to, block, before));
    }

    /// Returns the ops that end the messages of these steps, each of them once.
    std::vector<OpId> all_ended(std::span<const std::uint32_t> steps) const {
        std::vector<OpId> all;
        for (const std::uint32_t step : steps) {
            all.insert(all.end(), ended_[step].begin(), ended_[step].end());
        }
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    Builder& builder_;
    std::vector<aapc::MemberStep> steps_;
    std::span<const Rank> ranks_;
    const BlockMap& source_;
    const BlockMap& target_;
    std::vector<std::vector<OpId>> ended_; ///< By step: the ops that end its message.
};

/// Returns the time of an alltoall in `phases` phases. In each phase, a message and the signal that
/// it has gone pass the link that limits.
double scheduled_ns(const Facts& facts, const graph::Request& request, double phases) {
    const std::uint64_t block = uniform_bytes(request);
    const Link link = leader_link(facts);
    const double ns_per_byte = facts.network != nullptr ? facts.network->phases_ns_per_byte() : 0;
    const double links_ns = ns_per_byte * static_cast<double>(block);
    const double uneven = request.collective == graph::Collective::alltoallv ? kUneven : 1;
    return link.copy_ns(block) + phases * link.message_ns(0) +
           uneven * std::max(phases * link.message_ns(block), links_ns);
}

graph::Schedule build_steps(const graph::Request& request, Rank rank, std::string_view name,
                            std::vector<aapc::MemberStep> steps, std::span<const Rank> ranks) {
    Builder builder(request, rank, name);
    if (request.collective == graph::Collective::alltoall && request.bytes == 0) {
        return builder.finish();
    }
    const Team team = Team::whole(request.rank_count, rank);
    const BlockMap target = output_blocks(builder, request);
    const BlockMap source =
        request.in_place ? set_aside(builder, team, target) : input_blocks(builder, request);
    Writer(builder, std::move(steps), ranks, source, target).write();
    return builder.finish();
}

// Schedules by the tree of links.

double cost_ns(const Facts& facts, const graph::Request& request) {
    return scheduled_ns(facts, request, static_cast<double>(facts.network->phases().count()));
}

/// How messages that pass one link are kept apart.
struct Rule {
    Signaller signaller = Signaller::source;
    std::uint32_t window = 1;
};

std::string name_of(Rule rule) {
    if (rule.signaller == Signaller::destination) {
        return "aapc:destination";
    }
    return rule.window == 1 ? "aapc" : fmt::format("aapc:window{}", rule.window);
}

graph::Schedule build_for(const Facts& facts, const graph::Request& request, Rank rank, Rule rule) {
    const aapc::Phases& phases = facts.network->phases();
    const aapc::Layout& layout = phases.layout();
    std::vector<Rank> ranks;
    ranks.reserve(layout.member_count());
    for (aapc::Position position = 0; position < layout.member_count(); ++position) {
        ranks.push_back(static_cast<Rank>(layout.member(position)));
    }
    const aapc::Position self = layout.position(static_cast<std::uint32_t>(rank));
    return build_steps(request, rank, name_of(rule),
                       aapc::steps_of(phases, self, rule.signaller, rule.window), ranks);
}

Rule usual_rule(const Facts& facts, const graph::Request& request) {
    if (!facts.network->is_one_switch()) {
        return {};
    }
    const bool uneven = request.collective == graph::Collective::alltoallv;
    return {Signaller::source, uneven ? kWindowOneSwitchUneven : kWindowOneSwitch};
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    return build_for(facts, request, rank, usual_rule(facts, request));
}

/// Returns the window of an argument such as "window4"; nothing if it is another argument.
std::optional<std::uint32_t> window_of(std::string_view argument) {
    constexpr std::string_view kWord = "window";
    if (!argument.starts_with(kWord)) {
        return std::nullopt;
    }
    argument.remove_prefix(kWord.size());
    std::uint32_t window = 0;
    const auto [end, error] = std::from_chars(argument.begin(), argument.end(), window);
    const bool whole = error == std::errc() && end == argument.end();
    return whole && window > 0 && window <= kWindowMax ? std::optional(window) : std::nullopt;
}

/// Refuses signals by the destinations of an alltoallv: a rank that receives nothing cannot say
/// when it would have come, and the length of a block is known to two ranks alone.
Result<graph::Schedule> build_with(const Facts& facts, const graph::Request& request, Rank rank,
                                   std::string_view argument) {
    if (argument == "source") {
        return build_for(facts, request, rank, Rule());
    }
    if (const auto window = window_of(argument)) {
        return build_for(facts, request, rank, {Signaller::source, *window});
    }
    if (argument != "destination") {
        return failure(Code::invalid_argument,
                       "expected source, destination or window1 to window{}", kWindowMax);
    }
    if (request.collective == graph::Collective::alltoallv) {
        return failure(Code::unsupported, "the blocks of an alltoallv may be empty, and who "
                                          "receives nothing cannot tell when");
    }
    return build_for(facts, request, rank, {Signaller::destination, 1});
}

// Schedules by a list that was loaded.

double loaded_ns(const Facts& facts, const graph::Request& request) {
    return scheduled_ns(facts, request, static_cast<double>(facts.loaded->listed->phase_count));
}

graph::Schedule build_loaded(const Facts& facts, const graph::Request& request, Rank rank) {
    const LoadedSchedule& loaded = *facts.loaded;
    const auto own = std::find(loaded.ranks.begin(), loaded.ranks.end(), rank);
    const auto position = static_cast<aapc::Position>(own - loaded.ranks.begin());
    return build_steps(request, rank, "file:" + loaded.path,
                       aapc::steps_of(*loaded.listed, position), loaded.ranks);
}

Result<graph::Schedule> build_loaded_from(const Facts& facts, const graph::Request& request,
                                          Rank rank, std::string_view argument) {
    if (argument != facts.loaded->path) {
        return failure(Code::invalid_argument, "what is loaded is {}", facts.loaded->path);
    }
    return build_loaded(facts, request, rank);
}

constexpr std::array kLoadedNeeds = {Need{
    "a schedule that was loaded when the context was made, and one rank on each of its machines",
    [](const Facts& facts, const graph::Request&) { return facts.loaded != nullptr; }}};
constexpr std::array kNeeds = {
    Need{"a file that describes the network between the hosts (UCG_TOPOLOGY)",
         [](const Facts& facts, const graph::Request&) { return facts.network != nullptr; }}};

template <graph::Collective collective>
constexpr Algorithm loaded_row() {
    return {
        .name = "file",
        .collective = collective,
        .summary = "phases and synchronisations that were loaded from a file (ucg_aapc)",
        .cost_ns = loaded_ns,
        .build = build_loaded,
        .needs = kLoadedNeeds,
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
        .cost_ns = cost_ns,
        .build = build,
        .needs = kNeeds,
        .build_with = build_with,
        .argument = "who says that a message has gone, source or destination; or windowN: the "
                    "source, and a link carries up to N messages at a time",
    };
}

} // namespace

const Algorithm kAlltoallAapc = row<graph::Collective::alltoall>();
const Algorithm kAlltoallvAapc = row<graph::Collective::alltoallv>();
const Algorithm kAlltoallFile = loaded_row<graph::Collective::alltoall>();
const Algorithm kAlltoallvFile = loaded_row<graph::Collective::alltoallv>();

std::optional<std::uint32_t> messages_at_once(std::string_view algorithm) {
    const AlgorithmText text = split_algorithm(algorithm);
    if (text.name != "aapc" && text.name != "file") {
        return std::nullopt;
    }
    return text.name == "aapc" ? window_of(text.argument).value_or(1) : 1;
}

std::optional<graph::SwitchTree> links_to_prove(const Facts& facts, std::string_view algorithm) {
    const std::optional<std::uint32_t> at_once = messages_at_once(algorithm);
    if (!at_once || facts.network == nullptr) {
        return std::nullopt;
    }
    graph::SwitchTree links = facts.network->links();
    links.at_once = *at_once;
    return links;
}

} // namespace ucg::plan
