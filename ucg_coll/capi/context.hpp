// One process's end of the library: configuration, the node heap, the UCX worker, the lock, and the
// groups that need progress.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shm/shm.hpp"
#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/graph/collective.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::capi {

class Group;

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

/// Locks when the context was made for several threads.
class ContextLock {
  public:
    explicit ContextLock(std::mutex* mutex) : mutex_(mutex) {
        if (mutex_ != nullptr) {
            mutex_->lock();
        }
    }
    ~ContextLock() {
        if (mutex_ != nullptr) {
            mutex_->unlock();
        }
    }
    ContextLock(const ContextLock&) = delete;
    ContextLock& operator=(const ContextLock&) = delete;

  private:
    std::mutex* mutex_;
};

class Context {
  public:
    Context(const ucg_context_params_t* params, Config config, LoadedProfile profile);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    const Config& config() const { return config_; }
    /// This process's own; a group's is agreed when it is made.
    const LoadedProfile& profile() const { return profile_; }
    const std::string& name() const { return name_; }
    ContextLock lock() { return ContextLock(threaded_ ? &mutex_ : nullptr); }

    /// May this process still share memory? Not after a peer could not be mapped: another attempt
    /// with it would wait for its time-out.
    bool shm_usable() const { return config_.shm_enabled() && !shm_failed_; }
    /// Lets the peers that wait for this process's heap know at once.
    void give_up_shm();
    /// Unmaps the heap and its peers' once shared memory was given up and nothing lies there any
    /// more: address space may be what was short. Asked whenever something has been returned to it.
    void drop_unused_heap();

    /// The node heap, made at first use. Fails with the reason why memory cannot be shared.
    Result<shm::Heap*> heap();
    /// Memory of the node heap for the caller, which it returns by its address.
    Result<std::byte*> allocate(std::uint64_t bytes);
    /// False when `data` is not the start of such memory.
    bool release(const std::byte* data);
    /// UCX, started at first use: a program whose ranks are all on one host never pays for it.
    Result<transport::ucx::UcxWorker*> ucx();

    /// Where this process runs, host unset. Looked up once: processes do not move between cores
    /// that they are bound to.
    const topo::Place& place();
    /// The processes of the job on this host, in whatever groups, as far as the caller told.
    const CpuLoad& host_load() const { return host_load_; }

    std::uint32_t next_group_id() const { return next_group_id_; }
    void group_made(std::uint32_t id) { next_group_id_ = id + 1; }
    void add(Group& group);
    void remove(Group& group);
    /// What the next group may lease for its peers to read: nothing once many groups have.
    std::uint64_t staging_for_group() const;
    bool has_groups() const { return !groups_.empty(); }

    /// Of all groups and UCX. Returns how many things happened. The caller holds the lock here and
    /// below.
    unsigned progress();

    /// What one thread has moved may be what another one sleeps for, and no peer rings for it
    /// again. The lock orders the two: the other announced and looked before, and is woken, or will
    /// look later. Returns how many things happened.
    unsigned tell_threads(unsigned events) {
        if (threaded_ && events > 0) {
            sleeper_->bell().ring(shm::Awaits::both);
        }
        return events;
    }

    /// How a thread of this process sleeps. Another one once the node heap is there, or is no
    /// more: who sleeps holds on to the one that it began with.
    std::shared_ptr<shm::Sleeper> sleeper() const { return sleeper_; }
    /// A thread that waits is going to sleep now and then, until it has `woken`: peers in all
    /// groups learn of it before its first announcement.
    void sleeps() { set_sleeping(sleeping_ + 1); }
    void woken() { set_sleeping(sleeping_ - 1); }
    /// Does any group have messages that wait for room in a peer's memory?
    bool stuck() const;

    /// Lets the host make progress; returns how many things happened there. The caller does not
    /// hold the lock.
    unsigned host_progress(unsigned flags = 0) {
        return host_progress_ == nullptr ? 0 : host_progress_(host_progress_arg_, flags);
    }
    /// The same at the end of a call: at each one while there is something to do, else at each
    /// eighth.
    void host_progress_at_end() {
        constexpr unsigned kRest = 8;
        const unsigned rest = host_rests_.load(std::memory_order_relaxed);
        if (rest > 0) {
            host_rests_.store(rest - 1, std::memory_order_relaxed);
        } else {
            host_rests_.store(host_progress() > 0 ? 0 : kRest - 1, std::memory_order_relaxed);
        }
    }
    /// Who shares this process's processors, as its waits have learned.
    shm::Neighbours& neighbours() { return neighbours_; }
    void disconnect();

    /// Messages that make sense once in the life of a process.
    enum class Once { step_down, profile_quarrel, bad_profile, unknown_host, no_group, count };
    /// True the first time it is asked.
    bool first(Once message) {
        return !std::exchange(told_[static_cast<std::size_t>(message)], true);
    }
    /// The same for each algorithm, asked for by the user, that does not serve.
    bool first_refusal(graph::Collective collective, std::string_view algorithm) {
        return refused_.emplace(collective, algorithm).second;
    }

  private:
    void set_sleeping(std::uint64_t threads);

    Config config_;
    LoadedProfile profile_;
    std::string name_;
    bool threaded_ = false;
    std::mutex mutex_;
    unsigned (*host_progress_)(void*, unsigned) = nullptr;
    void* host_progress_arg_ = nullptr;
    std::atomic<unsigned> host_rests_ = 0; ///< Ends of calls that leave the host alone.
    shm::Neighbours neighbours_;
    CpuLoad host_load_;
    unsigned local_processes_ = 0; ///< 0: the caller has not told.
    std::uint32_t next_group_id_ = 1;
    std::array<bool, static_cast<std::size_t>(Once::count)> told_ = {};
    std::set<std::pair<graph::Collective, std::string>> refused_; ///< Of those in config_.
    bool shm_failed_ = false;
    std::optional<topo::Place> place_;
    std::shared_ptr<shm::Heap> heap_;
    std::unordered_map<const std::byte*, shm::Lease> memory_; ///< By its address.
    /// Without a heap only threads of this process ring.
    struct PrivateSleeper {
        shm::Doorbell bell = {};
        shm::Sleeper sleeper{bell};
    };
    std::shared_ptr<PrivateSleeper> private_sleeper_ = std::make_shared<PrivateSleeper>();
    /// Shares the ownership of what its bell lies in.
    std::shared_ptr<shm::Sleeper> sleeper_{private_sleeper_, &private_sleeper_->sleeper};
    std::unique_ptr<transport::ucx::UcxWorker> ucx_;
    Status ucx_failure_; ///< It is not tried again: every group would wait for it and hear of it.
    std::vector<Group*> groups_;
    std::uint64_t sleeping_ = 0; ///< Threads.
};

} // namespace ucg::capi
