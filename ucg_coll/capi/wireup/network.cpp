#include "ucg_coll/capi/wireup/network.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/latency_probe.hpp"

namespace ucg::capi {

using transport::Network;

Task<Status> NetworkWireup::exchange() {
    const Result<Network*> network = start();
    network_ = network.ok() ? *network : nullptr;
    const Status status = co_await exchange_addresses();
    if (!network.ok() || !status.ok() || !learns_) {
        co_return network.ok() ? status : network.status();
    }
    co_return co_await learn();
}

Status NetworkWireup::make_transport() {
    if (group_.ucx != nullptr) {
        return {};
    }
    Result<std::unique_ptr<transport::Transport>> made =
        network_->make_transport(group_ids_, peers_.rank(), peers_by_ucx());
    if (!made.ok()) {
        return made.status();
    }
    group_.ucx = std::move(*made);
    made_ = group_.ucx.get();
    return {};
}

Peers::Ended NetworkWireup::tell(bool made) {
    answers_->mine = made ? 1 : 0;
    return peers_.allgather(*answers_);
}

Status NetworkWireup::agree(const Status& told, const Status& mine) {
    if (!told.ok()) {
        return mine.ok() ? told : mine;
    }
    const std::vector<std::uint32_t>& answers = answers_->all;
    const auto failed = std::find(answers.begin(), answers.end(), 0U);
    if (failed == answers.end()) {
        return {};
    }
    const auto rank = failed - answers.begin();
    peers_.set_speaker(static_cast<Rank>(rank));
    return !mine.ok()
               ? mine
               : failure(Code::unreachable,
                         "rank {} could not start its UCX transport, or had no memory left", rank);
}

Result<Network*> NetworkWireup::start() {
    if (!context_.config().ucx_enabled()) {
        return failure(Code::unreachable,
                       "rank {}: shared memory does not reach all ranks of the group and UCG_TLS "
                       "does not list ucx",
                       peers_.rank());
    }
    return context_.ucx(group_.several_hosts());
}

/// May the group find out how long messages take? Not where a setting wants the same bits wherever
/// ranks are, nor where somebody has measured the network.
bool NetworkWireup::may_learn() const {
    return group_.several_hosts() && !context_.config().reproducible() &&
           cost::has_builtin_network(group_.profile);
}

/// Takes over what all ranks know, which they need not find out. A rank that may not wait for
/// others answers them late, which looks like a slow network; so nothing is found out where some
/// rank may not wait.
void NetworkWireup::take_learned(const std::vector<NetworkEnd>& ends) {
    const auto known = [&](const NetworkEnd& end) { return end.learned.of(group_.network); };
    if (std::any_of(ends.begin(), ends.end(),
                    [&](const NetworkEnd& end) { return known(end).known == 0; })) {
        learns_ = std::all_of(ends.begin(), ends.end(),
                              [](const NetworkEnd& end) { return end.waits != 0; });
        return;
    }
    for (const NetworkEnd& end : ends) {
        group_.network_message_ns = std::max(group_.network_message_ns, known(end).message_ns);
    }
}

Task<Status> NetworkWireup::learn() {
    Status mine;
    bool made = false;
    try {
        mine = make_transport();
        made = mine.ok();
    } catch (const std::bad_alloc&) {
    }
    const Status told = co_await tell(made);
    if (Status status = agree(told, mine); !status.ok()) {
        co_return status;
    }
    const double seen_ns = co_await look();
    Result<std::vector<double>> seen = co_await peers_.allgather(seen_ns);
    co_return seen.ok() ? take_seen(std::move(*seen)) : seen.status();
}

/// Returns the time of a message in nanoseconds as this rank has seen it. It is 0 at most ranks:
/// hosts look in pairs, and the leader of each pair's first host tells. It is negative where the
/// transport has failed.
Task<double> NetworkWireup::look() {
    // Where ranks share processors, most round trips have others' turns in them.
    const int round_trips = group_.ranks_per_cpu > 1 ? 15 : 5;
    const topo::Placement& placement = group_.placement;
    const std::uint32_t host = placement.host(peers_.rank());
    const std::uint32_t other = host ^ 1U;
    if (placement.leader(host) != peers_.rank() || other >= placement.host_count()) {
        co_return 0;
    }
    LatencyProbe probe(*group_.ucx, placement.leader(other), host < other, round_trips);
    const auto deadline =
        LatencyProbe::Clock::now() + std::chrono::seconds(context_.config().timeout_seconds());
    LatencyProbe::State state = probe.look(deadline);
    while (state == LatencyProbe::State::waits) {
        co_await peers_.pause();
        state = probe.look(deadline);
    }
    co_return state == LatencyProbe::State::over ? probe.seen_ns() : -1;
}

/// Takes the median over the pairs, so that some that are disturbed, or nearer to one another than
/// most, do not decide for all.
Status NetworkWireup::take_seen(std::vector<double> seen) {
    const auto failed =
        std::find_if(seen.begin(), seen.end(), [](double seen_ns) { return seen_ns < 0; });
    if (failed != seen.end()) {
        const auto rank = failed - seen.begin();
        peers_.set_speaker(static_cast<Rank>(rank));
        return failure(Code::unreachable,
                       "rank {} could not exchange messages with a rank of another host over UCX",
                       rank);
    }
    std::erase(seen, 0);
    const auto middle = seen.begin() + static_cast<std::ptrdiff_t>((seen.size() - 1) / 2);
    std::nth_element(seen.begin(), middle, seen.end());
    group_.network_message_ns =
        cost::listed_message_ns(group_.network, *middle, group_.ranks_per_cpu);
    context_.learned_networks().of(group_.network) = {1, group_.network_message_ns};
    return {};
}

/// Gathers every rank's UCX address; fails alike on all ranks if one has none.
Task<Status> NetworkWireup::exchange_addresses() {
    const std::string_view mine = network_ == nullptr ? std::string_view() : network_->address();
    const Result<std::vector<NetworkEnd>> ends = co_await peers_.allgather(
        NetworkEnd{mine.size(), network_ != nullptr && network_->only_tcp() ? 1U : 0U,
                   context_.take_group_id(), waits_ ? 1U : 0U, context_.learned_networks(),
                   group_.several_hosts() ? topology_end(context_.topology()) : TopologyEnd()});
    if (!ends.ok()) {
        co_return ends.status();
    }
    const auto missing = std::find_if(ends->begin(), ends->end(),
                                      [](const NetworkEnd& end) { return end.address_bytes == 0; });
    if (missing != ends->end()) {
        peers_.set_speaker(static_cast<Rank>(missing - ends->begin()));
        co_return failure(Code::unreachable, "rank {} of the group has no UCX transport",
                          missing - ends->begin());
    }
    take_in(*ends);
    answers_ = values_of<std::uint32_t>(peers_.count());
    addresses_ = GatheredTexts(new Gathered<std::string, std::string>{std::string(mine), {}});
    const std::uint64_t longest = *std::max_element(lengths_.begin(), lengths_.end());
    co_return co_await peers_.allgather(*addresses_, longest);
}

void NetworkWireup::take_in(const std::vector<NetworkEnd>& ends) {
    if (std::any_of(ends.begin(), ends.end(),
                    [](const NetworkEnd& end) { return end.only_tcp != 0; })) {
        group_.network = one_kernel_ ? cost::NetworkKind::one_kernel : cost::NetworkKind::tcp;
    }
    if (may_learn()) {
        take_learned(ends);
    }
    if (group_.several_hosts()) {
        place_hosts(ends_of(ends, &NetworkEnd::topology));
    }
    for (const NetworkEnd& end : ends) {
        group_ids_.push_back(end.group_id);
        lengths_.push_back(end.address_bytes);
    }
}

/// Finds the hosts in the cluster, or has one rank say why all do without.
void NetworkWireup::place_hosts(std::span<const TopologyEnd> ends) {
    const LoadedTopology& own = context_.topology();
    TopologyVerdict verdict = agree_on_topology(own.cluster, ends, group_.placement);
    group_.cluster = std::move(verdict.map);
    if (verdict.reason != TopologyVerdict::Reason::none &&
        peers_.is_first(verdict.speaker, Context::Once::no_topology)) {
        log(verdict.level, "{}: {}", context_.name(), explain(verdict, own));
    }
}

/// Returns addresses by rank. They are empty for this rank, and for ranks that shared memory
/// serves: these are not UCX's business.
std::vector<std::string> NetworkWireup::peers_by_ucx() const {
    std::vector<std::string> peers;
    const std::string& addresses = addresses_->all;
    const std::uint64_t width = addresses.size() / peers_.count();
    for (std::size_t i = 0; i < peers_.count(); ++i) {
        peers.push_back(addresses.substr(i * width, lengths_[i]));
    }
    peers[static_cast<std::size_t>(peers_.rank())].clear();
    if (group_.shm != nullptr) {
        for (const Rank local : group_.local_ranks(peers_.rank())) {
            peers[static_cast<std::size_t>(local)].clear();
        }
    }
    return peers;
}

} // namespace ucg::capi
