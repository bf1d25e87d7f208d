// One process's end of the library: configuration, the node heap, the UCX worker, and the groups
// that need progress.
//
// Threading: any thread may use a context that was made for several; each lock below says what it
// guards. Locks are taken in the order in which they are declared, groups' own locks after that of
// the list of groups, planners' locks after those of groups. No lock but the first is held while a
// function of the program runs. That of the list is held as long as all groups take: what must not
// wait takes that of the queues instead.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shm/shm.hpp"
#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context_params.hpp"
#include "ucg_coll/capi/cpu_load.hpp"
#include "ucg_coll/capi/latest_options.hpp"
#include "ucg_coll/capi/machine_setting.hpp"
#include "ucg_coll/capi/phases_file.hpp"
#include "ucg_coll/capi/planners.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/capi/remarks.hpp"
#include "ucg_coll/capi/topology_file.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {

class Group;

/// The time of a short message between hosts that groups plan by (cost::listed_message_ns), for
/// each kind of network. Trivially copyable: it travels as bytes.
struct LearnedNetworks {
    struct Known {
        std::uint32_t known = 0;
        double message_ns = 0;
    };
    std::array<Known, cost::kNetworks.size()> by_kind = {};

    Known& of(cost::NetworkKind kind) { return by_kind[static_cast<std::size_t>(kind)]; }
    const Known& of(cost::NetworkKind kind) const {
        return by_kind[static_cast<std::size_t>(kind)];
    }
};

/// What to do about groups whose locks another thread holds.
enum class Busy : std::uint8_t {
    skip,  ///< Leave them out: the other thread makes progress on them.
    await, ///< Wait for the locks: who goes to sleep must have looked at everything.
};

/// What came of driving a group.
struct Looked {
    unsigned events = 0;     ///< How many things happened.
    bool at_network = false; ///< UCX's worker has been driven.
    bool over = false;       ///< Nothing is in progress: the group leaves the list of busy groups.
};

/// An operator of the program that is due and that any thread may call: that of a nonblocking
/// collective.
struct DueOperator {
    Group* group = nullptr; ///< Null: there is none.
    engine::Execution* execution = nullptr;
};

/// The end of a collective whose caller wants to be told of it, until it was told.
struct Completion {
    void* user_data = nullptr;
    ucg_coll_cb_t callback = nullptr; ///< Null: whoever polls the context is told.
    ucg_coll_h coll = nullptr;        ///< An argument of the callback.
    ucg_status_t status = UCG_OK;
    Completion* next = nullptr;
};

/// Ends of collectives, in the order in which they came.
class CompletionQueue {
  public:
    void add(Completion& completion) {
        completion.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &completion;
        last_ = &completion;
    }
    bool empty() const { return first_ == nullptr; }
    /// Removes and returns the oldest end; null if there is none. Its collective stays busy until
    /// tell() is called.
    Completion* take() {
        Completion* const oldest = first_;
        if (oldest != nullptr) {
            first_ = oldest->next;
        }
        return oldest;
    }

  private:
    Completion* first_ = nullptr;
    Completion* last_ = nullptr;
};

/// Returns what the caller is told of an end that was taken from its queue. Afterwards any thread
/// may start the collective again or free it, so that `ended` is not used any more. The caller
/// holds no lock.
ucg_status_t tell(Completion& ended);

class Context {
  public:
    Context(const ucg_context_params_t* params, Config config, LoadedProfile profile,
            LoadedPhases phases);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    const Config& config() const { return config_; }
    /// Config::common_digests(), which every group compares.
    const Config::CommonDigests& common_digests() const { return common_digests_; }
    /// The profile of this process; that of a group is agreed on when the group is made.
    const LoadedProfile& profile() const { return profile_; }
    /// The switches between hosts that this process knows of, read when a group first has several
    /// hosts. REQUIRES: the caller holds maker().
    const LoadedTopology& topology();
    /// The machine that UCG_MACHINE names, read when the first group is made. REQUIRES: the caller
    /// holds maker().
    const NamedMachine& machine();
    /// The schedule of phases that this process has loaded, if it has.
    const LoadedPhases& phases() const { return phases_; }
    const std::string& name() const { return remarks_.name(); }
    Remarks& remarks() { return remarks_; }
    /// Do several threads use the context?
    bool threaded() const { return params_.threaded; }

