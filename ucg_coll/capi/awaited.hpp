// What a thread waits for: the blocking calls that it is in, one within the other.
#pragma once

#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {

/// A collective that this thread waits for while the object lives, and whose operator is kept for
/// the thread. A wait calls functions of the program (the host's progress, callbacks, operators),
/// which may wait for other collectives, by a call that blocks or by tests. Peers may come to these
/// only when the interrupted collective has ended for them, and other threads may not know its
/// group yet. So whatever makes progress on the context also does so on all that its thread waits
/// for.
class Awaited {
  public:
    Awaited(Group& group, engine::Execution& execution);
    ~Awaited();
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

    /// Has this wait interrupted another one of the thread?
    bool nested() const { return outer_ != nullptr; }

    /// Lists the groups of all that this thread waits for (GroupList::list_busy()): from then on
    /// other threads look at them as well, and their peers learn who sleeps. The caller holds no
    /// lock.
    static void list_groups();
    /// Makes progress on all that this thread waits for, and calls their operators where these are
    /// due. `looked_at`, which may be null, is left out: its wait has just done both. The caller
    /// holds no lock.
    static Progress progress(const Awaited* looked_at);

  private:
    void list_group();

    Group& group_;
    engine::Execution& execution_;
    Awaited* const outer_;
    bool listed_ = false;
};

} // namespace ucg::capi
