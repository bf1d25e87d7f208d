// The address of a process as peers exchange it: who it is, where it runs, its UCP address and the
// addresses of its short-lane interfaces, in one block of bytes; and what a process offers to a
// peer where the short lane connects endpoint to endpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::transport::ucx {

/// Where a process runs, as far as it decides who can reach whom. Equal values: the same place.
struct ProcessPlace {
    std::uint64_t network = 0; ///< Kernel and network namespace: a loopback device is shared.
    std::uint64_t memory = 0;  ///< Kernel, PID and IPC namespaces: memory can be shared.

    bool operator==(const ProcessPlace&) const = default;
};

/// One interface of the short lane. The addresses are UCT's, opaque.
struct LaneAddress {
    std::string transport;
    std::string device;
    std::string device_address;
    std::string interface_address;

    bool operator==(const LaneAddress&) const = default;
};

/// What peers need to know of a process in order to reach it.
struct ProcessAddress {
    std::uint64_t process = 0; ///< Random and therefore unique; 0 stands for no process.
    ProcessPlace place;
    bool only_tcp = false; ///< It reaches other hosts by TCP alone.
    std::string ucp;       ///< The address of its UCP worker, opaque.
    std::vector<LaneAddress> lanes;

    bool operator==(const ProcessAddress&) const = default;
};

/// Returns the place of the calling process.
ProcessPlace this_place();

/// Returns the address in the form in which peers exchange it.
std::string pack(const ProcessAddress& address);

/// The inverse of pack(). Fails with invalid_argument for bytes that pack() did not make.
Result<ProcessAddress> unpack(std::string_view bytes);

/// An endpoint of the short lane that a process offers to a peer, to be connected to one that the
/// peer makes.
struct LaneOffer {
    std::uint64_t from = 0; ///< Index of its interface among the lanes of the process that offers.
    std::uint64_t to = 0;   ///< Index of the interface that it is meant for among the peer's lanes.
    std::string endpoint;   ///< UCT's address of the endpoint, opaque.

    bool operator==(const LaneOffer&) const = default;
};

std::string pack(const LaneOffer& offer);

/// The inverse of pack(). Fails with invalid_argument for bytes that pack() did not make. It does
/// not check whether the indexes and the address suit an interface: ShortLane::take() does.
Result<LaneOffer> unpack_offer(std::string_view bytes);

/// Memory into which a peer may put lines (lines.hpp). The key is UCT's, opaque.
struct LineMemory {
    std::uint64_t address = 0;
    std::string key;
};

std::string pack(const LineMemory& memory);
Result<LineMemory> unpack_lines(std::string_view bytes);

} // namespace ucg::transport::ucx
