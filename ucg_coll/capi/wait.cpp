#include "ucg_coll/capi/wait.hpp"

#include <chrono>
#include <memory>
#include <utility>

namespace ucg::capi {
namespace {

/// The host's own progress is asked for once per this many idle polls: it costs as much as several
/// of ours, but somebody may wait there for what we hold up. The clock is read then, too.
constexpr unsigned kPollsPerHostProgress = 128;
constexpr unsigned kYieldsPerHostProgress = 4; // When each idle poll gives the processor away.

class Wait {
  public:
    Wait(Group& group, const engine::Execution& execution)
        : group_(group), context_(group.context()), execution_(execution), waiter_(group.waiter()) {
    }

    ~Wait() {
        if (sleeps_) {
            ContextLock lock = context_.lock();
            context_.woken();
        }
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    void run() {
        for (Found found = look(); found != Found::end; found = look()) {
            if (found == Found::something) {
                waiter_.reset();
            } else if (waiter_.rung() == shm::Waiter::Rung::sleep) {
                sleep();
            } else {
                idle();
            }
        }
    }

  private:
    enum class Found { nothing, something, end };

    /// Moves what the collective waits for.
    Found look() {
        ContextLock lock = context_.lock();
        if (!execution_.in_progress()) {
            return Found::end;
        }
        const unsigned events = group_.progress();
        if (!execution_.in_progress()) {
            return Found::end;
        }
        return events > 0 ? Found::something : Found::nothing;
    }

    void idle() {
        waiter_.idle();
        const unsigned period = waiter_.rung() == shm::Waiter::Rung::yield ? kYieldsPerHostProgress
                                                                           : kPollsPerHostProgress;
        if (++idle_polls_ >= period) {
            idle_polls_ = 0;
            progress_others();
            tick();
        }
    }

    /// One nap. The doorbell tells of every message through shared memory, to whatever group of
    /// this process. Nothing rings for those that UCX carries or that the host awaits: they are
    /// looked for between naps, whose length the ladder bounds by a part of the time waited
    /// already. UCX could wait on a descriptor, but not on it and on the futex at once; opened for
    /// that it leaves out some of its transports, the short lane's interfaces would have to be
    /// armed one by one, and the host's progress has no descriptor at all.
    void sleep() {
        std::shared_ptr<shm::Sleeper> sleeper;
        {
            ContextLock lock = context_.lock();
            if (!std::exchange(sleeps_, true)) {
                context_.sleeps();
            }
            sleeper = context_.sleeper();
            announced_ = sleeper->announce(
                context_.stuck() ? shm::Awaits::both : shm::Awaits::message, announced_);
        }
        switch (look()) {
        case Found::end: return;
        case Found::something: waiter_.reset(); return;
        case Found::nothing: break;
        }
        // What others of this process have received was ours to see as well.
        if (progress_others() == 0) {
            sleeper->nap(announced_, waiter_.nap());
        }
        tick();
    }

    /// What this rank holds up elsewhere: collectives of other groups, and the host's
    /// communication. A peer may have to wait for those before it joins the collective that we wait
    /// for.
    unsigned progress_others() {
        unsigned events = 0;
        {
            ContextLock lock = context_.lock();
            events = context_.progress();
        }
        context_.host_progress();
        return events;
    }

    void tick() { waiter_.tick(std::chrono::steady_clock::now().time_since_epoch()); }

    Group& group_;
    Context& context_;
    const engine::Execution& execution_;
    shm::Waiter waiter_;
    unsigned idle_polls_ = 0;
    std::uint32_t announced_ = 0;
    bool sleeps_ = false;
};

} // namespace

void wait(Group& group, const engine::Execution& execution) {
    Wait(group, execution).run();
}

} // namespace ucg::capi
