#include "shm/peer_read.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace ucg::shm {
namespace {

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

} // namespace

ReadTicket own_read_ticket() {
    static const std::uint64_t word = random_word();
    if (ptrace_is_restricted()) {
        // If this fails, peers find out by trying.
        ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    }
    return {::getpid(), reinterpret_cast<std::uintptr_t>(&word), word};
}

Status read_peer(const ReadTicket& peer, const std::byte* from, std::byte* to, std::size_t bytes) {
    while (bytes > 0) {
        iovec local = {to, bytes};
        iovec remote = {const_cast<std::byte*>(from), bytes};
        const ssize_t got =
            ::process_vm_readv(static_cast<pid_t>(peer.process), &local, 1, &remote, 1, 0);
        if (got <= 0) {
            return failure(Code::io_error, "reading the memory of process {}: {}", peer.process,
                           got == 0 ? "nothing was read" : std::strerror(errno));
        }
        from += got;
        to += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return {};
}

bool can_read(const ReadTicket& peer) {
    if (peer.process == 0) {
        return false;
    }
    std::uint64_t word = ~peer.word;
    const auto* from = reinterpret_cast<const std::byte*>(peer.address);
    return read_peer(peer, from, reinterpret_cast<std::byte*>(&word), sizeof(word)).ok() &&
           word == peer.word;
}

} // namespace ucg::shm
