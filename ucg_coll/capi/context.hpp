// One process's end of the library: configuration, the node heap, the UCX worker, and the groups
// that need progress.
//
// Threading: any thread, where the context was made for several; each lock below says what it
// guards. They are taken in the order in which they are declared, groups' own locks after that of
// the list, planners' after those of groups, and none is held while anything of the program's runs,
// but the first.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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
#include "ucg_coll/capi/machine_setting.hpp"
#include "ucg_coll/capi/phases_file.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/capi/topology_file.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/collective.hpp"
#include "ucg_coll/transport/shm/shm.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {

class Group;
class Planner;
struct PlanningFacts;

/// Ranks and the CPUs that they may use, by affinity masks and control groups.
struct CpuLoad {
    unsigned ranks = 1;
    unsigned cpus = 1; ///< At least 1.

    bool oversubscribed() const { return ranks > cpus; }
    /// By ranks per CPU.
    bool operator<(const CpuLoad& other) const {
        return std::uint64_t{ranks} * other.cpus < std::uint64_t{other.ranks} * cpus;
    }
};

/// Of each kind of network, by what time of a short message between hosts groups plan
/// (cost::listed_message_ns). Trivially copyable: it travels as bytes.
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

/// What to do about groups that another thread is at.
enum class Busy : std::uint8_t {
    skip,  ///< They are in good hands.
    await, ///< Look at them as well: who goes to sleep must have looked at everything.
};

/// What came of driving a group.
struct Looked {
    unsigned events = 0;     ///< How many things happened.
    bool at_network = false; ///< The worker of UCX has been driven.
    bool over = false;       ///< Nothing is in progress: the group leaves the list.
};

/// An operator of the program that any thread may call: a nonblocking collective's.
struct DueOperator {
    Group* group = nullptr; ///< Null: there is none.
    engine::Execution* execution = nullptr;
};

/// The end of a collective whose caller wants to be told, until he has been.
struct Completion {
    std::atomic<bool> awaited = false; ///< Not told yet.
    void* user_data = nullptr;
    ucg_coll_cb_t callback = nullptr; ///< Null: who polls the context is told.
    ucg_coll_h coll = nullptr;        ///< For the callback.
    ucg_status_t status = UCG_OK;
    Completion* next = nullptr;
};

/// Ends in the order in which they came. The caller locks.
class CompletionQueue {
  public:
    void add(Completion& completion) {
        completion.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &completion;
        last_ = &completion;
    }
    /// The oldest; null if there is none.
    Completion* take() {
        Completion* const oldest = first_;
        if (oldest != nullptr) {
            first_ = oldest->next;
            oldest->awaited.store(false, std::memory_order_relaxed);
        }
        return oldest;
    }

  private:
    Completion* first_ = nullptr;
    Completion* last_ = nullptr;
};

class Context {
  public:
    Context(const ucg_context_params_t* params, Config config, LoadedProfile profile,
            LoadedPhases phases);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    const Config& config() const { return config_; }
    /// Config::plan_hash(), which every group compares.
    std::uint64_t plan_hash() const { return plan_hash_; }
    /// This process's own; a group's is agreed when it is made.
    const LoadedProfile& profile() const { return profile_; }
    /// The same: the switches between hosts, read when a group first has several. The maker's.
    const LoadedTopology& topology();
    /// The same: the machine that UCG_MACHINE names, read when the first group is made. The
    /// maker's.
    const NamedMachine& machine();
    /// The same: a schedule of an alltoall.
    const LoadedPhases& phases() const { return phases_; }
    const std::string& name() const { return name_; }
    /// Do several threads use it?
    bool threaded() const { return threaded_; }

    /// Held by a thread that makes a group by waiting, over the program's allgather too: such
    /// groups are made one after the other, in an order that all processes share, since their ranks
    /// make heaps together. Within an exchange the same thread may make another one. Nothing else
    /// waits for it, but who first needs a heap.
    OptionalRecursiveMutex& waiting_makers() { return waiting_makers_; }
    /// Held while a group's wire-up works, and never over an exchange, in which other groups may be
    /// made. What the functions below call "the maker's" is for the holder alone. Who may not wait
    /// does not wait for it: its holder may wait for peers, to map their heaps.
    OptionalMutex& maker() { return maker_; }

