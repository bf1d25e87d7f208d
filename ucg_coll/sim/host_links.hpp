// Internal to ucg_coll/sim: the link of each host, in both directions.
#pragma once

#include <cstdint>
#include <vector>

#include "ucg_coll/sim/prices.hpp"
#include "ucg_coll/sim/time.hpp"

namespace ucg::sim {

enum class LinkDirection : std::uint8_t { out, in };

/// The links of hosts: a queue for each host and direction. Requests must come in order of their
/// times.
class HostLinks {
  public:
    HostLinks(const HostLink& price, std::uint32_t host_count)
        : price_(price), free_(std::size_t{host_count} * 2, 0) {}

    /// Returns how long a message occupies a link.
    Picoseconds occupancy(std::uint64_t bytes) const {
        return to_picoseconds(price_.per_message_ns +
                              static_cast<double>(bytes) * price_.per_byte_ns);
    }

    /// Returns how long after its first byte the last byte of a message passes a link that it need
    /// not wait for.
    Picoseconds passage(std::uint64_t bytes) const {
        const double further = bytes > 0 ? static_cast<double>(bytes - 1) : 0.0;
        return to_picoseconds(further * price_.per_byte_ns);
    }

    /// Requests the link at `time` for a message. Returns how long the message has to wait for it.
    Picoseconds pass(std::uint32_t host, LinkDirection direction, Picoseconds time,
                     std::uint64_t bytes) {
        Picoseconds& free = free_[std::size_t{host} * 2 + (direction == LinkDirection::in ? 1 : 0)];
        const Picoseconds granted = std::max(time, free);
        free = later(granted, occupancy(bytes));
        return granted - time;
    }

  private:
    HostLink price_;
    std::vector<Picoseconds> free_;
};

} // namespace ucg::sim
