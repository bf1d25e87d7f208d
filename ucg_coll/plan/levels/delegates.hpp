// Delegates: each other host that a host has messages for has one rank on it that collects what the
// ranks there have for that host, exchanges it with its counterpart, and deals out what comes, so
// that many ranks of a host send and receive at a time.
#pragma once

#include <span>
#include <vector>

#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Who talks to which host.
class Delegates {
  public:
    /// `facts` must outlive it.
    Delegates(const Facts& facts, Rank rank)
        : placement_(facts.placement), host_(facts.placement.host(rank)) {}

    std::uint32_t host() const { return host_; }
    Ranks ranks() const { return placement_.ranks_on(host_); }

    /// Of `host`, for `other`: its index there.
    Rank index(std::uint32_t host, std::uint32_t other) const {
        return static_cast<Rank>(other % placement_.ranks_on(host).size());
    }
    Rank rank(std::uint32_t host, std::uint32_t other) const {
        return placement_.ranks_on(host)[static_cast<std::size_t>(index(host, other))];
    }
    /// Those whose delegate here is at that index.
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
    /// The ranks of these hosts, one host after the other.
    std::vector<Rank> ranks_of(std::span<const std::uint32_t> hosts) const {
        std::vector<Rank> all;
        for (const std::uint32_t host : hosts) {
            const Ranks there = placement_.ranks_on(host);
            all.insert(all.end(), there.begin(), there.end());
        }
        return all;
    }
    std::size_t size_of(std::uint32_t host) const { return placement_.ranks_on(host).size(); }
    /// The host so many behind this one, starting over after the last.
    std::uint32_t host_at(std::uint32_t distance) const {
        return (host_ + distance) % host_count();
    }
    /// From one host up to another, starting over after the last.
    std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
        return (to + host_count() - from) % host_count();
    }
    std::uint32_t host_count() const { return static_cast<std::uint32_t>(placement_.host_count()); }

  private:
    const topo::Placement& placement_;
    std::uint32_t host_;
};

/// How many ranks the emptiest host has: its delegates have the most hosts.
std::uint64_t ranks_on_emptiest_host(const Facts& facts);

/// What a host's delegates exchange with those of others.
struct Swap {
    Rank hosts = 0;      ///< With so many hosts,
    Rank hosts_each = 0; ///< of which the busiest delegate has so many,
    std::uint64_t message_bytes = 0;
};
/// Between hosts, with copies of what is sent.
double delegates_swap_ns(const Facts& facts, const Swap& swap);
/// On a host, before or after: each rank exchanges messages with so many, itself among them, and
/// copies `copied_bytes` of what it sends and receives.
double on_host_exchange_ns(const Facts& facts, Rank count, std::uint64_t message_bytes,
                           std::uint64_t copied_bytes);

} // namespace ucg::plan
