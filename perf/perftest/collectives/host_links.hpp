// Measures what the links between hosts allow: a short message to another host and back, and the
// rate at which every host sends while the others do, over UCX as UCG's messages go. Where ranks
// share no memory, results are compared with these.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perf/perftest/runtime.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::perftest {

/// Returns the host of each rank, as numbers from 0 in the order in which hosts first occur.
std::vector<std::size_t> number_hosts(const std::vector<std::string>& identities);

class HostConnections {
  public:
    /// Makes the connections. Collective. The result is null, on all ranks, when there is only one
    /// host; that is no failure.
    static Result<std::unique_ptr<HostConnections>> create(Runtime& runtime);
    ~HostConnections();
    HostConnections(const HostConnections&) = delete;
    HostConnections& operator=(const HostConnections&) = delete;

    /// Returns the host of each rank.
    const std::vector<std::size_t>& hosts() const { return hosts_; }

    /// Returns the median time for 8 bytes to go from rank 0 to the first rank of another host and
    /// back, in seconds; the same on all ranks. Collective.
    Result<double> round_trip();

    /// Returns the bytes per second that the host with the slowest link sends while each rank sends
    /// messages of about `bytes` to another host. It is the best of some rounds, since queues on
    /// the way may still hold earlier messages; in some rounds every second host only receives.
    /// Collective.
    Result<double> rate(std::uint64_t bytes);

  private:
    HostConnections(Runtime& runtime, std::vector<std::size_t> hosts);
    Status open();
    std::size_t host_of(Rank rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
    /// Returns the least number, over all hosts, of ranks of a host that send to another host.
    std::size_t least_senders() const;
    Status stream(std::span<transport::Message> messages);
    Status answer(Rank peer, std::vector<double>& seconds);
    Result<double> slowest(double seconds);

    Runtime& runtime_;
    std::vector<std::size_t> hosts_;
    std::vector<Rank> by_host_; ///< All ranks, ordered by host.
    std::size_t most_ = 0;      ///< The largest number of ranks of a host.
    std::unique_ptr<transport::ucx::UcxWorker> worker_;
    std::unique_ptr<transport::Transport> transport_;
    std::uint32_t sequence_ = 0;
};

} // namespace ucg::perftest