    /// Held by a thread that makes a group by waiting, also over the program's allgather: such
    /// groups are made one after the other, in an order that all processes share, since their ranks
    /// make heaps together. Within an exchange the same thread may make another group. Nothing else
    /// waits for this lock, except a thread that first needs a heap.
    OptionalRecursiveMutex& waiting_makers() { return waiting_makers_; }
    /// Held while a group's wire-up works, and never over an exchange, in which other groups may be
    /// made. Functions that require it are for its holder alone. A thread that may not wait does
    /// not wait for it: its holder may wait for peers, to map their heaps.
    OptionalMutex& maker() { return maker_; }

    /// May this process still share memory? Not after it could not map a peer, for a reason of its
    /// own or because the peer did not come in time: another attempt would wait for its time-out.
    bool shm_usable() const {
        return config_.shm_enabled() && !shm_failed_.load(std::memory_order_relaxed);
    }
    /// Stops sharing memory, and lets the peers that wait for this process's heap know at once.
    void give_up_shm();
    /// Does the kernel let this process read and write the memory of all whose heaps are attached?
    bool reaches_attached() const { return reaches_attached_.load(std::memory_order_relaxed); }
    /// There is a process with an attached heap whose memory the kernel does not let this one read
    /// and write, or with which that was not tried.
    void reaches_not_all() { reaches_attached_.store(false, std::memory_order_relaxed); }
    /// Unmaps the heap and those of peers if shared memory was given up and nothing is leased there
    /// any more: address space may be what was short. Called whenever something has been returned
    /// to the heap.
    void drop_unused_heap();

    /// Returns the node heap; null if there is none.
    shm::Heap* heap_at_hand();
    /// What a group that is being made may have of this process.
    struct HeapOrWish {
        shm::Heap* heap = nullptr; ///< The node heap; null if there is none.
        /// Without a heap: what this process wishes of one that is made together with others; its
        /// capacity is 0 if this process would make one alone. The same for all groups that ask.
        /// Empty if a group that is being made has claimed it.
        std::optional<shm::HeapWish> wish;
    };
    /// Returns which of the two it is at one moment: another thread may make the heap in the next,
    /// for memory of the program's own. `claims`: the caller's group claims what it wishes for.
    HeapOrWish heap_or_wish(bool claims);
    /// Keeps everybody else from making the heap that was wished for, until release_claim().
    /// Returns false if it cannot be made as was wished: another group has claimed it, or tried to
    /// make it.
    bool claim_heap(const shm::Token& wish);
    void release_claim();
    /// Begins to make the node heap that is claimed, together with those of the others that wish
    /// for one. `wishes` are those of all ranks of the group on this host, and `self` is the own
    /// one's index. Returns null if no heap is to be made so: then heap_of() returns one.
    /// Collective.
    std::unique_ptr<shm::HeapJoin> join_heap(std::span<const shm::HeapWish> wishes,
                                             std::size_t self,
                                             std::chrono::steady_clock::time_point deadline);
    /// Keeps the heap that a join has made. If the join failed, gives up sharing memory, unless it
    /// failed because a peer was gone.
    Result<shm::Heap*> take_joined(Result<std::unique_ptr<shm::Heap>> joined);
    /// Returns the node heap that this process has told of by its token; makes it if there is none.
    /// Fails where that heap is gone, or is another one.
    Result<shm::Heap*> heap_of(const shm::Token& token);
    /// Returns memory of the node heap, which the caller gives back by release(). The first call
    /// waits for a thread that makes a group by waiting.
    Result<std::byte*> allocate(std::uint64_t bytes);
    /// Gives back memory. Returns false when `data` is not the start of memory that allocate() has
    /// returned.
    bool release(const std::byte* data);
    /// Returns this process's end of UCX, which is started at first use: a program whose ranks are
    /// all on one host never pays for it. `several_hosts`: the group has ranks on several hosts, so
    /// that the switches between these may matter. REQUIRES: the caller holds maker().
    Result<transport::Network*> ucx(bool several_hosts);
    /// Returns it if it has been started, else null. REQUIRES: the caller holds maker().
    const transport::Network* ucx_at_hand() const { return ucx_.get(); }

