// How processes of one host that have segments pass them to one another (door.hpp). Internal to
// shm; heap.hpp is the way in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shm/door.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

class Heap;

/// The exchange of one heap: fetches the segments of the peers that any attachment misses, and
/// serves the own one while any is missed. One loop over poll(2) does both, so no order of arrivals
/// can deadlock.
///
/// Each connection swaps both descriptors: the caller sends its own in its greeting, the answer
/// carries the other one. A process has a peer's segment only after it has sent its own to that
/// peer, so it may leave the loop as soon as it misses nobody. Of a pair the one with the lower
/// token calls at once; the other one calls only after a while, which is needed when the first is
/// here for another group and does not miss the second.
///
/// The system bounds the descriptors that a user's processes have sent and nobody has received yet,
/// so few calls are made at a time, and what cannot be sent is sent later.
///
/// Not thread-safe.
class DescriptorExchange {
  public:
    using Clock = std::chrono::steady_clock;

    explicit DescriptorExchange(Heap& heap);
    ~DescriptorExchange();
    DescriptorExchange(const DescriptorExchange&) = delete;
    DescriptorExchange& operator=(const DescriptorExchange&) = delete;

    /// From now on these peers are missed, in this order, except those that are attached.
    void want(std::span<const HeapAddress> peers);
    /// Undoes one want() of these peers: one that was wanted several times is missed until it was
    /// forgotten as often.
    void forget(std::span<const HeapAddress> peers);

    /// Calls peers that are missed, answers those that call, and maps what comes, once, after
    /// waiting for news until `until` at most. A failure is one of all attachments.
    Status step(Clock::time_point until);

    /// Returns why these peers cannot be attached, rather a cause in this process than that one is
    /// gone; ok as long as one of them may be.
    Status failure_of(std::span<const HeapAddress> peers) const;

  private:
    struct Wanted;
    struct Caller;

    Wanted* find(const Token& token);
    Status own_descriptors() const;
    bool my_turn(const Wanted& peer) const;
    bool may_call(const Wanted& peer) const;
    void give_up(Wanted& peer, Status failure);
    std::size_t calls() const;
    Status call_missing();
    Status call(Wanted& peer);
    Status accept_callers();
    Status hear_callers();
    Status hear(Caller& caller);
    void hear_answers();
    Status hear_answer(Wanted& peer);
    Status take(Letter& letter);
    Sent greet(int socket, const Token& key) const;
    void drop_finished();
    void wait(Clock::time_point until);
    Clock::time_point next_attempt(Clock::time_point until) const;

    Heap& heap_;
    std::size_t calls_max_ = 0;   // The most calls at a time.
    std::size_t failures_ = 0;    // Peers that were given up, ever.
    std::vector<Wanted> wanted_;  // Peers whose segment is missing.
    std::vector<Caller> callers_; // Accepted connections that were not answered yet.
};

} // namespace ucg::shm
