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

/// The exchange of one heap: fetches the segments of the peers that are missed, for whichever
/// attachments, and serves the own one while any is. One loop over poll(2) does both, so no order
/// of arrivals can deadlock.
///
/// Each connection swaps both descriptors: the caller sends its own in its greeting, the answer
/// carries the other. A process has a peer's segment only after it has sent its own to that peer,
/// so it may leave the loop as soon as it misses nobody. Of a pair the one with the lower token
/// calls at once; the other one calls only after a while, which is needed when the first is here
/// for another group and does not miss the second.
///
/// The system bounds the descriptors that a user's processes have sent and nobody has received yet,
/// so few calls are made at a time, and what cannot be sent is sent later.
///
/// Not thread-safe.
class Exchange {
  public:
    using Clock = std::chrono::steady_clock;

    explicit Exchange(Heap& heap);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// These are missed from now on, in this order, but for those that are attached, until forget()
    /// is called as often.
    void want(std::span<const HeapAddress> peers);
    void forget(std::span<const HeapAddress> peers);

    /// Calls who is missed, answers who calls, and maps what comes, once, after waiting for news
    /// until `until` at most. Fails for all attachments.
    Status step(Clock::time_point until);

    /// Why one of these cannot be attached, if that is known.
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
    std::size_t calls_max_ = 0;   // At a time.
    std::size_t failures_ = 0;    // So many were given up, ever.
    std::vector<Wanted> wanted_;  // Peers whose segment is missing.
    std::vector<Caller> callers_; // Accepted connections that were not answered yet.
};

} // namespace ucg::shm
