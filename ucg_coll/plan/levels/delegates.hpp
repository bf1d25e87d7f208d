// Delegates: for each other host, one rank of a host is its delegate. It collects what the ranks of
// its own host have for the other host, exchanges that with the delegate there, and deals out what
// comes. The other hosts are spread over a host's ranks, so that many of these send and receive at
// a time.
#pragma once

#include <span>
#include <vector>

#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Tells which rank of a host is its delegate for which other host. "Here" is the host of one rank.
class Delegates {
  public:
    /// `facts` must outlive it.
    Delegates(const Facts& facts, Rank rank)
        : placement_(facts.placement), host_(facts.placement.host(rank)) {}

    /// The host here, and its ranks.
    std::uint32_t host() const { return host_; }
    Ranks ranks() const { return placement_.ranks_on(host_); }

    /// Return the delegate of `host` for `other`: its index among the ranks of `host`, and its
    /// rank.
    Rank index(std::uint32_t host, std::uint32_t other) const {
        return static_cast<Rank>(other % placement_.ranks_on(host).size());
    }
    Rank rank(std::uint32_t host, std::uint32_t other) const {
        return placement_.ranks_on(host)[static_cast<std::size_t>(index(host, other))];
    }
    /// Returns the hosts whose delegate here is the rank at that index, in rising order.
    std::vector<std::uint32_t> hosts_of(Rank index_here) const {
        std::vector<std::uint32_t> hosts;
        const auto step = static_cast<std::uint32_t>(ranks().size());
        for (auto host = static_cast<std::uint32_t>(index_here); host < placement_.host_count();
             host += step) {
            if (host != host_) {
                hosts.push_back(host);
            }
        }
        return hosts;
    }
    /// Returns the ranks of these hosts, one host after the other.
    std::vector<Rank> ranks_of(std::span<const std::uint32_t> hosts) const {
        std::vector<Rank> all;
        for (const std::uint32_t host : hosts) {
            const Ranks there = placement_.ranks_on(host);
            all.insert(all.end(), there.begin(), there.end());
        }
        return all;
    }
    std::size_t size_of(std::uint32_t host) const { return placement_.ranks_on(host).size(); }
    /// Returns the host that comes `distance` hosts after this one, starting over after the last.
    std::uint32_t host_at(std::uint32_t distance) const {
        return (host_ + distance) % host_count();
    }
    /// Returns how many hosts `to` comes after `from`, starting over after the last.
    std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
        return (to + host_count() - from) % host_count();
    }
    std::uint32_t host_count() const { return static_cast<std::uint32_t>(placement_.host_count()); }

  private:
    const topo::Placement& placement_;
    std::uint32_t host_;
};

/// What the delegates of a host exchange with those of other hosts.
struct Swap {
    Rank ranks = 0;      ///< Number of ranks of the host.
    Rank hosts = 0;      ///< Number of other hosts that the host exchanges messages with.
    Rank hosts_each = 0; ///< Number of these that the busiest delegate serves.
    std::uint64_t message_bytes = 0; ///< Length of a message from one host to another.
};
/// Returns the price of that exchange, in nanoseconds, with copies of what is sent.
double delegates_swap_ns(const Facts& facts, const Swap& swap);
/// Returns the price of the exchange on a host before or after it, in nanoseconds: each rank
/// exchanges messages with `count` ranks, itself among them, and copies `copied_bytes` of what it
/// sends and receives.
double on_host_exchange_ns(const Facts& facts, Rank count, std::uint64_t message_bytes,
                           std::uint64_t copied_bytes);

} // namespace ucg::plan