    /// What does not change while the process lives. The system is asked once: many programs make
    /// thousands of groups.
    struct ProcessFacts {
        Result<shm::HostFacts> host; ///< Processes with equal facts share memory.
        std::vector<std::uint32_t> cpus = {};
        topo::CpuGrant grant = {}; ///< Of its control groups, whatever the mask says.
    };
    const ProcessFacts& process_facts() const { return process_facts_; }
    /// Returns where this process runs, or where UCG_MACHINE has it run; the host is not set.
    /// Looked up once: processes do not move between cores that they are bound to. REQUIRES: the
    /// caller holds maker().
    const topo::Place& place();
    /// Returns the length, in bytes, from which on this process would have the kernel copy
    /// messages: as its costs say, or, where nothing was measured, as a look at the kernel's copies
    /// says, which is made once. REQUIRES: the caller holds maker().
    std::uint64_t single_copy_bytes_min();
    /// What the latest group that looked has found out about networks that nobody has measured.
    /// REQUIRES: the caller holds maker().
    LearnedNetworks& learned_networks() { return learned_networks_; }
    /// The job's processes on this host, in whatever groups, and their CPUs, as far as the caller
    /// told.
    const CpuLoad& host_load() const { return host_load_; }

    /// Returns the number by which this process is going to know a group over UCX, another one each
    /// time. REQUIRES: the caller holds maker().
    std::uint32_t take_group_id() { return next_group_id_++; }
    /// To be used while the caller holds maker().
    LatestOptions& latest_options() { return latest_options_; }
    Planners& planners() { return planners_; }
    /// Reserves memory for one more group, so that add() needs none. REQUIRES: the caller holds
    /// maker().
    void expect_group();
    void add(const Group& group);
    void remove(Group& group);
    /// Lists a group that has something in progress which its caller may leave alone
    /// (Group::to_be_listed()): whoever makes progress looks at it, until nothing is left. A
    /// program may have thousands of groups, and nobody looks at the others. The caller holds no
    /// lock.
    void list_busy(Group& group);
    /// Counts a group that is being made without waiting, for which the context must stay.
    void creation_begins() { creations_.fetch_add(1, std::memory_order_relaxed); }
    void creation_ends() { creations_.fetch_sub(1, std::memory_order_release); }
    std::size_t creation_count() const { return creations_.load(std::memory_order_acquire); }
    /// Returns the number of all groups.
    std::size_t group_count() {
        const std::lock_guard lock(groups_mutex_);
        return group_count_;
    }
    /// Returns the number of groups that progress looks at.
    std::size_t busy_groups() const { return busy_count_.load(std::memory_order_relaxed); }
    /// Returns how many bytes the next group may lease for its peers to read: 0 once many groups
    /// have such memory.
    std::uint64_t staging_for_group();
    /// Returns how many bytes the buffers of one ring of a new group may have in all.
    std::uint64_t ring_bytes_for_group();

    /// Makes progress on all that this thread waits for (Awaited), on all busy groups and on UCX,
    /// and calls one operator that any thread may call, if one is due: each time that of another
    /// group. Returns how many things happened, and whether it `called` an operator. The caller
    /// holds no lock.
    unsigned progress(Busy busy, bool& called);
    unsigned progress(Busy busy);
    /// Makes progress once in several calls, for a caller that looks after one collective: the
    /// peers that it waits for may wait for another group. It calls no callbacks: the caller may
    /// have a lock that they take. The caller holds no lock of the library's.
    void progress_at_times() {
        constexpr unsigned kCallsPerProgress = 8;
        const unsigned calls = single_calls_.load(std::memory_order_relaxed) + 1;
        single_calls_.store(calls, std::memory_order_relaxed); // A lost count does no harm.
        if (calls % kCallsPerProgress == 0) {
            progress(Busy::skip);
        }
    }
    /// Returns the oldest end that no callback is told of, which is for tell(); null if there is
    /// none. The caller holds no lock.
    Completion* take_completion() {
        return ends_polled_.load(std::memory_order_relaxed) ? take_polled() : nullptr;
    }
    /// Calls the callbacks of the ends that have come. Returns how many. The caller holds no lock.
    unsigned call_back() {
        return ends_called_.load(std::memory_order_relaxed) ? call_due_back() : 0;
    }

