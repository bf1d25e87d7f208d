// Copying from and to the memory of another process of the same user: where both map it, in user
// space; else by one copy in the kernel (process_vm_readv and process_vm_writev, in this field
// "CMA", cross-memory attach). Whether the kernel permits that is a matter of ptrace rules,
// containers and namespaces: found out by trying, once for each peer. It may refuse later what it
// permitted then, when either process changes its user, its dumpability or what it may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "shm/process.hpp"
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

/// What the kernel lets this process do with the memory of another one, as far as is known. All
/// who copy from or to it share what one of them learns. Thread-safe.
class PeerAccess {
  public:
    PeerAccess() = default; ///< Nothing.
    PeerAccess(bool reads, bool writes) : reads_(reads), writes_(writes), known_(reads) {}

    // Relaxed: whoever comes too early tries in vain, and learns it himself.
    bool reads() const { return reads_.load(std::memory_order_relaxed); }
    bool writes() const { return writes_.load(std::memory_order_relaxed); }
    void permit(bool reads, bool writes) {
        reads_.store(reads, std::memory_order_relaxed);
        writes_.store(writes, std::memory_order_relaxed);
        known_.store(reads, std::memory_order_relaxed);
    }
    /// Has its memory been read, so that its number means it in this process's PID namespace, too?
    /// Stays true when the kernel refuses that later.
    bool known() const { return known_.load(std::memory_order_relaxed); }
    /// When was it there, as far as was asked? By the host's steady clock, in nanoseconds.
    std::int64_t seen() const { return seen_.load(std::memory_order_relaxed); }
    void note_seen(std::int64_t now) { seen_.store(now, std::memory_order_relaxed); }
    void refuse_reading() { reads_.store(false, std::memory_order_relaxed); }
    void refuse_writing() { writes_.store(false, std::memory_order_relaxed); }

  private:
    std::atomic<bool> reads_ = false;
    std::atomic<bool> writes_ = false;
    std::atomic<bool> known_ = false;
    std::atomic<std::int64_t> seen_ = 0;
};

/// The calling process's own. Under Yama's restricted ptrace it first allows its own user's
/// processes to attach, as Open MPI and UCX do.
AccessTicket own_access_ticket();

/// Does the kernel let this process read that one's memory?
bool can_read(const AccessTicket& peer);

/// Does it let this process write there as well? REQUIRES: can_read(peer).
bool can_write(const AccessTicket& peer);

/// Has that process ended? Where the kernel refuses to read its memory by now, as far as can be
/// told without, by its number and when it `started`: ProcessNumber's.
/// REQUIRES: can_read(peer) was true once; otherwise the number may be another's.
bool has_ended(const AccessTicket& peer, std::uint64_t started = 0);

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
    AccessTicket process;
    PeerAccess* access = nullptr; ///< To that process; null: none. Outlives this.
    ProcessNumber number = {};

    bool reads() const { return access != nullptr && access->reads(); }
    bool writes() const { return access != nullptr && access->writes(); }
    bool pulls_from(const RemoteBytes& bytes) const { return bytes.place != 0 || reads(); }
    bool pushes_to(const RemoteBytes& bytes) const { return bytes.place != 0 || writes(); }
};

/// Has that process ended, as far as can be told: by its ticket, if that was read once, as `access`
/// knows, and else by its number?
bool has_ended(const PeerReach& peer);

/// Would has_ended() tell it?
bool tells_end(const PeerReach& peer);

/// Copies `bytes` bytes of the peer's to `to`. Fails with io_error when the peer is gone, whoever
/// has its number now: what is at `to` may be that one's; with invalid_argument when it lives, but
/// the kernel copies nothing there: see shm/readable.hpp; with unsupported unless
/// peer.pulls_from(from). Where the kernel refuses it from now on, that is not tried again, and it
/// fails with unsupported; or with unreachable if the peer has no memory: it is about to end, or
/// its first thread has ended.
Status pull(const PeerReach& peer, const RemoteBytes& from, std::byte* to, std::size_t bytes);

/// Copies `bytes` bytes into the peer's memory. Fails as pull() does; but that another process has
/// the peer's number is found out at most once in a millisecond.
Status push(const PeerReach& peer, const RemoteBytes& to, const std::byte* from, std::size_t bytes);

/// Did pull() or push() fail because the kernel refuses it from now on?
inline bool is_refusal(const Status& status) {
    return status.code() == Code::unsupported || status.code() == Code::unreachable;
}

/// Tells the user, once in a process, of a refusal after messages were copied so; but of a peer
/// without memory only who wants to know all. REQUIRES: pull() or push() returned it, and
/// is_refusal(refusal).
void tell_of_refusal(const Status& refusal);

/// Does this error of process_vm_readv say that the kernel refuses the call, whatever memory it is
/// about?
bool is_refusal(int error);

} // namespace ucg::shm
