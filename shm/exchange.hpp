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

/// One run of the exchange: fetches the missing peers' segments and serves the own one until
/// nothing is missing. One loop over poll(2) does both, so no order of arrivals can deadlock.
///
/// Each connection swaps both descriptors: the caller sends its own in its greeting, the answer
/// carries the other. A process has a peer's segment only after it has sent its own to that peer,
/// so it may leave the loop as soon as it misses nothing. Of a pair the one with the lower token
/// calls at once; the other one calls only after a while, which is needed when the first is here
/// for another group and does not miss the second.
///
/// The system bounds the descriptors that a user's processes have sent and nobody has received yet,
/// so few calls are made at a time, and what cannot be sent is sent later.
class Exchange {
  public:
    Exchange(Heap& heap, std::span<const HeapAddress> peers);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// Is nothing missing?
    bool complete() const { return wanted_.empty(); }

    using Clock = std::chrono::steady_clock;
    Status run(Clock::time_point deadline);

  private:
    struct Wanted;
    struct Caller;

    Status own_descriptors() const;
    bool my_turn(const Wanted& peer) const;
    std::size_t calls() const;
    Status call_missing();
    Status call(Wanted& peer);
    Status accept_callers();
    Status hear_callers();
    Status hear(Caller& caller);
    Status hear_answers();
    Status take(Letter& letter);
    Sent greet(int socket, const Token& key) const;
    void drop_finished();
    void wait(Clock::time_point deadline);
    Clock::time_point next_attempt(Clock::time_point deadline) const;
    Status late() const;

    Heap& heap_;
    Clock::time_point started_;
    std::size_t calls_max_;       // At a time.
    std::vector<Wanted> wanted_;  // Peers whose segment is missing.
    std::vector<Caller> callers_; // Accepted connections that were not answered yet.
};

} // namespace ucg::shm