    /// May this process still share memory? Not after a peer could not be mapped: another attempt
    /// with it would wait for its time-out.
    bool shm_usable() const {
        return config_.shm_enabled() && !shm_failed_.load(std::memory_order_relaxed);
    }
    /// Lets the peers that wait for this process's heap know at once.
    void give_up_shm();
    /// Does the kernel let this process read and write the memory of all whose heaps are attached?
    bool reaches_attached() const { return reaches_attached_.load(std::memory_order_relaxed); }
    /// There is one of which it does not, or that was not tried.
    void reaches_not_all() { reaches_attached_.store(false, std::memory_order_relaxed); }
    /// Unmaps the heap and its peers' once shared memory was given up and nothing lies there any
    /// more: address space may be what was short. Asked whenever something has been returned to it.
    void drop_unused_heap();

    /// The node heap, if there is one.
    shm::Heap* heap_at_hand();
    /// What a group that is being made may have of this process.
    struct HeapOrWish {
        shm::Heap* heap = nullptr; ///< The node heap; null if there is none.
        /// Then what this process wishes of one that is made together with others, of no capacity
        /// if it would make one alone. The same for all groups that ask. Empty if a group that is
        /// being made has claimed it.
        std::optional<shm::HeapWish> wish;
    };
    /// Which of the two it is at one moment: another thread may make the heap in the next one, for
    /// memory of the program's own. `claims`: the caller's group claims what it wishes for.
    HeapOrWish heap_or_wish(bool claims);
    /// From now on nobody else makes the heap that was wished for, until release_claim(). False if
    /// it cannot be made as was wished: another group has claimed it, or tried to make it.
    bool claim_heap(const shm::Token& wish);
    void release_claim();
    /// Begins to make the node heap that is claimed, together with those of the others that wish
    /// for one: `self` is the own one among the `wishes` of all ranks of the group on this host.
    /// Null if none is to be made so: heap_of() has it then. Collective.
    std::unique_ptr<shm::HeapJoin> join_heap(std::span<const shm::HeapWish> wishes,
                                             std::size_t self,
                                             std::chrono::steady_clock::time_point deadline);
    /// What came of it.
    Result<shm::Heap*> take_joined(Result<std::unique_ptr<shm::Heap>> joined);
    /// The node heap that this process has told of, which is made if there is none. Fails where it
    /// is no more, or is another one.
    Result<shm::Heap*> heap_of(const shm::Token& token);
    /// Memory of the node heap for the caller, which it returns by its address. The first call
    /// waits for a thread that makes a group by waiting.
    Result<std::byte*> allocate(std::uint64_t bytes);
    /// False when `data` is not the start of such memory.
    bool release(const std::byte* data);
    /// UCX, started at first use: a program whose ranks are all on one host never pays for it. The
    /// maker's.
    /// `several_hosts`: the group has; then the switches between them may matter.
    Result<transport::Network*> ucx(bool several_hosts);

    /// What does not change while the process lives, asked of the system once: many a program makes
    /// thousands of groups.
    struct ProcessFacts {
        Result<shm::HostFacts> host; ///< Processes with equal ones share memory.
        std::vector<std::uint32_t> cpus = {};
        unsigned cpu_count = 1; ///< That its control group grants, whatever the mask says.
    };
    const ProcessFacts& process_facts() const { return process_facts_; }
    /// Where this process runs, or UCG_MACHINE has it, host unset. Looked up once: processes do not
    /// move between cores that they are bound to. The maker's.
    const topo::Place& place();
    /// From which length on this process would have the kernel copy messages: as its costs have it,
    /// or, where nothing was measured, as a look at the kernel's copies says, which is made once.
    /// The maker's.
    std::uint64_t single_copy_bytes_min();
    /// What the latest group that looked has found out of the network, where nobody has measured
    /// that. The maker's.
    LearnedNetworks& learned_networks() { return learned_networks_; }
    /// The processes of the job on this host, in whatever groups, as far as the caller told.
    const CpuLoad& host_load() const { return host_load_; }

