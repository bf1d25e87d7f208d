#include "shm/peer_copy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "ucg_coll/base/copy.hpp"
#include "ucg_coll/base/random.hpp"

namespace ucg::shm {
namespace {

/// Returns whether only the descendants of a process may be traced, unless it says otherwise.
bool ptrace_is_restricted() {
    int scope = 0;
    std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
    return static_cast<bool>(file >> scope) && scope == 1;
}

void* pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

pid_t pid_of(const AccessTicket& peer) {
    return static_cast<pid_t>(peer.process);
}

/// Returns whether it is the peer's memory that is at fault, after a read to the byte `here` has
/// failed with EFAULT. Tries to read to it a byte of the peer that the kernel does copy.
bool fault_is_there(const AccessTicket& peer, std::byte* here) {
    const iovec local = {here, 1};
    const iovec remote = {pointer(peer.address), 1};
    return ::process_vm_readv(pid_of(peer), &local, 1, &remote, 1, 0) == 1;
}

/// Returns the failure of a call that copied nothing, which has set errno if it returned less than
/// 0. To the kernel a process whose first thread has ended has no memory (ESRCH), though it lives.
Status failure_of(ssize_t done, const char* doing, const AccessTicket& peer) {
    const int error = done < 0 ? errno : 0;
    return failure(is_refusal(error) ? Code::unsupported
                   : error == ESRCH  ? Code::unreachable
                                     : Code::io_error,
                   "{} the memory of process {}: {}", doing, peer.process,
                   error == 0 ? "nothing was copied" : std::strerror(error));
}

Status gone(const AccessTicket& peer) {
    return failure(Code::io_error, "process {} has ended", peer.process);
}

/// Reads the bytes and, behind them, the word that only the peer has. A call finds the process
/// once, and copies in that order, perhaps less than it was asked for. So where the word has come,
/// that call was to the peer, and so were all before it: a number that has become another process's
/// never becomes the peer's again.
Status read_by_kernel(const AccessTicket& peer, std::uint64_t there, std::byte* here,
                      std::size_t bytes) {
    for (;;) {
        std::uint64_t word = ~peer.word;
        const std::array<iovec, 2> local = {iovec{here, bytes}, iovec{&word, sizeof(word)}};
        const std::array<iovec, 2> remote = {iovec{pointer(there), bytes},
                                             iovec{pointer(peer.address), sizeof(word)}};
        const ssize_t done = ::process_vm_readv(pid_of(peer), local.data(), local.size(),
                                                remote.data(), remote.size(), 0);
        if (done <= 0) {
            const bool fault = done < 0 && errno == EFAULT;
            Status status = failure_of(done, "reading", peer);
            return fault && bytes > 0 && fault_is_there(peer, here)
                       ? failure(Code::invalid_argument, "{}", status.message())
                       : status;
        }
        const auto copied = static_cast<std::size_t>(done);
        if (copied >= bytes + sizeof(word)) {
            return word == peer.word ? Status() : gone(peer);
        }
        const std::size_t moved = std::min(copied, bytes);
        there += moved;
        here += moved;
        bytes -= moved;
    }
}

/// Returns whether the peer still has its number: what is written goes to the process that has it
/// now. Asks once in a while: the system gives a number again only when it has given all others.
bool still_there(const PeerReach& peer) {
    using std::chrono::nanoseconds;
    constexpr nanoseconds kWhile = std::chrono::milliseconds(1);
    const nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    if (now - nanoseconds(peer.access->seen()) < kWhile) {
        return true;
    }
    if (has_ended(peer)) {
        return false;
    }
    peer.access->note_seen(now.count());
    return true;
}

/// Writes the bytes, in several calls if the kernel copies less than it was asked for.
Status write_by_kernel(const PeerReach& peer, std::uint64_t there, const std::byte* here,
                       std::size_t bytes) {
    while (bytes > 0) {
        if (!still_there(peer)) {
            return gone(peer.process);
        }
        const iovec local = {const_cast<std::byte*>(here), bytes};
        const iovec remote = {pointer(there), bytes};
        const ssize_t done = ::process_vm_writev(pid_of(peer.process), &local, 1, &remote, 1, 0);
        if (done <= 0) {
            return failure_of(done, "writing", peer.process);
        }
        there += static_cast<std::uint64_t>(done);
        here += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return {};
}

/// Returns `status`, or an io_error if the peer has ended: then it is no refusal.
Status unless_ended(Status status, const PeerReach& peer) {
    return has_ended(peer) ? failure(Code::io_error, "{}", status.message()) : std::move(status);
}

Status not_permitted(const PeerReach& peer) {
    return failure(Code::unsupported, "the kernel does not copy from or to process {}",
                   peer.process.process);
}

} // namespace

AccessTicket own_access_ticket() {
    static std::mutex mutex;
    static std::uint64_t word = 0; // Not const: peers try to write to it, the same value.
    static pid_t owner = 0;        // A forked child is another process.
    const std::lock_guard lock(mutex);
    if (owner != ::getpid()) {
        const Result<std::uint64_t> drawn = random_word();
        if (!drawn) {
            return {}; // Process 0: nobody may try.
        }
        owner = ::getpid();
        word = *drawn;
        if (ptrace_is_restricted()) {
            // If this fails, peers find out by trying.
            ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        }
    }
    return {owner, reinterpret_cast<std::uintptr_t>(&word), word};
}

/// A filter of system calls may return any error.
bool is_refusal(int error) {
    return error != 0 && error != EFAULT && error != ESRCH;
}

bool can_read(const AccessTicket& peer) {
    return peer.process != 0 && read_by_kernel(peer, 0, nullptr, 0).ok();
}

/// A process that is about to end has no memory any more, and one that has executed another program
/// not this memory; other errors say nothing about its end.
bool has_ended(const AccessTicket& peer, std::uint64_t started) {
    std::uint64_t word = ~peer.word;
    const iovec local = {&word, sizeof(word)};
    const iovec remote = {pointer(peer.address), sizeof(word)};
    const ssize_t done = ::process_vm_readv(pid_of(peer), &local, 1, &remote, 1, 0);
    return done == sizeof(word) ? word != peer.word
                                : (done < 0 && errno == EFAULT) || has_ended(pid_of(peer), started);
}

bool has_ended(const PeerReach& peer) {
    return peer.access != nullptr && peer.access->known()
               ? has_ended(peer.process, peer.number.started)
               : has_ended(peer.number);
}

bool tells_end(const PeerReach& peer) {
    return (peer.access != nullptr && peer.access->known()) || is_known_here(peer.number);
}

bool can_write(const AccessTicket& peer) {
    std::uint64_t word = peer.word;
    const iovec local = {&word, sizeof(word)};
    const iovec remote = {pointer(peer.address), sizeof(word)};
    return ::process_vm_writev(pid_of(peer), &local, 1, &remote, 1, 0) == sizeof(word);
}

Status pull(const PeerReach& peer, const RemoteBytes& from, std::byte* to, std::size_t bytes) {
    if (from.place != 0) {
        copy_bytes(to, peer.segment + (from.place - 1), bytes);
        return {};
    }
    if (!peer.reads()) {
        return not_permitted(peer);
    }
    peer.lookups.wait(bytes);
    Status status = read_by_kernel(peer.process, from.address, to, bytes);
    if (is_refusal(status) || status.code() == Code::invalid_argument) {
        status = unless_ended(std::move(status), peer);
    }
    if (is_refusal(status)) {
        peer.access->refuse_reading();
    }
    return status;
}

Status push(const PeerReach& peer, const RemoteBytes& to, const std::byte* from,
            std::size_t bytes) {
    if (to.place != 0) {
        copy_bytes(peer.segment + (to.place - 1), from, bytes);
        return {};
    }
    if (!peer.writes()) {
        return not_permitted(peer);
    }
    peer.lookups.wait(bytes);
    Status status = write_by_kernel(peer, to.address, from, bytes);
    if (is_refusal(status)) {
        status = unless_ended(std::move(status), peer);
    }
    if (is_refusal(status)) {
        peer.access->refuse_writing();
    }
    return status;
}

void tell_of_refusal(const Status& refusal) {
    static std::atomic<bool> told = false;
    if (refusal.code() == Code::unreachable) {
        log(LogLevel::info,
            "shared memory: {}: it is about to end, or its first thread has ended; its long "
            "messages are copied in and out from now on",
            refusal.message());
    } else if (!told.exchange(true, std::memory_order_relaxed)) {
        log(LogLevel::warn,
            "shared memory: {}: the kernel no longer copies between processes here, of which one "
            "has become undumpable, changed its user or filtered its system calls; long messages "
            "are copied in and out from now on, which is slower. If it need not be so, let the "
            "program call prctl(PR_SET_DUMPABLE, 1) after that change and before its first "
            "collective; UCG_CMA=n on all ranks does without such copies from the start",
            refusal.message());
    }
}

} // namespace ucg::shm
