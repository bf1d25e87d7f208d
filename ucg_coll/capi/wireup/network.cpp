#include "ucg_coll/capi/wireup/network.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/latency_probe.hpp"

namespace ucg::capi {

using transport::ProcessNetwork;

Task<Status> NetworkWireup::exchange() {
    const Result<ProcessNetwork*> network = start();
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
    if (group_.several_hosts()) {
        place_hosts();
    }
    if (Status status = add_unknown(); !status.ok()) {
        return status;
    }
    std::vector<std::uint32_t> group_ids;
    group_ids.reserve(ends_.size());
    for (const NetworkEnd& end : ends_) {
        group_ids.push_back(end.group_id);
    }
    Result<std::unique_ptr<transport::Transport>> made = making_->make_transport(group_ids);
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

Result<ProcessNetwork*> NetworkWireup::start() {
    if (!config_.ucx_enabled()) {
        return failure(Code::unreachable,
                       "rank {}: shared memory does not reach all ranks of the group and UCG_TLS "
                       "does not list ucx",
                       peers_.rank());
    }
    return own_.start(group_.several_hosts() ? link_rate(facts_.topology()) : 0);
}

/// May the group find out how long messages take? Not where a setting wants the same bits wherever
/// ranks are, nor where somebody has measured the network.
bool NetworkWireup::may_learn() const {
    return group_.several_hosts() && !config_.reproducible() &&
           cost::has_builtin_network(group_.profile);
}

/// Takes over what all ranks know, which they need not find out. A rank that does other
/// things meanwhile answers late, which looks like a slow network; so nothing is found out where
/// some rank does.
void NetworkWireup::take_learned() {
    const auto known = [&](const NetworkEnd& end) { return end.learned.of(group_.network); };
    if (std::any_of(ends_.begin(), ends_.end(),
                    [&](const NetworkEnd& end) { return known(end).known == 0; })) {
        learns_ = std::all_of(ends_.begin(), ends_.end(),
                              [](const NetworkEnd& end) { return end.attends != 0; });
        return;
    }
    for (const NetworkEnd& end : ends_) {
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
        LatencyProbe::Clock::now() + std::chrono::seconds(config_.timeout_seconds());
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
    own_.learned().of(group_.network) = {1, group_.network_message_ns};
    return {};
}

/// Sees to it that each rank can have the addresses of those that UCX serves for it; fails alike on
/// all ranks if one has no UCX. Where nobody needs an address, the next exchange may be the last:
/// so after the first one here nothing takes memory.
Task<Status> NetworkWireup::exchange_addresses() {
    answers_ = values_of<std::uint32_t>(peers_.count());
    if (network_ != nullptr) {
        add_known();
    }
    Result<std::vector<NetworkEnd>> ends = co_await peers_.allgather(own_end());
    if (!ends.ok()) {
        co_return ends.status();
    }
    ends_ = std::move(*ends);
    const auto missing = std::find_if(ends_.begin(), ends_.end(),
                                      [](const NetworkEnd& end) { return end.address_bytes == 0; });
    if (missing != ends_.end()) {
        peers_.set_speaker(static_cast<Rank>(missing - ends_.begin()));
        co_return failure(Code::unreachable, "rank {} of the group has no UCX transport",
                          missing - ends_.begin());
    }
    take_in_network();
    if (std::all_of(ends_.begin(), ends_.end(),
                    [](const NetworkEnd& end) { return end.knows != 0; })) {
        co_return Status();
    }
    std::uint64_t longest = 0;
    for (const NetworkEnd& end : ends_) {
        longest = std::max(longest, end.address_bytes);
    }
    addresses_ =
        GatheredTexts(new Gathered<std::string, std::string>{std::string(network_->address()), {}});
    co_return co_await peers_.allgather(*addresses_, longest);
}

/// Begins the transport with those ranks whose processes are known. The others of those that UCX
/// serves remain unknown_; ranks that shared memory serves are not UCX's business.
void NetworkWireup::add_known() {
    making_ = network_->begin_group(peers_.rank(), peers_.count());
    for (Rank rank = 0; rank < static_cast<Rank>(peers_.count()); ++rank) {
        const bool served =
            rank != peers_.rank() &&
            (group_.shm == nullptr || !group_.placement.same_host(rank, peers_.rank()));
        const std::uint64_t process =
            processes_.empty() ? 0 : processes_[static_cast<std::size_t>(rank)];
        if (served && (process == 0 || !making_->add_known(rank, process))) {
            unknown_.push_back(rank);
        }
    }
}

NetworkEnd NetworkWireup::own_end() {
    NetworkEnd mine;
    if (network_ != nullptr) {
        mine.address_bytes = network_->address().size();
        mine.only_tcp = network_->only_tcp() ? 1 : 0;
        mine.knows = unknown_.empty() ? 1 : 0;
    }
    mine.group_id = own_.take_group_id();
    mine.attends = attends_ ? 1 : 0;
    mine.learned = own_.learned();
    if (group_.several_hosts()) {
        mine.topology = topology_end(facts_.topology());
    }
    return mine;
}

void NetworkWireup::take_in_network() {
    if (std::any_of(ends_.begin(), ends_.end(),
                    [](const NetworkEnd& end) { return end.only_tcp != 0; })) {
        group_.network = one_kernel_ ? cost::NetworkKind::one_kernel : cost::NetworkKind::tcp;
    }
    if (may_learn()) {
        take_learned();
    }
}

/// Finds the hosts in the cluster, or has one rank say why all do without.
void NetworkWireup::place_hosts() {
    const LoadedTopology& own = facts_.topology();
    TopologyVerdict verdict =
        agree_on_topology(own.cluster, ends_of(ends_, &NetworkEnd::topology), group_.placement);
    group_.cluster = std::move(verdict.map);
    if (verdict.reason != TopologyVerdict::Reason::none &&
        peers_.is_first(verdict.speaker, Once::no_topology)) {
        log(verdict.level, "{}: {}", peers_.process_name(), explain(verdict, own));
    }
}

/// Adds the ranks that were not known, by the addresses that all have told.
Status NetworkWireup::add_unknown() {
    const std::string_view addresses = addresses_ == nullptr ? std::string_view() : addresses_->all;
    const std::size_t width = addresses.size() / peers_.count();
    for (const Rank rank : unknown_) {
        const auto index = static_cast<std::size_t>(rank);
        const std::string_view address =
            addresses.substr(index * width, ends_[index].address_bytes);
        if (Status status = making_->add(rank, address); !status.ok()) {
            return status;
        }
    }
    return {};
}

} // namespace ucg::capi
