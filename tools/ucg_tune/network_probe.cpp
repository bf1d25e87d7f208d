#include "tools/ucg_tune/network_probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <sched.h>
#include <set>
#include <unistd.h>

#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::tools {

namespace {

using transport::Direction;
using transport::Message;
using transport::MessageState;
using transport::ucx::UcxTransport;
using transport::ucx::UcxWorker;
using Clock = std::chrono::steady_clock;

/// What rank 0 tells its peers to do next.
enum class Order : std::uint64_t {
    part,
    round,    ///< A multicast of each kind.
    stream,   ///< A batch from rank 0 to rank 1.
    exchange, ///< A batch from each to each.
};

constexpr std::uint64_t kAnswerBytes = 8;
constexpr std::uint64_t kOrderBytes = 8;
constexpr std::uint32_t kGroup = 1;
/// The least number of rounds, measured even if time is out: minimum and median of fewer say
/// little.
constexpr std::size_t kRoundsMin = 5;
/// The most rounds: more would not change a median that is used with two digits.
constexpr std::size_t kRoundsMax = 2000;
/// A batch is longer than what the token buckets of links hold, milliseconds of their rate, and so
/// many messages are under way that none waits for an answer.
constexpr std::uint64_t kStreamBytes = 64 << 10;
constexpr std::uint32_t kStreamMessages = 64;
constexpr std::uint32_t kStreamWindow = 8;
constexpr std::size_t kBatchesMin = 4;
constexpr std::size_t kBatchesMax = 200;
/// The parts of the time that the stream and the exchange have.
constexpr double kStreamShare = 0.2;
constexpr double kExchangeShare = 0.2;
/// Longer than any round: a peer that is silent for this long is gone, or its host is.
constexpr std::chrono::seconds kSilence(600);

double ns_between(Clock::time_point start, Clock::time_point end) {
    return std::chrono::duration<double, std::nano>(end - start).count();
}

/// Returns all kinds of multicasts in the order of a round; the same on all ranks.
std::vector<Multicast> plan_round(const NetworkOptions& options) {
    std::vector<Multicast> kinds;
    const std::uint64_t least = *std::min_element(options.bytes.begin(), options.bytes.end());
    for (const std::uint64_t bytes : std::set(options.bytes.begin(), options.bytes.end())) {
        for (std::uint32_t messages = 1; messages <= options.messages_max; ++messages) {
            kinds.push_back({Sending::nonblocking, messages, bytes, {}, {}});
            if (bytes == least) {
                kinds.push_back({Sending::blocking, messages, bytes, {}, {}});
            }
        }
    }
    return kinds;
}

/// What all ranks have: the transport, and messages that are numbered alike on all ranks.
class Player {
  public:
    Player(UcxTransport& transport, const RankInJob& place, const NetworkOptions& options)
        : transport_(transport), place_(place), kinds_(plan_round(options)),
          data_(std::max(*std::max_element(options.bytes.begin(), options.bytes.end()),
                         kStreamWindow * kStreamBytes)) {}

  protected:
    Rank peers() const { return place_.count - 1; }
    Rank peer_of(std::uint32_t message) const {
        return 1 + static_cast<Rank>(message % static_cast<std::uint32_t>(peers()));
    }
    std::uint16_t step_of(std::uint32_t message) const {
        return static_cast<std::uint16_t>(message / static_cast<std::uint32_t>(peers()));
    }

    Message message(Direction direction, Rank peer, std::byte* data, std::uint64_t bytes,
                    std::uint16_t step) const {
        Message made;
        made.data = data;
        made.bytes = bytes;
        made.peer = peer;
        made.sequence = sequence_;
        made.step = step;
        made.direction = direction;
        return made;
    }

    /// Returns message `i` of a batch of the stream.
    Message of_stream(Direction direction, Rank peer, std::uint32_t i) {
        return message(direction, peer, data_.data() + i % kStreamWindow * kStreamBytes,
                       kStreamBytes, static_cast<std::uint16_t>(i));
    }

    /// Returns the number of messages in an exchange: at least as many as a batch of the stream
    /// has, and equally many to each peer.
    std::uint32_t exchanged() const {
        const auto to_each = divide_up(kStreamMessages, static_cast<std::uint64_t>(peers()));
        return static_cast<std::uint32_t>(to_each) * static_cast<std::uint32_t>(peers());
    }

