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

#include "shm/page_lookups.hpp"
#include "shm/process.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What a process tells its peers, so that they can try to copy from and to its memory. Trivially
/// copyable: exchanged as bytes. It names a word that only this process has at that place: a number
/// that means another process in the peer's PID namespace is found out that way.
struct AccessTicket {
    std::int64_t process = 0;  ///< Its number (PID); 0: nobody may try.
    std::uint64_t address = 0; ///< Of a word of the process,
    std::uint64_t word = 0;    ///< and that word.

    bool operator==(const AccessTicket&) const = default;
    bool operator<(const AccessTicket& other) const {
        return std::tie(process, address, word) <
               std::tie(other.process, other.address, other.word);
    }
};

/// What the kernel lets this process do with the memory of another one, as far as is known. All
/// groups that copy from or to that one share what one of them learns. Thread-safe.
class PeerAccess {
  public:
    PeerAccess() = default; ///< It permits nothing.
    PeerAccess(bool reads, bool writes) : reads_(reads), writes_(writes), known_(reads) {}

    // Relaxed: a thread that comes too early tries in vain, and learns it itself.
    bool reads() const { return reads_.load(std::memory_order_relaxed); }
    bool writes() const { return writes_.load(std::memory_order_relaxed); }
    void permit(bool reads, bool writes) {
        reads_.store(reads, std::memory_order_relaxed);
        writes_.store(writes, std::memory_order_relaxed);
        known_.store(reads, std::memory_order_relaxed);
    }
    /// Returns whether its memory has been read, so that its number means it in this process's PID
    /// namespace, too. Stays true when the kernel refuses reading later.
    bool known() const { return known_.load(std::memory_order_relaxed); }
    /// Returns when it was found to exist last, by the host's steady clock, in nanoseconds.
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

/// Returns the ticket of the calling process. Under Yama's restricted ptrace it first allows its
/// own user's processes to attach, as Open MPI and UCX do.
AccessTicket own_access_ticket();

/// Returns whether the kernel lets this process read that one's memory.
bool can_read(const AccessTicket& peer);

/// Returns whether it lets this process write there as well. REQUIRES: can_read(peer).
bool can_write(const AccessTicket& peer);

/// Returns whether that process has ended. Where the kernel refuses to read its memory by now, this
/// is told by its number and by `started` (ProcessNumber::started), as far as it can be. REQUIRES:
/// can_read(peer) was true once; otherwise the number may be another process's.
bool has_ended(const AccessTicket& peer, std::uint64_t started = 0);

/// Bytes of another process. Trivially copyable, of fixed size: it travels as bytes.
struct RemoteBytes {
    std::uint64_t address = 0; ///< In their owner's address space.
    std::uint64_t place = 0;   ///< Offset + 1 in the owner's segment; 0: they do not lie there.

    RemoteBytes at(std::uint64_t offset) const {
        return {address + offset, place == 0 ? 0 : place + offset};
    }
};

/// How this process gets at the memory of one peer.
struct PeerReach {
    std::byte* segment = nullptr; ///< Where the peer's segment is mapped here.
    AccessTicket process;
    PeerAccess* access = nullptr; ///< To that process; null: none. Not owned, outlives this.
    ProcessNumber number = {};
    PageLookups lookups = {}; ///< Of that peer's memory.

    bool reads() const { return access != nullptr && access->reads(); }
    bool writes() const { return access != nullptr && access->writes(); }
    bool pulls_from(const RemoteBytes& bytes) const { return bytes.place != 0 || reads(); }
    bool pushes_to(const RemoteBytes& bytes) const { return bytes.place != 0 || writes(); }
};

/// Returns whether that process has ended, as far as can be told: by its ticket, if its memory was
/// read once, as `access` knows, and else by its number.
bool has_ended(const PeerReach& peer);

/// Returns whether has_ended() can tell it.
bool tells_end(const PeerReach& peer);

/// Copies `bytes` bytes of the peer's memory to `to`. Fails with io_error when the peer has ended,
/// even if another process has its number now, whose bytes may then be at `to`; with
/// invalid_argument when the peer lives, but the kernel does not copy what lies there
/// (shm/readable.hpp); with unsupported unless peer.pulls_from(from). Where the kernel refuses the
/// copy from now on, it is not tried again, and fails with unsupported; or with unreachable if the
/// peer has no memory: it is about to end, or its first thread has ended.
Status pull(const PeerReach& peer, const RemoteBytes& from, std::byte* to, std::size_t bytes);

/// Copies `bytes` bytes into the peer's memory. Fails as pull() does; but whether another process
/// has the peer's number is asked at most once in a millisecond.
Status push(const PeerReach& peer, const RemoteBytes& to, const std::byte* from, std::size_t bytes);

/// Returns whether pull() or push() failed because the kernel refuses such copies from now on.
inline bool is_refusal(const Status& status) {
    return status.code() == Code::unsupported || status.code() == Code::unreachable;
}

/// Warns the user, once in a process, of a refusal after messages were copied so; a peer without
/// memory is only logged at level info. REQUIRES: pull() or push() returned it, and
/// is_refusal(refusal).
void tell_of_refusal(const Status& refusal);

/// Returns whether this errno of process_vm_readv says that the kernel refuses the call, whatever
/// memory it names.
bool is_refusal(int error);

} // namespace ucg::shm
