// One end of two processes that send each other messages by the library's own transport of a host,
// and time them. `ucg_tune memory` learns by it what messages cost and from which lengths on they
// are copied in another way.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shm/shm.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::tools {

/// What the two do.
enum class Pattern : std::uint8_t {
    one_way,  ///< A message there and one back, in turn: half the time of both.
    exchange, ///< Each sends one and waits for the other's.
    stream,   ///< One after the other from the first end: the time between two.
    burst,    ///< As many as a ring has slots, which it is free to take: the time to post one.
};

/// Both ends are given the same.
struct MessageWork {
    std::uint32_t lane = 0; ///< Which of the transports.
    Pattern pattern = Pattern::one_way;
    bool in_segment = false; ///< Buffers that the peer has mapped; else memory of one's own.
    /// Before each message its sender writes it, which does not count, but that its cache has it
    /// then. Of `one_way` and `exchange`.
    bool written = false;
    std::uint32_t count = 1; ///< Times, after one that does not count.
    std::uint64_t bytes = 0;
};

class MessagePair {
  public:
    /// Makes a transport for each of `lanes`, and buffers for messages of up to `bytes_max`. The
    /// heap must outlive it. `cpus`: on how many the two run.
    static Result<std::unique_ptr<MessagePair>> create(shm::Heap& heap, Rank self,
                                                       std::span<const transport::ShmOptions> lanes,
                                                       std::uint64_t bytes_max, unsigned cpus);

    std::size_t lane_count() const { return lanes_.size(); }
    transport::ShmAddress address(std::size_t lane) const { return lanes_[lane]->address(); }
    /// Both ends call it, with the addresses of both.
    Status connect(std::size_t lane, std::span<const transport::ShmAddress> both) {
        return lanes_[lane]->connect(both);
    }

    /// Both ends call it; the first one's result counts. In nanoseconds, of one message.
    double run(const MessageWork& work);

  private:
    MessagePair(Rank self, unsigned cpus) : self_(self), waiter_(2, cpus) {}
    transport::Message message(transport::Direction direction, const MessageWork& work);
    void there_and_back(transport::ShmTransport& lane, const MessageWork& work);
    void both_at_once(transport::ShmTransport& lane, const MessageWork& work);
    double written_ns(transport::ShmTransport& lane, const MessageWork& work);
    double stream_ns(transport::ShmTransport& lane, const MessageWork& work);
    double burst_ns(transport::ShmTransport& lane, const MessageWork& work);
    void acknowledge(transport::ShmTransport& lane);
    void start_other(transport::ShmTransport& lane);
    void move(transport::ShmTransport& lane, std::span<transport::Message> messages);
    void await(transport::ShmTransport& lane, std::span<const transport::Message> messages);

    Rank self_;
    shm::Waiter waiter_;
    std::vector<std::unique_ptr<transport::ShmTransport>> lanes_;
    std::vector<std::uint32_t> depths_; ///< Of the rings of each lane.
    std::uint64_t bytes_max_ = 0;
    std::vector<std::byte> private_; ///< What is sent, then what is received.
    shm::Lease segment_;             ///< Likewise.
};

} // namespace ucg::tools