    /// Exchanges one message at a time with the next rank, then with the one after it, and so on:
    /// sends to the ranks above and receives from those below. This is a pairwise alltoall, in
    /// which a rank waits for its partners only.
    Status exchange() {
        for (std::uint32_t i = 0; i < exchanged(); ++i) {
            const Rank distance = 1 + static_cast<Rank>(i % static_cast<std::uint32_t>(peers()));
            const Rank to = (place_.rank + distance) % place_.count;
            const Rank from = (place_.rank + place_.count - distance) % place_.count;
            const auto step = static_cast<std::uint16_t>(i);
            Message got = message(Direction::recv, from, data_.data(), kStreamBytes, step);
            Message sent =
                message(Direction::send, to, data_.data() + kStreamBytes, kStreamBytes, step);
            transport_.post({&got, 1});
            transport_.post({&sent, 1});
            for (const Message* each : {&got, &sent}) {
                if (Status status = await(*each); !status.ok()) {
                    return status;
                }
            }
        }
        return {};
    }

    /// Returns the message after an exchange: a word to rank 0, or on rank 0 from `peer`.
    Message word(Direction direction, Rank peer, std::byte* data) const {
        return message(direction, peer, data, kAnswerBytes,
                       static_cast<std::uint16_t>(exchanged()));
    }

    /// Waits until the message is complete, or nothing has happened for too long.
    Status await(const Message& message) {
        Clock::time_point heard = Clock::now();
        for (std::uint32_t idle = 0; message.state == MessageState::posted;) {
            if (transport_.progress() > 0) {
                idle = 0;
                continue;
            }
            ::sched_yield();
            // Reading the clock in each iteration would lengthen the iterations.
            if (++idle == 1) {
                heard = Clock::now();
            } else if (idle % 4096 == 0 && Clock::now() - heard > kSilence) {
                return failure(Code::timed_out, "rank {} has been silent for {} seconds",
                               message.peer, kSilence.count());
            }
        }
        return message.state == MessageState::done ? Status() : transport_.status();
    }

    UcxTransport& transport_;
    RankInJob place_;
    std::vector<Multicast> kinds_;
    std::vector<std::byte> data_;
    std::uint32_t sequence_ = 0; ///< Number of the multicast, or of the order of a round.
};

class Root : Player {
  public:
    Root(UcxTransport& transport, const RankInJob& place, const NetworkOptions& options)
        : Player(transport, place, options), answers_(options.messages_max),
          received_(options.messages_max), sends_(options.messages_max) {}

    Status run(double seconds, NetworkResult& result) {
        // The first round makes connections and does not count.
        if (Status status = round(false); !status.ok()) {
            return status;
        }
        const bool several = peers() > 1;
        const double rounds_share = 1 - kStreamShare - (several ? kExchangeShare : 0);
        const Clock::time_point rounds_end = after(rounds_share * seconds);
        for (std::size_t i = 0; goes_on(i, kRoundsMin, kRoundsMax, rounds_end); ++i) {
            if (Status status = round(true); !status.ok()) {
                return status;
            }
        }
        StreamTimes stream{kStreamBytes, kStreamMessages * kStreamBytes, {}};
        const Clock::time_point stream_end = after(kStreamShare * seconds);
        for (std::size_t i = 0; goes_on(i, kBatchesMin, kBatchesMax, stream_end); ++i) {
            if (Status status = batch(stream); !status.ok()) {
                return status;
            }
        }
        PairwiseTimes exchange{place_.count, exchanged() * kStreamBytes, {}};
        const Clock::time_point exchange_end = after(kExchangeShare * seconds);
        for (std::size_t i = 0; several && goes_on(i, kBatchesMin, kBatchesMax, exchange_end);
             ++i) {
            if (Status status = batch(exchange); !status.ok()) {
                return status;
            }
        }
        result.multicasts = std::move(kinds_);
        result.stream = std::move(stream);
        result.exchange = std::move(exchange);
        return order(Order::part);
    }

