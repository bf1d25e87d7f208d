// How a group is wired up: the ranks exchange what they are, agree where they are, connect over
// shared memory and UCX, and agree again. Every step ends in an allgather, so that all ranks leave
// it with the same decision: either all succeed or all fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/cpu_load.hpp"
#include "ucg_coll/capi/group_params.hpp"
#include "ucg_coll/capi/task.hpp"
#include "ucg_coll/capi/wireup/exchange.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/transport/shm/shm.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {

class Context;

/// What a group is made of, and what its ranks have agreed on.
struct WiredGroup {
    topo::Placement placement;
    topo::ClusterMap cluster;          ///< The switches between the hosts; empty: not known.
    std::vector<Rank> ranks_of_phases; ///< Index: machine of the context's phases; empty: not used.
    cost::Profile profile;             ///< The costs by which all ranks plan and copy.
    cost::NetworkKind network = cost::NetworkKind::unknown; ///< Kind of the network between hosts.
    double network_message_ns = 0; ///< One-way time of a short message there; 0: as built in.
    CpuLoad load;                  ///< That of this host.
    double ranks_per_cpu = 1;      ///< Places::ranks_per_cpu.
    /// Bytes of the longest share on a flag slot, of each rank that has others on its host.
    std::uint64_t flag_slot_bytes = 0;
    std::uint64_t staging_bytes = 0; ///< Bytes that each such rank has for its peers to read.
    bool buffers_in_heap = false;    ///< All ranks' malloc is served from the shared heap.
    /// The kernel lets each rank read and write the memory of all others of its host.
    bool kernel_copies = false;
    std::unique_ptr<transport::ShmTransport> shm; ///< Null: not used.
    std::unique_ptr<transport::Transport> ucx;    ///< Null: not used.

    bool several_hosts() const { return placement.host_count() > 1; }
    /// Returns the ranks on the host of this one, itself among them.
    Ranks local_ranks(Rank rank) const { return placement.ranks_on(placement.host(rank)); }
};

/// Makes a group of a WiredGroup, taking what it needs out of it. The transports are taken last,
/// when nothing can fail any more, since until then a rank that fails says so by their memory.
using MakeGroup = std::function<void(WiredGroup&)>;

/// Wires a group up. Collective over the group. It waits for an exchange as often on every rank:
/// once where all ranks share a host, have mapped the heaps of the same processes and made a group
/// of this size and kind; twice where they know one another, or none of them has a node heap yet;
/// three times where some have, and do not know one another. For UCX it waits twice more where all
/// know the addresses of those that UCX is to reach, as in a duplicate of a group, else three times
/// more; and twice more where they find out how long messages take between their hosts.
///
/// `make_group` is called once the ranks have agreed. If it throws for want of memory, all ranks
/// fail where messages go by UCX; else this one throws, and the group of the others fails when they
/// wait for it. A failure is logged here, on the rank that has its cause; further ones of the
/// process at level info. Where a rank may not wait for what others do outside of exchanges, and
/// some rank would have to, all fail with busy.
///
/// The task works while its driver holds the context's maker(), and waits while its driver does
/// not. While it waits other groups of this process may be made, by whichever functions. All
/// arguments must outlive the task.
Task<Status> wire_up(Context& context, const GroupParams& params, WireupExchanges& exchanges,
                     const MakeGroup& make_group);

/// The part of a process that cannot be in the group: then nobody makes it. Never ok.
Task<Status> decline_group(const GroupParams& params, WireupExchanges& exchanges);

} // namespace ucg::capi
