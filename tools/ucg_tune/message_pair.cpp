#include "tools/ucg_tune/message_pair.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "ucg_coll/base/copy.hpp"
#include "ucg_coll/engine/operators.hpp"

namespace ucg::tools {

using transport::Direction;
using transport::Message;
using transport::MessageState;
using transport::ShmTransport;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<Rank, 2> kRanks = {0, 1};

double since_ns(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

} // namespace

Result<std::unique_ptr<MessagePair>>
MessagePair::create(shm::Heap& heap, Rank self, std::span<const transport::ShmOptions> lanes,
                    std::uint64_t bytes_max, unsigned cpus) {
    std::unique_ptr<MessagePair> pair(new MessagePair(self, cpus));
    for (const transport::ShmOptions& options : lanes) {
        auto made = ShmTransport::create(heap, std::span<const Rank>(kRanks), self, options);
        if (!made.ok()) {
            return made.status();
        }
        pair->depths_.push_back((*made)->shape().depth);
        pair->lanes_.push_back(std::move(*made));
    }
    pair->shares_.resize(lanes.size());
    auto lease = heap.lease(std::max<std::uint64_t>(2 * bytes_max, 1));
    if (!lease.ok()) {
        return lease.status();
    }
    pair->segment_ = std::move(*lease);
    pair->private_.resize(3 * bytes_max, std::byte{1});
    pair->bytes_max_ = bytes_max;
    return pair;
}

Message MessagePair::message(Direction direction, const TimedMessages& work) {
    UCG_ASSERT(work.bytes <= bytes_max_);
    std::byte* memory = work.in_segment ? segment_.data() : private_.data();
    Message message;
    message.data = memory + (direction == Direction::send ? 0 : bytes_max_);
    message.bytes = work.bytes;
    message.peer = 1 - self_;
    message.direction = direction;
    return message;
}

template <typename Condition>
void MessagePair::await_that(ShmTransport& lane, Condition condition) {
    waiter_.reset();
    while (!condition()) {
        if (lane.progress() == 0) {
            waiter_.idle();
        }
    }
}

void MessagePair::await(ShmTransport& lane, std::span<const Message> messages) {
    for (const Message& message : messages) {
        await_that(lane, [&] { return message.state != MessageState::posted; });
    }
}

void MessagePair::move(ShmTransport& lane, std::span<Message> messages) {
    lane.post(messages);
    await(lane, messages);
}

void MessagePair::there_and_back(ShmTransport& lane, const TimedMessages& work) {
    Message first = message(self_ == 0 ? Direction::send : Direction::recv, work);
    Message second = message(self_ == 0 ? Direction::recv : Direction::send, work);
    move(lane, {&first, 1});
    move(lane, {&second, 1});
}

void MessagePair::both_at_once(ShmTransport& lane, const TimedMessages& work) {
    std::array<Message, 2> both = {message(Direction::send, work), message(Direction::recv, work)};
    move(lane, both);
}

/// The second end tells the first that it has got this far.
void MessagePair::acknowledge(ShmTransport& lane) {
    Message word = message(self_ == 0 ? Direction::recv : Direction::send, {});
    move(lane, {&word, 1});
}

double MessagePair::stream_ns(ShmTransport& lane, const TimedMessages& work) {
    acknowledge(lane);
    const Clock::time_point start = Clock::now();
    for (std::uint32_t i = 0; i < work.count; ++i) {
        if (work.pattern == Pattern::combined && self_ != 0) {
            combine_next(lane, work);
            continue;
        }
        Message one = message(self_ == 0 ? Direction::send : Direction::recv, work);
        move(lane, {&one, 1});
    }
    acknowledge(lane);
    return since_ns(start) / work.count;
}

/// Receives a message and adds a vector of the own to it: part after part where these arrive, if
/// the lane gives them out, else as a whole.
void MessagePair::combine_next(ShmTransport& lane, const TimedMessages& work) {
    static const engine::CombineFn kSum =
        engine::find_operator(engine::OperatorKind::sum, engine::ElementType::float64);
    Message one = message(Direction::recv, work);
    const auto combine = [&](const std::byte* arrived, std::uint64_t bytes) {
        const std::array<const std::byte*, 2> operands = {private_.data() + one.taken, arrived};
        std::byte* const target = private_.data() + 2 * bytes_max_ + one.taken;
        kSum(nullptr, operands.data(), operands.size(), target, bytes);
        one.taken += bytes;
    };
    one.read_on_arrival = true;
    lane.post({&one, 1});
    await(lane, {&one, 1});
    while (one.state == MessageState::part) {
        combine(one.part, one.part_bytes);
        lane.take_part(one);
        await(lane, {&one, 1});
    }
    combine(one.data + one.taken, one.bytes - one.taken);
}

double MessagePair::shares_ns(ShmTransport& lane, const TimedMessages& work) {
    transport::FlagSlots& slots = *lane.flag_slots();
    std::byte* const received = message(Direction::recv, work).data;
    acknowledge(lane);
    const Clock::time_point start = Clock::now();
    for (std::uint32_t i = 0; i < work.count; ++i) {
        const std::uint64_t number = shares_[work.lane]++;
        const transport::FlagSlotSequence sequence = {number, static_cast<std::uint32_t>(number),
                                                      0};
        const std::byte* shared = nullptr;
        await_that(lane, [&] {
            if (self_ == 0) {
                return slots.share(sequence, private_.data(), work.bytes);
            }
            shared = slots.shared(sequence, 0, work.bytes);
            return shared != nullptr;
        });
        if (shared != nullptr) {
            copy_bytes(received, shared, work.bytes);
        }
        slots.finish(number + 1);
    }
    acknowledge(lane);
    return since_ns(start) / work.count;
}

double MessagePair::burst_ns(ShmTransport& lane, const TimedMessages& work) {
    const std::uint32_t depth = depths_[work.lane];
    std::vector<Message> burst;
    double sum_ns = 0;
    for (std::uint32_t i = 0; i <= work.count; ++i) {
        burst.assign(depth, message(self_ == 0 ? Direction::send : Direction::recv, work));
        acknowledge(lane);
        const Clock::time_point start = Clock::now();
        for (Message& one : burst) {
            lane.post({&one, 1});
        }
        sum_ns += i > 0 ? since_ns(start) : 0;
        await(lane, burst);
    }
    return sum_ns / (work.count * depth);
}

/// The first end tells the second to begin.
void MessagePair::start_other(ShmTransport& lane) {
    Message word = message(self_ == 0 ? Direction::send : Direction::recv, {});
    move(lane, {&word, 1});
}

/// Times messages that were just written: one way with a word back, or both ways at once after a
/// word to the second end. Without that word, the second end on the same CPU would have done its
/// part before the clock starts.
double MessagePair::written_ns(ShmTransport& lane, const TimedMessages& work) {
    const bool exchange = work.pattern == Pattern::exchange;
    double sum_ns = 0;
    for (std::uint32_t i = 0; i <= work.count; ++i) {
        Message one = message(self_ == 0 ? Direction::send : Direction::recv, work);
        if (exchange || self_ == 0) {
            std::memset(message(Direction::send, work).data, static_cast<int>(i & 0xff),
                        work.bytes);
        }
        acknowledge(lane);
        const Clock::time_point start = Clock::now();
        if (exchange) {
            start_other(lane);
            both_at_once(lane, work);
        } else {
            move(lane, {&one, 1});
            acknowledge(lane);
        }
        sum_ns += i > 0 ? since_ns(start) : 0;
    }
    return sum_ns / work.count;
}

double MessagePair::run(const TimedMessages& work) {
    ShmTransport& lane = *lanes_[work.lane];
    if (work.written) {
        return written_ns(lane, work);
    }
    if (work.pattern == Pattern::stream || work.pattern == Pattern::combined) {
        return stream_ns(lane, work);
    }
    if (work.pattern == Pattern::shares) {
        return shares_ns(lane, work);
    }
    if (work.pattern == Pattern::burst) {
        return burst_ns(lane, work);
    }
    const bool exchange = work.pattern == Pattern::exchange;
    const auto once = [&] { exchange ? both_at_once(lane, work) : there_and_back(lane, work); };
    once();
    const Clock::time_point start = Clock::now();
    for (std::uint32_t i = 0; i < work.count; ++i) {
        once();
    }
    return since_ns(start) / (exchange ? work.count : 2 * work.count);
}

} // namespace ucg::tools