  private:
    static Clock::time_point after(double seconds) {
        return Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    static bool goes_on(std::size_t done, std::size_t least, std::size_t most,
                        Clock::time_point end) {
        return done < least || (done < most && Clock::now() < end);
    }

    /// Tells all peers what comes next.
    Status order(Order what) {
        ++sequence_;
        for (Rank peer = 1; peer < place_.count; ++peer) {
            Message told =
                message(Direction::send, peer, reinterpret_cast<std::byte*>(&what), kOrderBytes, 0);
            transport_.post({&told, 1});
            if (Status status = await(told); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    Status round(bool counts) {
        if (Status status = order(Order::round); !status.ok()) {
            return status;
        }
        for (Multicast& kind : kinds_) {
            ++sequence_;
            prepare(kind);
            double issue_ns = 0;
            const Clock::time_point start = Clock::now();
            Status status = kind.sending == Sending::blocking ? send_one_by_one(kind)
                                                              : send_all(kind, issue_ns);
            const double round_trip_ns = ns_between(start, Clock::now());
            if (!status.ok() || !(status = finish_sends(kind)).ok()) {
                return status;
            }
            if (counts) {
                kind.round_trip_ns.push_back(round_trip_ns);
                kind.issue_ns.push_back(issue_ns);
            }
        }
        return {};
    }

    /// Posts the receives of the answers and prepares the sends.
    void prepare(const Multicast& kind) {
        for (std::uint32_t i = 0; i < kind.messages; ++i) {
            answers_[i] =
                message(Direction::recv, peer_of(i), received_[i].data(), kAnswerBytes, step_of(i));
            sends_[i] = message(Direction::send, peer_of(i), data_.data(), kind.bytes, step_of(i));
        }
        transport_.post({answers_.data(), kind.messages});
    }

    /// Runs a batch of the stream. Each message is answered when it has arrived; up to as many as
    /// the window has are under way.
    Status batch(StreamTimes& stream) {
        if (Status status = order(Order::stream); !status.ok()) {
            return status;
        }
        ++sequence_;
        std::array<Message, kStreamWindow> sent;
        std::array<Message, kStreamWindow> answers;
        std::array<std::array<std::byte, kAnswerBytes>, kStreamWindow> received;
        const Clock::time_point start = Clock::now();
        for (std::uint32_t i = 0; i < kStreamMessages + kStreamWindow; ++i) {
            const std::uint32_t place = i % kStreamWindow;
            if (i >= kStreamWindow) {
                for (const Message* message : {&answers[place], &sent[place]}) {
                    if (Status status = await(*message); !status.ok()) {
                        return status;
                    }
                }
            }
            if (i < kStreamMessages) {
                answers[place] = message(Direction::recv, 1, received[place].data(), kAnswerBytes,
                                         static_cast<std::uint16_t>(i));
                sent[place] = of_stream(Direction::send, 1, i);
                transport_.post({&answers[place], 1});
                transport_.post({&sent[place], 1});
            }
        }
        stream.batch_ns.push_back(ns_between(start, Clock::now()));
        return {};
    }

    /// Runs an exchange, until all ranks are done.
    Status batch(PairwiseTimes& exchange) {
        if (Status status = order(Order::exchange); !status.ok()) {
            return status;
        }
        ++sequence_;
        std::vector<Message> words;
        std::vector<std::array<std::byte, kAnswerBytes>> received(
            static_cast<std::size_t>(peers()));
        for (Rank peer = 1; peer < place_.count; ++peer) {
            words.push_back(
                word(Direction::recv, peer, received[static_cast<std::size_t>(peer - 1)].data()));
        }
        transport_.post(words);
        const Clock::time_point start = Clock::now();
        Status status = Player::exchange();
        for (std::size_t i = 0; status.ok() && i < words.size(); ++i) {
            status = await(words[i]);
        }
        exchange.batch_ns.push_back(ns_between(start, Clock::now()));
        return status;
    }

    Status send_all(const Multicast& kind, double& issue_ns) {
        const Clock::time_point start = Clock::now();
        transport_.post({sends_.data(), kind.messages});
        issue_ns = ns_between(start, Clock::now());
        for (std::uint32_t i = 0; i < kind.messages; ++i) {
            if (Status status = await(answers_[i]); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    Status send_one_by_one(const Multicast& kind) {
        for (std::uint32_t i = 0; i < kind.messages; ++i) {
            transport_.post({&sends_[i], 1});
            if (Status status = await(answers_[i]); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    Status finish_sends(const Multicast& kind) {
        for (std::uint32_t i = 0; i < kind.messages; ++i) {
            if (Status status = await(sends_[i]); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    std::vector<Message> answers_;
    std::vector<std::array<std::byte, kAnswerBytes>> received_;
    std::vector<Message> sends_;
};

class Peer : Player {
  public:
    using Player::Player;

    Status run() {
        for (;;) {
            Order what = Order::part;
            ++sequence_;
            Message told =
                message(Direction::recv, 0, reinterpret_cast<std::byte*>(&what), kOrderBytes, 0);
            transport_.post({&told, 1});
            Status status = await(told);
            if (!status.ok() || what == Order::part) {
                return status;
            }
            if (status = follow(what); !status.ok()) {
                return status;
            }
        }
    }

  private:
    Status follow(Order what) {
        switch (what) {
        case Order::round: return answer_round();
        case Order::stream: return answer_batch();
        case Order::exchange: return exchange_all();
        case Order::part: break;
        }
        return {};
    }

    Status exchange_all() {
        ++sequence_;
        if (Status status = exchange(); !status.ok()) {
            return status;
        }
        std::array<std::byte, kAnswerBytes> nothing = {};
        Message told = word(Direction::send, 0, nothing.data());
        transport_.post({&told, 1});
        return await(told);
    }

    Status answer_round() {
        for (const Multicast& kind : kinds_) {
            if (Status status = answer(kind); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    Status answer_batch() {
        ++sequence_;
        if (place_.rank != 1) {
            return {};
        }
        std::array<Message, kStreamWindow> got;
        for (std::uint32_t i = 0; i < kStreamWindow; ++i) {
            got[i] = of_stream(Direction::recv, 0, i);
        }
        transport_.post(got);
        std::array<std::byte, kAnswerBytes> answer = {};
        for (std::uint32_t i = 0; i < kStreamMessages; ++i) {
            Message& next = got[i % kStreamWindow];
            if (Status status = await(next); !status.ok()) {
                return status;
            }
            if (i + kStreamWindow < kStreamMessages) {
                next = of_stream(Direction::recv, 0, i + kStreamWindow);
                transport_.post({&next, 1});
            }
            Message given = message(Direction::send, 0, answer.data(), kAnswerBytes,
                                    static_cast<std::uint16_t>(i));
            transport_.post({&given, 1});
            if (Status status = await(given); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    Status answer(const Multicast& kind) {
        ++sequence_;
        for (std::uint32_t i = 0; i < kind.messages; ++i) {
            if (peer_of(i) != place_.rank) {
                continue;
            }
            Message got = message(Direction::recv, 0, data_.data(), kind.bytes, step_of(i));
            transport_.post({&got, 1});
            if (Status status = await(got); !status.ok()) {
                return status;
            }
            Message given = message(Direction::send, 0, data_.data(), kAnswerBytes, step_of(i));
            transport_.post({&given, 1});
            if (Status status = await(given); !status.ok()) {
                return status;
            }
        }
        return {};
    }
};

std::string host_name() {
    std::array<char, 256> name = {};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Notes where the ranks are, from rank 0's point of view. The pipeline needs links, not memory.
void note_places(NetworkResult& result, std::uint32_t messages_max) {
    if (result.hosts.size() == 2) {
        result.notes.push_back("there are two processes: whether messages of several take longer "
                               "where they meet was not measured, three are the least");
    }
    const auto& hosts = result.hosts;
    const auto near = std::count(hosts.begin() + 1, hosts.end(), hosts.front());
    if (near > 0) {
        result.notes.push_back(fmt::format(
            "{} of {} peers are on the host of rank 0 ({}): what was measured is not the network's "
            "alone",
            near, hosts.size() - 1, hosts.front()));
    }
    if (messages_max > hosts.size() - 1) {
        result.notes.push_back(fmt::format(
            "up to {} messages went to {} peers in turn: later messages of a peer share its link "
            "and processor",
            messages_max, hosts.size() - 1));
    }
}

Status part(UcxWorker& worker, TcpStar& bootstrap) {
    worker.begin_close();
    while (!worker.close_progress()) {
        ::sched_yield();
    }
    const Result<std::vector<std::string>> fence = bootstrap.allgather("");
    return fence.ok() ? Status() : fence.status();
}

} // namespace

Result<NetworkResult> probe_network(TcpStar& bootstrap, const NetworkOptions& options) {
    const RankInJob& place = bootstrap.place();
    UCG_ASSERT(place.count >= 2 && options.messages_max >= 2 && options.bytes.size() >= 2);
    Result<std::vector<std::string>> hosts = bootstrap.allgather(host_name());
    Result<std::unique_ptr<UcxWorker>> worker = UcxWorker::create({});
    if (!hosts.ok() || !worker.ok()) {
        return hosts.ok() ? worker.status() : hosts.status();
    }
    const Result<std::vector<std::string>> addresses = bootstrap.allgather((*worker)->address());
    if (!addresses.ok()) {
        return addresses.status();
    }
    NetworkResult result;
    result.hosts = std::move(*hosts);
    Status status;
    { // The transport ends before its worker.
        Result<std::unique_ptr<UcxTransport>> transport =
            UcxTransport::create(**worker, std::vector<std::uint32_t>(addresses->size(), kGroup),
                                 place.rank, *addresses);
        if (!transport.ok()) {
            return transport.status();
        }
        if (place.rank > 0) {
            status = Peer(**transport, place, options).run();
        } else {
            options.progress(
                fmt::format("multicasts to {} peers, a stream, exchanges", place.count - 1));
            status = Root(**transport, place, options).run(options.seconds, result);
            if (status.ok()) {
                result.fit = fit_network(result.multicasts);
                result.notes = result.fit.notes;
                note_places(result, options.messages_max);
            }
        }
    }
    if (status.ok()) {
        status = part(**worker, bootstrap);
    }
    return status.ok() ? Result<NetworkResult>(std::move(result)) : status;
}

} // namespace ucg::tools
