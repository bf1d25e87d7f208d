#include "shm/peer_copy.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ucg_coll/base/copy.hpp"

namespace ucg::shm {
namespace {

using SystemCall = decltype(&::process_vm_readv);

std::uint64_t random_word() {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
}

/// 1: only a process's descendants may be traced, unless it says otherwise.
bool ptrace_is_restricted() {
    int scope = 0;
    std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
    return static_cast<bool>(file >> scope) && scope == 1;
}

void* pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// The kernel may copy less than it was asked for.
Status copy_by_kernel(SystemCall call, const char* doing, const AccessTicket& peer,
                      std::uint64_t there, std::byte* here, std::size_t bytes) {
    while (bytes > 0) {
        const iovec local = {here, bytes};
        const iovec remote = {pointer(there), bytes};
        const ssize_t done = call(static_cast<pid_t>(peer.process), &local, 1, &remote, 1, 0);
        if (done <= 0) {
            return failure(Code::io_error, "{} the memory of process {}: {}", doing, peer.process,
                           done == 0 ? "nothing was copied" : std::strerror(errno));
        }
        there += static_cast<std::uint64_t>(done);
        here += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return {};
}

} // namespace

AccessTicket own_access_ticket() {
    static std::mutex mutex;
    static std::uint64_t word = 0; // Not const: peers try to write it, as it is.
    static pid_t owner = 0;        // A forked child is another process.
    const std::lock_guard lock(mutex);
    if (owner != ::getpid()) {
        owner = ::getpid();
        word = random_word();
        if (ptrace_is_restricted()) {
            // If this fails, peers find out by trying.
            ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        }
    }
    return {owner, reinterpret_cast<std::uintptr_t>(&word), word};
}

bool can_read(const AccessTicket& peer) {
    if (peer.process == 0) {
        return false;
    }
    std::uint64_t word = ~peer.word;
    return copy_by_kernel(&::process_vm_readv, "reading", peer, peer.address,
                          reinterpret_cast<std::byte*>(&word), sizeof(word))
               .ok() &&
           word == peer.word;
}

bool can_write(const AccessTicket& peer) {
    std::uint64_t word = peer.word;
    return copy_by_kernel(&::process_vm_writev, "writing", peer, peer.address,
                          reinterpret_cast<std::byte*>(&word), sizeof(word))
        .ok();
}

Status pull(const PeerReach& peer, const RemoteBytes& from, std::byte* to, std::size_t bytes) {
    UCG_ASSERT(peer.pulls_from(from));
    if (from.place != 0) {
        copy_bytes(to, peer.segment + (from.place - 1), bytes);
        return {};
    }
    return copy_by_kernel(&::process_vm_readv, "reading", peer.process, from.address, to, bytes);
}

Status push(const PeerReach& peer, const RemoteBytes& to, const std::byte* from,
            std::size_t bytes) {
    UCG_ASSERT(peer.pushes_to(to));
    if (to.place != 0) {
        copy_bytes(peer.segment + (to.place - 1), from, bytes);
        return {};
    }
    return copy_by_kernel(&::process_vm_writev, "writing", peer.process, to.address,
                          const_cast<std::byte*>(from), bytes);
}

} // namespace ucg::shm