    /// By which number this process is going to know a group over UCX: another one each time. The
    /// maker's.
    std::uint32_t take_group_id() { return next_group_id_++; }
    /// By what the latest group of so many ranks shares memory, if all were on one host. The
    /// maker's.
    std::optional<transport::ShmOptions> latest_options(std::size_t ranks) const;
    void set_latest_options(std::size_t ranks, const transport::ShmOptions& options);
    /// The latest such group has its ranks on several hosts, or does not share memory.
    void forget_latest_options(std::size_t ranks);
    /// The planner for groups of these facts: that of another group, or of one of the latest that
    /// are no more. The maker's.
    std::shared_ptr<Planner> planner(PlanningFacts facts);
    /// Makes room for one more, so that add() needs no memory. The maker's.
    void expect_group();
    void add(const Group& group);
    void remove(Group& group);
    /// The group has something in progress that its caller may leave alone (Group::to_be_listed()):
    /// whoever makes progress looks at it, until nothing is left. A program may have thousands of
    /// groups, and nobody looks at the others. The caller holds no lock.
    void list_busy(Group& group);
    /// A group is being made without waiting, for which the context must stay.
    void creation_begins() { creations_.fetch_add(1, std::memory_order_relaxed); }
    void creation_ends() { creations_.fetch_sub(1, std::memory_order_release); }
    std::size_t creation_count() const { return creations_.load(std::memory_order_acquire); }
    /// All groups that there are.
    std::size_t group_count() {
        const std::lock_guard lock(groups_mutex_);
        return group_count_;
    }
    /// How many groups are looked at.
    std::size_t busy_groups() {
        const std::lock_guard lock(groups_mutex_);
        return busy_.size();
    }
    /// What the next group may lease for its peers to read: nothing once many groups have.
    std::uint64_t staging_for_group();
    /// What the buffers of one ring of a new group may have in all.
    std::uint64_t ring_bytes_for_group();

    /// Of all busy groups and UCX; calls one operator that any thread may call, if one is due.
    /// Returns how many things happened. The caller holds no lock.
    unsigned progress(Busy busy);
    /// Adds what a posted collective came to. The caller holds the lock of the list of groups.
    void add_completion(Completion& completion);
    /// The oldest such that no callback is told; null if there is none. The caller holds no lock.
    Completion* take_completion() {
        const std::lock_guard lock(groups_mutex_);
        return polled_ends_.take();
    }
    /// Tells callbacks of the ends that are due. Returns how many. The caller holds no lock.
    unsigned call_back() {
        return callbacks_due_.load(std::memory_order_relaxed) == 0 ? 0 : call_due_back();
    }

