#include "ucg_coll/capi/wireup/network.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "ucg_coll/capi/wireup/hello.hpp"

namespace ucg::capi {

using transport::Network;

Status NetworkWireup::connect() {
    const Result<Network*> network = start();
    Status status = network.status();
    Result<std::vector<std::string>> addresses =
        exchange_addresses(network.ok() ? *network : nullptr);
    if (!addresses.ok()) {
        return status.ok() ? addresses.status() : status;
    }
    Result<std::unique_ptr<transport::Transport>> made = (*network)->make_transport(
        group_.group_id, peers_.rank(), peers_by_ucx(std::move(*addresses)));
    status = made.status();
    const std::uint32_t mine = made.ok() ? 1 : 0;
    Result<std::vector<std::uint32_t>> all = peers_.allgather(mine);
    if (!all.ok()) {
        return status.ok() ? all.status() : status;
    }
    const auto failed = std::find(all->begin(), all->end(), 0U);
    if (failed != all->end()) {
        peers_.set_speaker(static_cast<Rank>(failed - all->begin()));
        return !status.ok()
                   ? status
                   : failure(Code::unreachable, "rank {} could not start its UCX transport",
                             failed - all->begin());
    }
    group_.ucx = std::move(*made);
    return {};
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

/// Every rank's UCX address, or the same failure on all ranks if one has none.
Result<std::vector<std::string>> NetworkWireup::exchange_addresses(Network* network) {
    const std::string mine(network == nullptr ? std::string_view() : network->address());
    Result<std::vector<NetworkEnd>> ends = peers_.allgather(
        NetworkEnd{mine.size(), network != nullptr && network->only_tcp() ? 1U : 0U,
                   group_.several_hosts() ? topology_end(context_.topology()) : TopologyEnd()});
    if (!ends.ok()) {
        return ends.status();
    }
    const auto missing = std::find_if(ends->begin(), ends->end(),
                                      [](const NetworkEnd& end) { return end.address_bytes == 0; });
    if (missing != ends->end()) {
        peers_.set_speaker(static_cast<Rank>(missing - ends->begin()));
        return failure(Code::unreachable, "rank {} of the group has no UCX transport",
                       missing - ends->begin());
    }
    if (std::any_of(ends->begin(), ends->end(),
                    [](const NetworkEnd& end) { return end.only_tcp != 0; })) {
        group_.network = one_kernel_ ? cost::NetworkKind::one_kernel : cost::NetworkKind::tcp;
    }
    if (group_.several_hosts()) {
        place_hosts(ends_of(*ends, &NetworkEnd::topology));
    }
    std::vector<std::uint64_t> lengths;
    for (const NetworkEnd& end : *ends) {
        lengths.push_back(end.address_bytes);
    }
    return peers_.allgather_texts(mine, lengths);
}

/// Finds the hosts in the cluster, or one rank says why all do without.
void NetworkWireup::place_hosts(std::span<const TopologyEnd> ends) {
    const LoadedTopology& own = context_.topology();
    TopologyVerdict verdict = agree_on_topology(own.cluster, ends, group_.placement);
    group_.cluster = std::move(verdict.map);
    if (verdict.reason != TopologyVerdict::Reason::none &&
        peers_.is_first(verdict.speaker, Context::Once::no_topology)) {
        log(LogLevel::warn, "{}: {}", context_.name(), explain(verdict, own));
    }
}

/// Ranks that shared memory serves, and this one, are not UCX's business: they have no address.
std::vector<std::string> NetworkWireup::peers_by_ucx(std::vector<std::string> addresses) const {
    addresses[static_cast<std::size_t>(peers_.rank())].clear();
    if (group_.shm != nullptr) {
        for (const Rank local : group_.local_ranks(peers_.rank())) {
            addresses[static_cast<std::size_t>(local)].clear();
        }
    }
    return addresses;
}

} // namespace ucg::capi
