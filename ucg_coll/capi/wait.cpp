#include "ucg_coll/capi/wait.hpp"

#include <chrono>
#include <memory>
#include <sched.h>
#include <utility>

#include "ucg_coll/capi/awaited.hpp"
#include "ucg_coll/capi/host_polls.hpp"

namespace ucg::capi {
namespace {

/// Other groups are looked after, and the clock is read, once per so many idle polls ...
constexpr unsigned kPollsPerTick = 128;
constexpr unsigned kYieldsPerTick = 16; ///< ... or so many that gave the processor away.

class Wait {
  public:
    Wait(Group& group, engine::Execution& execution)
        : group_(group), context_(group.context()), execution_(execution),
          awaited_(group, execution), waiter_(group.waiter()), host_polls_(group.over_network()) {}

    ~Wait() {
        if (gives_way_) {
            group_.leave_wait(stamp_);
        }
        if (sleeps_) {
            context_.groups().add_sleeping(-1);
        }
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    void run() {
        for (Found found = look(); found != Found::end; found = look()) {
            if (found == Found::something) {
                waiter_.reset();
                yielded_ = false; // The time that this look took is no slice that was lost.
            } else if (waiter_.rung() == shm::Waiter::Rung::sleep) {
                sleep();
            } else {
                idle();
            }
        }
    }

    Slept slept() const { return sleeps_ ? Slept::yes : Slept::no; }

  private:
    enum class Found { nothing, something, end };

    /// Moves what the collective waits for.
    Found look() {
        Group::Lock lock = group_.lock();
        if (!execution_.in_progress()) {
            return Found::end;
        }
        const unsigned events = group_.progress() + group_.call_operator(execution_, lock);
        if (!execution_.in_progress()) {
            return Found::end;
        }
        return events > 0 ? Found::something : Found::nothing;
    }

    void idle() {
        ++idle_polls_;
        if (waiter_.rung() == shm::Waiter::Rung::spin && !owes_others()) {
            waiter_.idle();
            return;
        }
        const bool yields = waiter_.rung() == shm::Waiter::Rung::yield;
        if (serve_others(yields) > 0) {
            // It may be followed by more, and others wait for it: the ladder begins anew.
            waiter_.reset();
            yielded_ = false;
            return;
        }
        if (yields && !yielded_) {
            stamp_ = now();
            give_way(stamp_);
        }
        yielded_ = yields;
        waiter_.idle();
        if (yields) {
            const auto before = std::exchange(stamp_, now());
            waiter_.gave_way(stamp_ - before, [&] { return group_.all_wait_since(before); });
            host_polls_.gave_way(stamp_ - before);
            tick(stamp_);
        }
    }

    /// Tells peers since when this rank gives its processor away: if they lose a time slice
    /// meanwhile, they know that it was not lost to this rank.
    void give_way(std::chrono::nanoseconds since) {
        if (!std::exchange(gives_way_, true)) {
            group_.enter_wait(since);
        }
    }

    /// Do peers most likely need something else of this thread before they join what this wait is
    /// for: results of operators that are due elsewhere, or the end of a call that this one has
    /// interrupted?
    bool owes_others() const { return calls_operators_ || awaited_.nested(); }

    /// Serves the host and other groups. Called before the processor is given away, not after: what
    /// comes meanwhile is most often what this wait is for, and is then looked at first.
    unsigned serve_others(bool yields) {
        unsigned events = 0;
        if (host_polls_.due(idle_polls_, yields, context_.neighbours().computing())) {
            events += context_.host().progress();
            host_polls_.called(events);
        }
        if (owes_others() || idle_polls_ % (yields ? kYieldsPerTick : kPollsPerTick) == 0) {
            Awaited::list_groups();
            events += progress_groups(Busy::skip);
            if (!yields) {
                tick(now());
            }
        }
        return events;
    }

    /// One nap. The doorbell tells of every message through shared memory, to whatever group of
    /// this process. Nothing rings for those that UCX carries or that the host awaits: they are
    /// looked for between naps, whose length the ladder bounds by a part of the time waited
    /// already. UCX could wait on a descriptor, but not on it and on the futex at once; opened for
    /// that it leaves out some of its transports, the short lane's interfaces would have to be
    /// armed one by one, and the host's progress has no descriptor at all.
    void sleep() {
        yielded_ = false; // What a nap takes is no slice that was lost.
        feel();
        Awaited::list_groups();
        if (!std::exchange(sleeps_, true)) {
            stamp_ = now();
            give_way(stamp_);
            context_.groups().add_sleeping(1);
        }
        if (std::shared_ptr<shm::Sleeper> sleeper = context_.sleep().sleeper();
            sleeper != sleeper_) {
            sleeper_ = std::move(sleeper); // No announcement stands there.
            announced_ = {};
        }
        const bool room = context_.groups().stuck();
        announced_ =
            sleeper_->announce(room ? shm::Awaits::both : shm::Awaits::message, announced_);
        switch (look()) {
        case Found::end: return;
        case Found::something: waiter_.reset(); return;
        case Found::nothing: break;
        }
        // What others of this process have received was ours to see as well, and what they have
        // started since may wait for room.
        const unsigned events = progress_groups(Busy::await) + context_.host().progress();
        if (events > 0 || (!room && context_.groups().stuck())) {
            waiter_.reset();
            return;
        }
        sleeper_->nap(announced_, waiter_.nap());
        waiter_.slept();
        stamp_ = now();
        tick(stamp_);
    }

    void tick(std::chrono::nanoseconds now) {
        waiter_.tick(now);
        if (now >= next_watch_ && group_.watches()) [[unlikely]] {
            watch(now);
        }
    }

    /// Looks whether the group's collectives go on, every StallWatch::kInterval; most waits end
    /// before they look the first time.
    [[gnu::noinline]] void watch(std::chrono::nanoseconds now) {
        if (next_watch_ != std::chrono::nanoseconds()) {
            const Group::Lock lock = group_.lock();
            group_.watch(now);
        }
        next_watch_ = now + StallWatch::kInterval;
    }

    /// Makes progress on what this rank holds up elsewhere: collectives of other groups. A peer may
    /// have to wait for those, as for the host's communication, before it joins the collective that
    /// we wait for, which is left out here: look() has just been there.
    unsigned progress_groups(Busy busy) {
        const Progress made = context_.progress(busy, &awaited_);
        calls_operators_ = made.called_operator;
        return made.events + context_.completions().call_back();
    }

    /// Gives the processor away once, so that a process that has slept since it had neighbours
    /// notices when they are gone. It is not given to a neighbour that computes, who would keep it
    /// beyond the nap.
    void feel() {
        if (context_.neighbours().computing()) {
            return;
        }
        const auto before = now();
        ::sched_yield();
        const auto after = now();
        waiter_.gave_way(after - before);
        tick(after);
    }

    static std::chrono::nanoseconds now() {
        return std::chrono::steady_clock::now().time_since_epoch();
    }

    Group& group_;
    Context& context_;
    engine::Execution& execution_;
    Awaited awaited_;
    shm::Waiter waiter_;
    HostPolls host_polls_;
    std::chrono::nanoseconds stamp_{};      ///< The beginning or end of the last yield or nap.
    std::chrono::nanoseconds next_watch_{}; ///< 0: none of the collectives was looked at yet.
    unsigned idle_polls_ = 0;
    bool calls_operators_ = false; ///< The latest look at other groups has called an operator.
    bool yielded_ = false;
    bool gives_way_ = false; ///< Peers know since when this wait gives its processor away.
    std::shared_ptr<shm::Sleeper> sleeper_;
    shm::Announcement announced_; ///< At the bell of sleeper_.
    bool sleeps_ = false;
};

} // namespace

Slept wait(Group& group, engine::Execution& execution) {
    Wait wait(group, execution);
    wait.run();
    return wait.slept();
}

} // namespace ucg::capi