    /// Wakes this process's other threads if something has moved: it may be what one of them sleeps
    /// for, and no peer rings for it again (shm/PROTOCOL.md, "Threads"). May be called under any
    /// lock. Returns `events`.
    unsigned tell_threads(unsigned events) {
        // The compiler must leave the order of what was moved before and the load after.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (events > 0 && sleeping_.load(std::memory_order_relaxed) > 0 && threaded()) {
            ring();
        }
        return events;
    }

    /// Returns that by which a thread of this process sleeps. It is replaced when the node heap is
    /// made, and when it is dropped: a thread that sleeps holds on to the one that it began with.
    std::shared_ptr<shm::Sleeper> sleeper() {
        const std::lock_guard lock(mutex_);
        return sleeper_;
    }
    /// To be called by a thread that waits before it sleeps for the first time; woken() when its
    /// wait has ended. Peers in all busy groups learn of it before the thread's first announcement.
    /// Nobody waits in the other groups.
    void sleeps() { add_sleeping(1); }
    void woken() { add_sleeping(-1); }
    /// Does any busy group have messages that wait for room in a peer's memory?
    bool stuck();

    /// Lets the host make progress: on its messages, and on everything if there are none, else in
    /// each eighth call, since messages may keep coming. Returns how many things happened there.
    /// The caller holds no lock.
    unsigned host_progress() {
        const unsigned messages = host_messages();
        return messages > 0 && !drives_everything() ? messages : messages + drive_host(0);
    }
    /// Lets the host make progress on its messages alone. Returns how many things happened.
    unsigned host_messages() { return drive_host(UCG_PROGRESS_FLAG_MESSAGES); }
    /// Makes progress at the end of a call: lets the host do so, on its messages and on everything
    /// by turns, in each call while there are messages, else in each eighth; and looks after other
    /// groups, in each eighth of these. The caller holds no lock.
    void progress_at_end() {
        const unsigned rests = host_rests_.load(std::memory_order_relaxed);
        unsigned next = rests - 1;
        if (rests % kHostRest == 0) {
            if (busy_count_.load(std::memory_order_relaxed) > 0) [[unlikely]] {
                progress_at_times();
            }
            if (rests == 0) {
                next = host_messages() > 0 ? kHostBusy : 2 * kHostRest - 1;
            } else {
                const bool busy = drive_host(0) > 0 || rests == kHostBusy;
                next = busy ? 0 : next;
            }
        }
        host_rests_.store(next, std::memory_order_relaxed);
    }
    /// Who shares this process's processors, as its waits have learned.
    shm::Neighbours& neighbours() { return neighbours_; }
    void disconnect();

  private:
    static constexpr unsigned kHostRest = 8;
    static constexpr unsigned kHostBusy = 2 * kHostRest; ///< host_rests_ after there were messages.

    unsigned drive_host(unsigned flags) {
        return params_.progress == nullptr ? 0 : params_.progress(params_.progress_arg, flags);
    }
    /// Is it time to drive everything of the host, although it has messages?
    bool drives_everything() {
        const unsigned calls = host_streams_.load(std::memory_order_relaxed) + 1;
        host_streams_.store(calls, std::memory_order_relaxed); // A lost count does no harm.
        return calls % kHostRest == 0;
    }
    Completion* take_polled();
    void add_ends(CompletionQueue& ends);
    void take_over_busy();
    bool rests_from_network(Busy busy);
    unsigned drive_groups(Busy busy, DueOperator& due);
    unsigned call(const DueOperator& due);
    void collect_memory();
    Status make_heap();
    Result<shm::Heap*> heap_locked();
    shm::HeapOptions heap_options() const;
    Result<shm::Heap*> take_heap(Result<std::unique_ptr<shm::Heap>> made);
    void add_sleeping(int threads);
    void set_sleeper(std::shared_ptr<shm::Sleeper> sleeper);
    void ring();
    unsigned call_due_back();

    const Config config_;
    const Config::CommonDigests common_digests_;
    LoadedProfile profile_;
    LoadedPhases phases_;
    const ContextParams params_;
    Remarks remarks_;
    /// Calls that end before the host is driven for its messages; halfway it is driven as a whole.
    std::atomic<unsigned> host_rests_ = 0;
    std::atomic<unsigned> host_streams_ = 0; ///< Calls of host_progress() that found messages.
    std::atomic<unsigned> single_calls_ = 0; ///< Calls of progress_at_times().
    shm::Neighbours neighbours_;
    const ProcessFacts process_facts_;
    CpuLoad host_load_;

    OptionalRecursiveMutex waiting_makers_;
    OptionalMutex maker_;
    std::uint32_t next_group_id_ = 1;
    std::optional<topo::Place> place_;
    std::optional<NamedMachine> machine_;
    std::optional<LoadedTopology> topology_;
    LatestOptions latest_options_;
    Planners planners_;
    std::uint64_t single_copy_bytes_min_ = 0; ///< 0: not known yet.
    LearnedNetworks learned_networks_;
    Status ucx_failure_; ///< Why UCX could not start; it is not tried again by every group.

    OptionalMutex groups_mutex_; ///< Groups' own locks are taken under it.
    std::vector<Group*> busy_;   ///< Groups to be looked at; whose operator was called comes last.
    unsigned network_rests_ = 0; ///< Counts calls of rests_from_network().
    std::atomic<std::size_t> creations_ = 0;  ///< Groups being made. Read under any lock.
    std::size_t group_count_ = 0;             ///< Busy or not.
    std::size_t staging_groups_ = 0;          ///< Groups that have memory for their peers to read.
    std::unique_ptr<transport::Network> ucx_; ///< Written under maker() as well.
    std::atomic<std::uint64_t> sleeping_ = 0; ///< Threads that sleep. Read under any lock.

    OptionalMutex queues_mutex_;     ///< Held for a few instructions.
    std::vector<Group*> newly_busy_; ///< Groups that busy_ does not have yet.
    CompletionQueue polled_ends_;
    CompletionQueue called_ends_; ///< Ends that have a callback.
    // What follows is read under any lock.
    std::atomic<std::size_t> busy_count_ = 0; ///< Length of busy_ and newly_busy_ together.
    std::atomic<bool> ends_polled_ = false;   ///< polled_ends_ has some.
    std::atomic<bool> ends_called_ = false;   ///< called_ends_ has some.

    OptionalMutex memory_mutex_;
    std::atomic<bool> shm_failed_ = false; ///< Read under any lock.
    std::atomic<bool> reaches_attached_ = true;
    std::optional<shm::Door> door_; ///< Of the heap that is not made yet.
    bool heap_claimed_ = false;     ///< A group that is being made has claimed it.
    std::shared_ptr<shm::Heap> heap_;
    std::unordered_map<const std::byte*, shm::Lease> memory_; ///< By its address.

    OptionalMutex mutex_; ///< Taken after all others.
    /// How threads sleep without a heap: only threads of this process ring.
    struct PrivateSleeper {
        shm::Doorbell bell = {};
        shm::Sleeper sleeper{bell};
    };
    std::shared_ptr<PrivateSleeper> private_sleeper_ = std::make_shared<PrivateSleeper>();
    /// Also owns the memory in which its bell lies.
    std::shared_ptr<shm::Sleeper> sleeper_{private_sleeper_, &private_sleeper_->sleeper};
};

} // namespace ucg::capi
