// Two-level prefix reductions: one on each host among its ranks, and one between hosts of the sums
// of whole hosts, whose result each host's ranks combine with their own. Only one rank of a host
// exchanges messages with others: its last one, which has the host's sum first. On flag slots no
// rank reads what the last one contributes, so that its share is free for what came from the hosts
// below.
#include <algorithm>

#include "ucg_coll/plan/flag_slots/pieces.hpp"
#include "ucg_coll/plan/levels/rows.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Collective;
using graph::Slice;

constexpr Need kConsecutiveRanks = {"hosts of consecutive ranks",
                                    [](const Facts& facts, const graph::Request&) {
                                        return facts.placement.hosts_are_contiguous();
                                    }};
constexpr std::array kNeeds = {kSeveralHosts, kSharedHost, kConsecutiveRanks};

/// The prices of the stages on a host: to its ranks' prefixes, and back from its last rank.
struct OnHost {
    double messages_ns = 0;
    double flag_slots_ns = 0;
    bool by_flag_slots = false;

    OnHost(const Facts& facts, const graph::Request& request) {
        const Link link = host_link(facts);
        const Rank count = facts.placement.ranks_per_host_max();
        const std::uint64_t bytes = request.bytes;
        messages_ns = (request.collective == Collective::scan
                           ? scan_recursive_doubling_ns(facts, link, count, bytes)
                           : exscan_recursive_doubling_ns(facts, link, count, bytes)) +
                      bcast_best_ns(link, count, bytes);
        if (flag_slots_take(facts, bytes)) {
            flag_slots_ns = flag_slots_ns_of(facts, count, bytes);
            by_flag_slots = flag_slots_ns < messages_ns;
        }
    }

    static double flag_slots_ns_of(const Facts& facts, Rank count, std::uint64_t bytes) {
        return plan::flag_slots_ns(facts, {count - 1, count - 1, bytes, bytes}) +
               combining_flag_slots_ns(facts, count, bytes) +
               from_root_by_flag_slots_ns(facts, count, bytes, bytes);
    }
    double ns() const { return by_flag_slots ? flag_slots_ns : messages_ns; }
};

double cost_ns(const Facts& facts, const graph::Request& request) {
    // Of several calls in a row the last host does its work one after the other.
    return calls_in_a_row(facts, request.collective) *
               (OnHost(facts, request).ns() + host_link(facts).reduce_ns(2, request.bytes)) +
           exscan_recursive_doubling_ns(facts, leader_link(facts),
                                        static_cast<Rank>(facts.placement.host_count()),
                                        request.bytes);
}

/// One rank's part.
class Prefix {
  public:
    Prefix(Builder& builder, const Facts& facts, const graph::Request& request)
        : builder_(builder), facts_(facts), inclusive_(request.collective == Collective::scan),
          bytes_(request.bytes), own_(contribution(builder, request)),
          target_(builder.output(0, request.bytes)), host_(facts.placement.host(builder.rank())),
          team_(Team::of(facts.placement.ranks_on(host_),
                         facts.placement.index_on_host(builder.rank()))),
          by_flag_slots_(OnHost(facts, request).by_flag_slots) {}

    void run() {
        if (by_flag_slots_) {
            builder_.flag_slots();
        }
        const Slice here = on_host();
        Slice below = host_ > 0 ? builder_.scratch(bytes_) : Slice{};
        if (is_last()) {
            between_hosts(here, below);
        }
        if (host_ == 0) {
            if (here.length > 0) {
                builder_.copy(here, target_);
            }
            return;
        }
        hand_down(below);
        if (here.length > 0) {
            reduce_to(builder_, std::array{below, here}, target_);
        } else {
            builder_.copy(below, target_);
        }
    }

  private:
    bool is_last() const { return team_.index() + 1 == team_.size(); }
    /// Does this rank have a prefix within its host? In an exscan the first rank has none.
    bool has_prefix() const { return inclusive_ || team_.index() > 0; }

    /// Returns the prefix within the host, in scratch, or in the contribution of a host's only
    /// rank; an empty slice if there is none, or the vector has no bytes.
    Slice on_host() {
        if (team_.size() == 1) {
            return inclusive_ ? own_ : Slice{};
        }
        const Slice here = has_prefix() ? builder_.scratch(bytes_) : Slice{};
        if (!by_flag_slots_) {
            if (inclusive_) {
                scan_recursive_doubling(builder_, team_, own_, here);
            } else {
                exscan_recursive_doubling(builder_, team_, own_, here);
            }
            return here;
        }
        if (!is_last()) {
            builder_.share(own_);
        }
        std::vector<Slice> operands;
        operands.reserve(team_.index() + 1);
        for (Rank index = 0; index < team_.index(); ++index) {
            operands.push_back(Builder::flag_slot(team_.rank(index), 0, bytes_));
        }
        if (inclusive_) {
            operands.push_back(own_);
        }
        if (!operands.empty()) {
            builder_.reduce(operands, here);
        }
        return here;
    }

    /// Exchanges sums of hosts among the last ranks. `below` gets what all hosts below have
    /// together; on the first host it is empty.
    void between_hosts(Slice here, Slice below) {
        std::vector<Rank> last_ranks;
        const std::span<const Rank> leaders = facts_.placement.leaders();
        last_ranks.reserve(leaders.size());
        for (std::size_t host = 1; host < leaders.size(); ++host) {
            last_ranks.push_back(leaders[host] - 1);
        }
        last_ranks.push_back(facts_.placement.rank_count() - 1);
        const Team team = Team::of(last_ranks, static_cast<Rank>(host_));
        exscan_recursive_doubling(builder_, team, sum_of_host(here), below);
    }

    Slice sum_of_host(Slice here) {
        if (inclusive_ || here.length == 0) {
            return inclusive_ ? here : own_;
        }
        const Slice sum = builder_.scratch(bytes_);
        builder_.reduce(std::array{here, own_}, sum);
        return sum;
    }

    /// Broadcasts `below` from the last rank of the host to the others.
    void hand_down(Slice below) {
        if (team_.size() == 1) {
            return;
        }
        if (by_flag_slots_) {
            bcast_by_flag_slots(builder_, team_, team_.size() - 1, below);
        } else {
            bcast_best(builder_, team_, host_link(facts_), team_.size() - 1, below);
        }
    }

    Builder& builder_;
    const Facts& facts_;
    bool inclusive_;
    std::uint64_t bytes_;
    Slice own_;
    Slice target_;
    std::uint32_t host_;
    Team team_; ///< The ranks of this host.
    bool by_flag_slots_;
};

template <Collective collective>
graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank,
                    collective == Collective::scan ? kScanTwoLevel.name : kExscanTwoLevel.name);
    Prefix(builder, facts, request).run();
    return builder.finish();
}

template <Collective collective>
constexpr Algorithm row() {
    return {
        .name = "two_level",
        .collective = collective,
        .summary = "on each host, between the hosts' last ranks, and the hosts below to all",
        .cost_ns = cost_ns,
        .build = build<collective>,
        .needs = kNeeds,
    };
}

} // namespace

const Algorithm kScanTwoLevel = row<Collective::scan>();
const Algorithm kExscanTwoLevel = row<Collective::exscan>();

} // namespace ucg::plan
