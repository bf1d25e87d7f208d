#include "shm/peer_copy.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ucg_coll/base/copy.hpp"
#include "ucg_coll/base/random.hpp"

namespace ucg::shm {
namespace {

using SystemCall = decltype(&::process_vm_readv);

/// 1: only a process's descendants may be traced, unless it says otherwise.
bool ptrace_is_restricted() {
    int scope = 0;
    std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
    return static_cast<bool>(file >> scope) && scope == 1;
}

void* pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// After a read to this byte has failed with EFAULT: is it the peer's memory that is at fault?
/// Tries to read a byte to it that the kernel copies.
bool fault_is_there(const AccessTicket& peer, std::byte* here) {
    const iovec local = {here, 1};
    const iovec remote = {pointer(peer.address), 1};
    return ::process_vm_readv(static_cast<pid_t>(peer.process), &local, 1, &remote, 1, 0) == 1;
}

/// Has the kernel refused it for good? To it a process whose first thread has ended has no memory
/// (ESRCH), though it lives.
bool refuses(int error, pid_t process) {
    return is_refusal(error) || (error == ESRCH && !has_ended(process));
}

/// The kernel may copy less than it was asked for.
Status copy_by_kernel(SystemCall call, const char* doing, const AccessTicket& peer,
                      std::uint64_t there, std::byte* here, std::size_t bytes) {
    const auto process = static_cast<pid_t>(peer.process);
    while (bytes > 0) {
        const iovec local = {here, bytes};
        const iovec remote = {pointer(there), bytes};
        const ssize_t done = call(process, &local, 1, &remote, 1, 0);
        if (done <= 0) {
            const int error = done < 0 ? errno : 0;
            const bool there_only =
                error == EFAULT && call == &::process_vm_readv && fault_is_there(peer, here);
            const Code code = refuses(error, process) ? Code::unsupported
                              : there_only            ? Code::invalid_argument
                                                      : Code::io_error;
            return failure(code, "{} the memory of process {}: {}", doing, peer.process,
                           error == 0 ? "nothing was copied" : std::strerror(error));
        }
        there += static_cast<std::uint64_t>(done);
        here += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return {};
}

Status read_word(const AccessTicket& peer, std::uint64_t& word) {
    return copy_by_kernel(&::process_vm_readv, "reading", peer, peer.address,
                          reinterpret_cast<std::byte*>(&word), sizeof(word));
}

Status not_permitted(const PeerReach& peer) {
    return failure(Code::unsupported, "the kernel does not copy from or to process {}",
                   peer.process.process);
}

} // namespace

AccessTicket own_access_ticket() {
    static std::mutex mutex;
    static std::uint64_t word = 0; // Not const: peers try to write it, as it is.
    static pid_t owner = 0;        // A forked child is another process.
    const std::lock_guard lock(mutex);
    if (owner != ::getpid()) {
        const Result<std::uint64_t> drawn = random_word();
        if (!drawn) {
            return {}; // Nobody reads from nobody.
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

bool is_refusal(int error) {
    return error == EPERM || error == EACCES || error == ENOSYS;
}

bool can_read(const AccessTicket& peer) {
    std::uint64_t word = ~peer.word;
    return peer.process != 0 && read_word(peer, word).ok() && word == peer.word;
}

/// A process that is about to end has no memory any more, and one that has begun another program
/// not this memory; what else goes wrong says nothing of it.
bool has_ended(const AccessTicket& peer) {
    std::uint64_t word = ~peer.word;
    const iovec local = {&word, sizeof(word)};
    const iovec remote = {pointer(peer.address), sizeof(word)};
    const auto process = static_cast<pid_t>(peer.process);
    const ssize_t done = ::process_vm_readv(process, &local, 1, &remote, 1, 0);
    return done == sizeof(word) ? word != peer.word
                                : (done < 0 && errno == EFAULT) || has_ended(process);
}

bool has_ended(const AccessTicket& ticket, const PeerAccess* access, const ProcessNumber& number) {
    return access != nullptr && access->known() ? has_ended(ticket) : has_ended(number);
}

bool can_write(const AccessTicket& peer) {
    std::uint64_t word = peer.word;
    return copy_by_kernel(&::process_vm_writev, "writing", peer, peer.address,
                          reinterpret_cast<std::byte*>(&word), sizeof(word))
        .ok();
}

Status pull(const PeerReach& peer, const RemoteBytes& from, std::byte* to, std::size_t bytes) {
    if (from.place != 0) {
        copy_bytes(to, peer.segment + (from.place - 1), bytes);
        return {};
    }
    if (!peer.reads()) {
        return not_permitted(peer);
    }
    Status status =
        copy_by_kernel(&::process_vm_readv, "reading", peer.process, from.address, to, bytes);
    if (status.code() == Code::unsupported) {
        peer.access->refuse_reading();
    } else if (status.code() == Code::invalid_argument && has_ended(peer.process)) {
        status = failure(Code::io_error, "{}", status.message());
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
    Status status = copy_by_kernel(&::process_vm_writev, "writing", peer.process, to.address,
                                   const_cast<std::byte*>(from), bytes);
    if (status.code() == Code::unsupported) {
        peer.access->refuse_writing();
    }
    return status;
}

void tell_of_refusal(const Status& refusal) {
    static std::atomic<bool> told = false;
    if (!told.exchange(true, std::memory_order_relaxed)) {
        log(LogLevel::warn,
            "shared memory: {}: the kernel no longer copies between processes here, of which one "
            "has become undumpable, changed its user, filtered its system calls or ended its "
            "first thread; long messages are copied in and out from now on, which is slower. If it "
            "need not be so, let the program call prctl(PR_SET_DUMPABLE, 1) after that change and "
            "before its first collective; UCG_CMA=n on all ranks does without such copies from the "
            "start",
            refusal.message());
    }
}

} // namespace ucg::shm
