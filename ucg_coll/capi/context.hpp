// One process's end of the library. A context owns what all groups of the process share, each part
// in a class of its own, and does only what takes several of them.
//
// Threading: any thread may use a context that was made for several. Each lock says what it guards
// where it is declared, here or in the class that owns it. A thread takes them in this order, and
// may leave some out:
//   1. waiting_makers() and maker(), for the making of groups;
//   2. that of the list of groups (GroupList), a group's, that of its planner (Planner);
//   3. those of queues: of groups that have become busy (GroupList), of ends (Completions);
//   4. UCX's;
//   5. that of the node heap (NodeMemory), and then the heap's own;
//   6. those that others are never taken under: ProcessSleep, Remarks.
// No lock but waiting_makers() is held while a function of the program runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "shm/shm.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/capi/completions.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context_network.hpp"
#include "ucg_coll/capi/context_params.hpp"
#include "ucg_coll/capi/group_list.hpp"
#include "ucg_coll/capi/host_progress.hpp"
#include "ucg_coll/capi/latest_options.hpp"
#include "ucg_coll/capi/node_memory.hpp"
#include "ucg_coll/capi/phases_file.hpp"
#include "ucg_coll/capi/planners.hpp"
#include "ucg_coll/capi/process_facts.hpp"
#include "ucg_coll/capi/process_sleep.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/capi/remarks.hpp"

namespace ucg::capi {

class Awaited;

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
    /// The schedule of phases that this process has loaded, if it has.
    const LoadedPhases& phases() const { return phases_; }
    const std::string& name() const { return params_.name; }
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
    /// Counts a group that is being made without waiting, for which the context must stay.
    void creation_begins() { creations_.fetch_add(1, std::memory_order_relaxed); }
    void creation_ends() { creations_.fetch_sub(1, std::memory_order_release); }
    std::size_t creation_count() const { return creations_.load(std::memory_order_acquire); }

    // The next four are for the holder of maker(), except where they say otherwise.
    ProcessFacts& facts() { return facts_; }
    LatestOptions& latest_options() { return latest_options_; }
    Planners& planners() { return planners_; }
    ContextNetwork& network() { return network_; }

    // For any thread.
    Remarks& remarks() { return remarks_; }
    HostProgress& host() { return host_; }
    /// Who shares this process's processors, as its waits have learned.
    shm::Neighbours& neighbours() { return neighbours_; }
    ProcessSleep& sleep() { return sleep_; }
    Completions& completions() { return completions_; }
    GroupList& groups() { return groups_; }
    NodeMemory& memory() { return memory_; }

    /// Returns memory of the node heap, which the caller gives back by NodeMemory::release(). The
    /// first call waits for a thread that makes a group by waiting.
    Result<std::byte*> allocate(std::uint64_t bytes);
    /// Returns how many bytes the next group may lease for its peers to read: 0 once many groups
    /// have such memory.
    std::uint64_t staging_for_group();
    /// Returns how many bytes the buffers of one ring of a new group may have in all.
    std::uint64_t ring_bytes_for_group();

    /// Makes progress on all that this thread waits for (Awaited), on all busy groups and on UCX,
    /// and calls one operator that any thread may call, if one is due. `looked_at`: a wait of this
    /// thread that has just made progress on its own collective. The caller holds no lock.
    Progress progress(Busy busy, const Awaited* looked_at = nullptr);
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

  private:
    const Config config_;
    const Config::CommonDigests common_digests_;
    const LoadedProfile profile_;
    const LoadedPhases phases_;
    const ContextParams params_;
    Remarks remarks_;
    HostProgress host_;
    std::atomic<unsigned> single_calls_ = 0; ///< Calls of progress_at_times().
    shm::Neighbours neighbours_;
    ProcessFacts facts_;
    OptionalRecursiveMutex waiting_makers_;
    OptionalMutex maker_;
    std::atomic<std::size_t> creations_ = 0; ///< Groups being made. Read under any lock.
    LatestOptions latest_options_;
    Planners planners_;
    ProcessSleep sleep_;
    Completions completions_;
    GroupList groups_;
    ContextNetwork network_;
    NodeMemory memory_; ///< Ends before UCX, which may know of it.
};

} // namespace ucg::capi