    /// What one thread has moved may be what another one sleeps for, and no peer rings for it
    /// again: shm/PROTOCOL.md, "Threads". Under any lock. Returns how many things happened.
    unsigned tell_threads(unsigned events) {
        // The compiler must leave the order of what was moved before and the load after.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (events > 0 && sleeping_.load(std::memory_order_relaxed) > 0 && threaded_) {
            ring();
        }
        return events;
    }

    /// How a thread of this process sleeps. Another one once the node heap is there, or is no
    /// more: who sleeps holds on to the one that it began with.
    std::shared_ptr<shm::Sleeper> sleeper() {
        const std::lock_guard lock(mutex_);
        return sleeper_;
    }
    /// A thread that waits is going to sleep now and then, until it has `woken`: peers in all busy
    /// groups learn of it before its first announcement. Nobody waits in the others.
    void sleeps() { add_sleeping(1); }
    void woken() { add_sleeping(-1); }
    /// Does any busy group have messages that wait for room in a peer's memory?
    bool stuck();

    /// Lets the host make progress; returns how many things happened there. The caller does not
    /// hold the lock.
    unsigned host_progress() {
        const unsigned messages = host_messages();
        return messages > 0 ? messages : drive_host(0);
    }
    /// Of its messages alone.
    unsigned host_messages() { return drive_host(UCG_PROGRESS_FLAG_MESSAGES); }
    /// The same at the end of a call, messages and everything by turns: at each one while there are
    /// messages, else at each eighth.
    void host_progress_at_end() {
        const unsigned rests = host_rests_.load(std::memory_order_relaxed);
        unsigned next = rests - 1;
        if (rests % kHostRest == 0) {
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

    /// Messages that make sense once in the life of a process.
    enum class Once {
        step_down,
        profile_quarrel,
        bad_profile,
        no_tune,
        no_topology,
        no_phases,
        unknown_host,
        no_group,
        variables,
        count
    };
    /// True the first time it is asked.
    bool first(Once message) { return !told_[static_cast<std::size_t>(message)].exchange(true); }
    /// The same for what is to be said of a collective and a setting or its value, such as an
    /// algorithm that the user asked for and that does not serve.
    bool first_remark(graph::Collective collective, std::string_view about) {
        const std::lock_guard lock(mutex_);
        return remarks_.emplace(collective, about).second;
    }

  private:
    static constexpr std::size_t kLatestPlannersMax = 8;
    static constexpr std::size_t kLatestOptionsMax = 8;
    static constexpr unsigned kHostRest = 8;
    static constexpr unsigned kHostBusy = 2 * kHostRest; ///< There were messages.

    unsigned drive_host(unsigned flags) {
        return host_progress_ == nullptr ? 0 : host_progress_(host_progress_arg_, flags);
    }
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
    const std::uint64_t plan_hash_;
    LoadedProfile profile_;
    LoadedPhases phases_;
    std::string name_;
    bool threaded_;
    unsigned (*host_progress_)(void*, unsigned) = nullptr;
    void* host_progress_arg_ = nullptr;
    /// Ends of calls until the host's messages are driven; halfway it is driven as a whole.
    std::atomic<unsigned> host_rests_ = 0;
    shm::Neighbours neighbours_;
    const ProcessFacts process_facts_;
    CpuLoad host_load_;
    unsigned local_processes_ = 0; ///< 0: the caller has not told.
    std::optional<std::uint32_t> local_rank_;
    std::array<std::atomic<bool>, static_cast<std::size_t>(Once::count)> told_ = {};

    OptionalRecursiveMutex waiting_makers_;
    OptionalMutex maker_;
    std::uint32_t next_group_id_ = 1;
    std::optional<topo::Place> place_;
    std::optional<NamedMachine> machine_;
    std::optional<LoadedTopology> topology_;
    std::vector<std::pair<std::size_t, transport::ShmOptions>> latest_options_; ///< By ranks.
    std::vector<std::weak_ptr<Planner>> planners_; ///< Those of living groups, and some more:
    std::vector<std::shared_ptr<Planner>>
        latest_planners_;                     ///< what was asked for last comes first.
    std::uint64_t single_copy_bytes_min_ = 0; ///< 0: not known yet.
    LearnedNetworks learned_networks_;
    Status ucx_failure_; ///< It is not tried again: every group would wait for it and hear of it.

    OptionalMutex groups_mutex_; ///< Groups' own locks are taken under it.
    std::vector<Group*> busy_;   ///< In no order.
    CompletionQueue polled_ends_;
    CompletionQueue called_ends_;                ///< That have a callback.
    std::atomic<std::size_t> callbacks_due_ = 0; ///< How many. Read under any lock.
    std::atomic<std::size_t> creations_ = 0;     ///< Under way. Read under any lock.
    std::size_t group_count_ = 0;                ///< All of them.
    std::size_t staging_groups_ = 0;             ///< That have memory for their peers to read.
    std::unique_ptr<transport::Network> ucx_;    ///< Written by the maker, too.
    std::atomic<std::uint64_t> sleeping_ = 0;    ///< Threads. Read under any lock.

    OptionalMutex memory_mutex_;
    std::atomic<bool> shm_failed_ = false; ///< Read under any lock.
    std::atomic<bool> reaches_attached_ = true;
    std::optional<shm::Door> door_; ///< Of the heap to come.
    bool heap_claimed_ = false;     ///< By a group that is being made.
    std::shared_ptr<shm::Heap> heap_;
    std::unordered_map<const std::byte*, shm::Lease> memory_; ///< By its address.

    OptionalMutex mutex_;                                         ///< The last.
    std::set<std::pair<graph::Collective, std::string>> remarks_; ///< Names and values in config_.
    /// Without a heap only threads of this process ring.
    struct PrivateSleeper {
        shm::Doorbell bell = {};
        shm::Sleeper sleeper{bell};
    };
    std::shared_ptr<PrivateSleeper> private_sleeper_ = std::make_shared<PrivateSleeper>();
    /// Shares the ownership of what its bell lies in.
    std::shared_ptr<shm::Sleeper> sleeper_{private_sleeper_, &private_sleeper_->sleeper};
};

} // namespace ucg::capi
