// One process's end of the library: configuration, the node heap, the UCX worker, and the groups
// that need progress.
//
// Threading: any thread may use a context that was made for several. Each lock says what it guards
// where it is declared, here or in the class that owns it. A thread takes them in this order, and
// may leave some out:
//   1. waiting_makers() and maker(), for the making of groups;
//   2. that of the list of groups (GroupList), a group's, that of its planner (Planner);
//   3. those of queues: of groups that have become busy (GroupList), of ends (Completions);
//   4. that of the node heap, memory_mutex_;
//   5. those that others are never taken under: ProcessSleep, Remarks.
// No lock but waiting_makers() is held while a function of the program runs.
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
#include "ucg_coll/capi/completions.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context_params.hpp"
#include "ucg_coll/capi/cpu_load.hpp"
#include "ucg_coll/capi/group_list.hpp"
#include "ucg_coll/capi/host_progress.hpp"
#include "ucg_coll/capi/latest_options.hpp"
#include "ucg_coll/capi/machine_setting.hpp"
#include "ucg_coll/capi/phases_file.hpp"
#include "ucg_coll/capi/planners.hpp"
#include "ucg_coll/capi/process_sleep.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/capi/remarks.hpp"
#include "ucg_coll/capi/topology_file.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {

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
    /// Counts a group that is being made without waiting, for which the context must stay.
    void creation_begins() { creations_.fetch_add(1, std::memory_order_relaxed); }
    void creation_ends() { creations_.fetch_sub(1, std::memory_order_release); }
    std::size_t creation_count() const { return creations_.load(std::memory_order_acquire); }
    /// Returns how many bytes the next group may lease for its peers to read: 0 once many groups
    /// have such memory.
    std::uint64_t staging_for_group();
    /// Returns how many bytes the buffers of one ring of a new group may have in all.
    std::uint64_t ring_bytes_for_group();

    GroupList& groups() { return groups_; }
    Completions& completions() { return completions_; }
    HostProgress& host() { return host_; }
    ProcessSleep& sleep() { return sleep_; }

    /// Makes progress on all that this thread waits for (Awaited), on all busy groups and on UCX,
    /// and calls one operator that any thread may call, if one is due. The caller holds no lock.
    Progress progress(Busy busy);
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
    /// Makes progress at the end of a call: lets the host do so, and now and then looks after other
    /// groups (HostProgress::progress_at_end()). The caller holds no lock.
    void progress_at_end() {
        host_.progress_at_end([this] {
            if (groups_.busy_count() > 0) [[unlikely]] {
                progress_at_times();
            }
        });
    }
    /// Who shares this process's processors, as its waits have learned.
    shm::Neighbours& neighbours() { return neighbours_; }
    void disconnect();

  private:
    void collect_memory();
    Status make_heap();
    Result<shm::Heap*> heap_locked();
    shm::HeapOptions heap_options() const;
    Result<shm::Heap*> take_heap(Result<std::unique_ptr<shm::Heap>> made);

    const Config config_;
    const Config::CommonDigests common_digests_;
    LoadedProfile profile_;
    LoadedPhases phases_;
    const ContextParams params_;
    Remarks remarks_;
    HostProgress host_;
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

    std::atomic<std::size_t> creations_ = 0; ///< Groups being made. Read under any lock.

    ProcessSleep sleep_;
    Completions completions_;
    GroupList groups_;
    std::unique_ptr<transport::Network> ucx_;

    OptionalMutex memory_mutex_;
    std::atomic<bool> shm_failed_ = false; ///< Read under any lock.
    std::atomic<bool> reaches_attached_ = true;
    std::optional<shm::Door> door_; ///< Of the heap that is not made yet.
    bool heap_claimed_ = false;     ///< A group that is being made has claimed it.
    std::shared_ptr<shm::Heap> heap_;
    std::unordered_map<const std::byte*, shm::Lease> memory_; ///< By its address.
};

} // namespace ucg::capi
