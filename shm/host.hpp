// Which processes can share memory.
#pragma once

#include <cstdint>
#include <string>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What decides whether two processes can share memory. Containers and virtual hosts on one machine
/// differ in their namespaces and so are different hosts.
struct HostFacts {
    std::string boot;                    ///< The kernel's boot id: one running kernel.
    std::uint64_t network_namespace = 0; ///< The sockets that pass descriptors live in one.
    std::uint64_t ipc_namespace = 0;
    std::uint32_t user = 0; ///< Effective user id: memory is shared within one user only.

    bool operator==(const HostFacts&) const = default;
};

/// Returns the facts of this process; io_error when /proc is not there, and then no memory is
/// shared.
Result<HostFacts> read_host_facts();

/// Returns a number that is equal exactly for processes with equal facts, up to a collision of 64
/// bits. Never 0.
std::uint64_t identity(const HostFacts& facts);

/// Returns a number that is equal for all processes under one kernel, even if they are on several
/// hosts: they share its processors. Never 0.
std::uint64_t machine_identity(const HostFacts& facts);

} // namespace ucg::shm
