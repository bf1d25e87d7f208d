// Copying from and to the memory of another process of the same user: where both map it, in user
// space; else by one copy in the kernel (process_vm_readv and process_vm_writev, in this field
// "CMA", cross-memory attach). Whether the kernel permits that is a matter of ptrace rules,
// containers and namespaces: found out by trying, once for each peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What a process tells its peers, so that they can try. Trivially copyable: exchanged as bytes. It
/// names a word that only this process has at that place: a number that means another process in
/// the peer's PID namespace is found out that way.
struct AccessTicket {
    std::int64_t process = 0; ///< 0: nobody may try.
    std::uint64_t address = 0;
    std::uint64_t word = 0;

    bool operator==(const AccessTicket&) const = default;
    bool operator<(const AccessTicket& other) const {
        return std::tie(process, address, word) <
               std::tie(other.process, other.address, other.word);
    }
};

/// What the kernel lets a process do with the memory of another one.
struct PeerAccess {
    bool reads = false;
    bool writes = false;
};

/// The calling process's own. Under Yama's restricted ptrace it first allows its own user's
/// processes to attach, as Open MPI and UCX do.
AccessTicket own_access_ticket();

/// Does the kernel let this process read that one's memory?
bool can_read(const AccessTicket& peer);

/// Does it let this process write there as well? REQUIRES: can_read(peer).
bool can_write(const AccessTicket& peer);

/// Bytes of another process. Trivially copyable, of fixed size: it travels as bytes.
struct RemoteBytes {
    std::uint64_t address = 0; ///< In their owner's address space.
    std::uint64_t place = 0;   ///< In its segment, offset + 1; 0: not there.

    RemoteBytes at(std::uint64_t offset) const {
        return {address + offset, place == 0 ? 0 : place + offset};
    }
};

/// How this process gets at the memory of one peer.
struct PeerReach {
    std::byte* segment = nullptr; ///< Where the peer's segment is mapped here.
    AccessTicket process;         ///< process 0: the kernel does not permit reading.
    bool writes = false;          ///< The kernel permits writing.

    bool pulls_from(const RemoteBytes& bytes) const {
        return bytes.place != 0 || process.process != 0;
    }
    bool pushes_to(const RemoteBytes& bytes) const { return bytes.place != 0 || writes; }
};

/// Copies `bytes` bytes of the peer's to `to`. Fails with io_error when the peer is gone or the
/// memory cannot be read. REQUIRES: peer.pulls_from(from).
Status pull(const PeerReach& peer, const RemoteBytes& from, std::byte* to, std::size_t bytes);

/// Copies `bytes` bytes into the peer's memory. Fails as pull() does.
/// REQUIRES: peer.pushes_to(to).
Status push(const PeerReach& peer, const RemoteBytes& to, const std::byte* from, std::size_t bytes);

} // namespace ucg::shm
