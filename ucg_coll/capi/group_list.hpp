// The groups of a process: how many there are, and which of them somebody has to look at.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/capi/completions.hpp"
#include "ucg_coll/capi/process_sleep.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {

class Group;

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

/// What came of progress on several groups.
struct Progress {
    unsigned events = 0;          ///< How many things happened.
    bool called_operator = false; ///< One of these was an operator of the program.
};

/// A program may have thousands of groups, so progress looks only at those that are *busy*: they
/// have something in progress that their callers may leave alone (Group::to_be_listed()).
///
/// Any thread may use the list. It has two locks. The first one is held while a thread goes through
/// the busy groups, whose own locks are taken under it; that lasts as long as all groups take. What
/// must not wait that long, as a start, takes the second one alone, which is held for a few
/// instructions and may be taken under the first. Unless it is said otherwise, the caller holds no
/// lock of a group or of what is taken after one.
class GroupList {
  public:
    /// All arguments must outlive it.
    GroupList(ProcessSleep& sleep, Completions& completions, bool threaded)
        : sleep_(sleep), completions_(completions), mutex_(threaded), queue_mutex_(threaded) {}
    ~GroupList();
    GroupList(const GroupList&) = delete;
    GroupList& operator=(const GroupList&) = delete;

    /// Reserves memory for one more group, so that neither add() nor a collective that starts needs
    /// any. REQUIRES: the caller holds the context's maker(), until it has called add().
    void expect();
    void add(const Group& group);
    /// When it returns, no other thread finds the group.
    void remove(Group& group);
    /// Lists a group as busy: whoever makes progress looks at it, until nothing is left in
    /// progress. The caller holds no lock.
    void list_busy(Group& group);
    /// Has progress drive the network as well, which must outlive its use. Null: none.
    void drive_network(transport::ProcessNetwork* network);

    /// Returns the number of all groups.
    std::size_t count();
    /// Returns the number of groups that have memory for their peers to read.
    std::size_t staging_count();
    /// Returns the number of busy groups. May be called under any lock.
    std::size_t busy_count() const { return busy_count_.load(std::memory_order_relaxed); }

    /// Makes progress on all busy groups and on the network, and calls one operator that any thread
    /// may call, if one is due: each time that of another group. The caller holds no lock.
    Progress progress(Busy busy);
    /// Counts a thread that is about to sleep, or that does so no more (ProcessSleep), and tells
    /// the peers of busy groups, before the thread's first announcement. Nobody waits in the other
    /// groups.
    void add_sleeping(int threads);
    /// Does any busy group have messages that wait for room in a peer's memory?
    bool stuck();

  private:
    static constexpr unsigned kNetworkRest = 8;

    void take_over_busy();
    bool rests_from_network(Busy busy);
    unsigned drive(Busy busy, DueOperator& due);
    unsigned call(const DueOperator& due);

    ProcessSleep& sleep_;
    Completions& completions_;
    std::atomic<std::size_t> busy_count_ = 0; ///< Length of busy_ and newly_busy_ together.

    OptionalMutex mutex_; ///< Guards what follows.
    std::size_t count_ = 0;
    std::size_t staging_count_ = 0;
    std::vector<Group*> busy_;   ///< Groups to be looked at; whose operator was called comes last.
    unsigned network_rests_ = 0; ///< Counts calls of rests_from_network().
    transport::ProcessNetwork* network_ = nullptr;

    OptionalMutex queue_mutex_;      ///< Guards what follows.
    std::vector<Group*> newly_busy_; ///< Groups that busy_ does not have yet.
};

} // namespace ucg::capi
