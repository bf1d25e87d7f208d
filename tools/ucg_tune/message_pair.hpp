// One end of a pair of processes that send each other messages by the library's own transport
// within a host, and time them. `ucg_tune memory` uses it to learn what messages cost, and from
// which lengths on to copy them in another way.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shm/shm.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::tools {

/// What the two ends do, and what is timed.
enum class Pattern : std::uint8_t {
    one_way,  ///< A message there and one back: half the time of both.
    exchange, ///< Each end sends a message and waits for the other's.
    stream,   ///< The first end sends messages in a row: the time between two.
    combined, ///< As stream, and the second end combines each with a vector of its own.
    shares,   ///< As stream, by what the first end shares on its flag slot.
    burst,    ///< As many messages as a ring has slots, all free: the time to post one.
};

/// Messages to exchange and time. Both ends are given the same.
struct TimedMessages {
    std::uint32_t lane = 0; ///< Index of the transport.
    Pattern pattern = Pattern::one_way;
    bool in_segment = false; ///< Whether buffers are mapped by the peer; else they are private.
    /// Whether the sender writes each message before it sends it, so that its cache holds the
    /// message. The writing is not timed. For the patterns `one_way` and `exchange`.
    bool written = false;
    std::uint32_t count = 1; ///< Repetitions that are timed, after one that is not.
    std::uint64_t bytes = 0;
};

class MessagePair {
  public:
    /// Makes a transport for each of `lanes`, and buffers for messages of up to `bytes_max` bytes.
    /// `heap` must outlive the result. `cpus` is the number of CPUs on which the two ends run.
    static Result<std::unique_ptr<MessagePair>> create(shm::Heap& heap, Rank self,
                                                       std::span<const transport::ShmOptions> lanes,
                                                       std::uint64_t bytes_max, unsigned cpus);

    std::size_t lane_count() const { return lanes_.size(); }
    transport::ShmAddress address(std::size_t lane) const { return lanes_[lane]->address(); }
    /// Connects a lane. Both ends call it, with the addresses of both.
    Status connect(std::size_t lane, std::span<const transport::ShmAddress> both) {
        return lanes_[lane]->connect(both);
    }

    /// Runs the work and returns the time of one message in nanoseconds. Both ends call it; the
    /// first end's result counts.
    double run(const TimedMessages& work);

  private:
    MessagePair(Rank self, unsigned cpus) : self_(self), waiter_(2, cpus) {}
    transport::Message message(transport::Direction direction, const TimedMessages& work);
    void there_and_back(transport::ShmTransport& lane, const TimedMessages& work);
    void both_at_once(transport::ShmTransport& lane, const TimedMessages& work);
    double written_ns(transport::ShmTransport& lane, const TimedMessages& work);
    double stream_ns(transport::ShmTransport& lane, const TimedMessages& work);
    double shares_ns(transport::ShmTransport& lane, const TimedMessages& work);
    double burst_ns(transport::ShmTransport& lane, const TimedMessages& work);
    void combine_next(transport::ShmTransport& lane, const TimedMessages& work);
    void acknowledge(transport::ShmTransport& lane);
    void start_other(transport::ShmTransport& lane);
    void move(transport::ShmTransport& lane, std::span<transport::Message> messages);
    void await(transport::ShmTransport& lane, std::span<const transport::Message> messages);
    template <typename Condition>
    void await_that(transport::ShmTransport& lane, Condition condition);

    Rank self_;
    shm::Waiter waiter_;
    std::vector<std::unique_ptr<transport::ShmTransport>> lanes_;
    std::vector<std::uint32_t> depths_; ///< Slots in the rings of each lane.
    std::vector<std::uint64_t> shares_; ///< Shares so far on the flag slots of each lane.
    std::uint64_t bytes_max_ = 0;
    /// Private buffers: bytes to send, received ones, and those combined of both.
    std::vector<std::byte> private_;
    shm::Lease segment_; ///< Buffers that the peer has mapped, in this order.
};

} // namespace ucg::tools
