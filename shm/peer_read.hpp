// Reading the memory of another process of the same user, by one copy in the kernel
// (process_vm_readv, in this field "CMA", cross-memory attach). Whether the kernel permits it is a
// matter of ptrace rules, containers and namespaces: found out by trying, once for each peer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What a process tells its peers, so that they can try. Trivially copyable: exchanged as bytes. It
/// names a word that only this process has at that place: a number that means another process in
/// the reader's PID namespace is found out that way.
struct ReadTicket {
    std::int64_t process = 0; ///< 0: nobody may read.
    std::uint64_t address = 0;
    std::uint64_t word = 0;

    bool operator==(const ReadTicket&) const = default;
};

/// The calling process's own. Under Yama's restricted ptrace it first allows its own user's
/// processes to read it, as Open MPI and UCX do.
ReadTicket own_read_ticket();

/// Does the kernel let this process read that one's memory?
bool can_read(const ReadTicket& peer);

/// Copies `bytes` bytes at `from` in the peer's address space to `to`. Fails with io_error when the
/// peer is gone or the memory cannot be read.
Status read_peer(const ReadTicket& peer, const std::byte* from, std::byte* to, std::size_t bytes);

} // namespace ucg::shm
