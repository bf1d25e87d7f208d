// A rank gives a group up because another transport has failed. Its caller has the buffers back, so
// nothing is written to them or read from them any more, whatever the peers still send.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace ucg;
using namespace ucg::test;
using transport::ucx::PeerAddress;

constexpr std::uint64_t kSeed = 1;
constexpr std::uint64_t kLong = 300000; ///< Every transport sends this by rendezvous.
constexpr std::byte kOther{'X'};        ///< What the caller writes into the buffer afterwards.
/// So many turns of both workers bring everything that needs no answer to its target.
constexpr int kTurns = 500;

constexpr std::chrono::milliseconds kLimit = 20s;

/// Rank 0 sends to rank 1, each with a worker of its own in this thread.
class Pair {
  public:
    /// Without `credit` no message is eager: UCX's own rendezvous carries it, or, over TCP, if it
    /// is long, fragments. A rank that has to wait for the other one waits for `waits`; it waits in
    /// vain where only this thread drives both.
    Pair(const Fabric& fabric, std::uint64_t bytes, bool credit = true,
         std::chrono::milliseconds waits = 20ms)
        : out_(filled(kSeed, bytes)), in_(bytes), by_tcp_(std::string_view(fabric.tls) == "tcp") {
        for (auto& worker : workers_) {
            UcxOptions options = options_for(fabric);
            options.close_timeout = waits;
            options.threads = true;
            options.window_bytes = credit ? options.window_bytes : 0;
            worker = UcxWorker::create(options).value();
        }
        for (const auto& worker : workers_) {
            addresses_.emplace_back(worker->address());
        }
        ranks_ = group(std::array{1U, 2U});
        send_ = message(Direction::send, 1, out_, 1);
        receive_ = message(Direction::recv, 0, in_, 1);
    }

    std::array<std::unique_ptr<UcxTransport>, 2> group(std::span<const std::uint32_t> ids) const {
        return {UcxTransport::create(*workers_[0], ids, 0, addresses_).value(),
                UcxTransport::create(*workers_[1], ids, 1, addresses_).value()};
    }

    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;
    /// Both ranks disconnect at the same time, since each waits for the other's answer.
    ~Pair() {
        ranks_ = {};
        for (bool open = true; open;) {
            const bool closed = workers_[0]->close_progress();
            open = !workers_[1]->close_progress() || !closed;
        }
    }

    void post_send() { sender().post({&send_, 1}); }
    void post_receive() { receiver().post({&receive_, 1}); }
    void turn() const {
        workers_[0]->progress();
        workers_[1]->progress();
    }
    void turns() const {
        for (int i = 0; i < kTurns; ++i) {
            turn();
        }
    }

    /// Makes turns until the condition holds; false if it never does.
    template <typename Condition>
    bool turns_until(Condition condition) const {
        const auto deadline = std::chrono::steady_clock::now() + kLimit;
        while (!condition() && std::chrono::steady_clock::now() < deadline) {
            turn();
        }
        return condition();
    }

    UcxTransport& sender() { return *ranks_[0]; }
    UcxTransport& receiver() { return *ranks_[1]; }
    const Message& sent() const { return send_; }
    const Message& received() const { return receive_; }
    UcxWorker& worker(std::size_t rank) const { return *workers_[rank]; }
    /// Does a long message that nobody has asked for wait with its sender, outside UCX?
    bool held_by_sender() const { return by_tcp_ && out_.size() == kLong; }

    void sender_gives_up() {
        sender().abandon();
        std::ranges::fill(out_, kOther);
    }
    void receiver_gives_up() {
        receiver().abandon();
        std::ranges::fill(in_, kOther);
    }
    void receiver_ends() { ranks_[1].reset(); }
    /// How a message ends for its sender when the receiver refuses it: it fails if the sender
    /// itself still holds it.
    MessageState refused() const {
        return held_by_sender() ? MessageState::failed : MessageState::done;
    }
    bool receiver_has_its_own() const {
        return std::ranges::all_of(in_, [](std::byte each) { return each == kOther; });
    }
    /// Either the message has come as it was sent, or nothing of it has come.
    bool nothing_else_came() const {
        return receive_.state != MessageState::done || in_ == filled(kSeed, in_.size());
    }

  private:
    std::vector<std::byte> out_;
    std::vector<std::byte> in_;
    bool by_tcp_;
    Message send_;
    Message receive_;
    std::unique_ptr<UcxWorker> workers_[2];
    std::vector<PeerAddress> addresses_;
    std::array<std::unique_ptr<UcxTransport>, 2> ranks_;
};

/// The worker's progress is made by another thread.
class Driven {
  public:
    explicit Driven(UcxWorker& worker)
        : thread_([this, &worker] {
              while (!over_) {
                  worker.progress();
                  sched_yield();
              }
          }) {}
    Driven(const Driven&) = delete;
    Driven& operator=(const Driven&) = delete;
    ~Driven() {
        over_ = true;
        thread_.join();
    }

  private:
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

} // namespace

TEST_CASE("ucx: what comes for a rank that has given up is not written", "[ucx][abandon]") {
    for (const Fabric& fabric : kFabrics) {
        for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}, kLong}) {
            INFO(fabric.name << ", " << bytes << " bytes");
            Pair pair(fabric, bytes);
            pair.post_receive();
            pair.turns();
            pair.receiver_gives_up();
            CHECK(pair.received().state == MessageState::failed);
            CHECK_FALSE(pair.receiver().status().ok());
            pair.post_send();
            // Nothing holds the message up.
            CHECK(pair.turns_until([&] { return pair.sent().state == MessageState::done; }));
            pair.turns();
            CHECK(pair.receiver_has_its_own());
            pair.post_send();
            pair.post_receive();
            CHECK(pair.received().state == MessageState::failed);
            pair.turns();
            CHECK(pair.receiver_has_its_own());
        }
    }
}

TEST_CASE("ucx: a rendezvous that waits for a rank which gives up ends", "[ucx][abandon]") {
    for (const Fabric& fabric : kFabrics) {
        INFO(fabric.name);
        Pair pair(fabric, 8192, false);
        pair.post_send();
        pair.turns();
        REQUIRE(pair.sent().state == MessageState::posted);
        pair.receiver_gives_up();
        CHECK(pair.turns_until([&] { return pair.sent().state == MessageState::done; }));
    }
}

TEST_CASE("ucx: what is sent to a rank that gives up, has given up, or has ended its group, ends",
          "[ucx][abandon]") {
    for (const Fabric& fabric : kFabrics) {
        for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}, kLong}) {
            for (const bool credit : {true, false}) {
                INFO(fabric.name << ", " << bytes << " bytes, credit " << credit);
                Pair pair(fabric, bytes, credit);
                const auto ends = [&] {
                    return pair.turns_until([&] { return pair.sent().state == pair.refused(); });
                };
                pair.post_send();
                pair.turns();
                pair.receiver_gives_up();
                CHECK(ends());
                pair.post_send();
                CHECK(ends());
                pair.receiver_ends();
                pair.post_send();
                CHECK(ends());
            }
        }
    }
}

TEST_CASE("ucx: a rank that gives up while its peer sends gets nothing more", "[ucx][abandon]") {
    for (const Fabric& fabric : kFabrics) {
        if (std::string_view(fabric.tls) == "sysv") {
            continue; // UCX takes nothing back there, and the receiver has warned of it.
        }
        for (const std::uint64_t bytes : {std::uint64_t{8192}, 30 * kLong}) {
            INFO(fabric.name << ", " << bytes << " bytes");
            // Over TCP only the sender can go on once the data have been asked for, and it makes no
            // progress here. Data that the kernel copies come in any case.
            const bool by_tcp = std::string_view(fabric.tls) == "tcp";
            Pair pair(fabric, bytes, false, by_tcp ? 20ms : kLimit);
            pair.post_send();
            pair.turns();
            pair.post_receive();
            pair.receiver_gives_up();
            CHECK(pair.received().state != MessageState::posted);
            pair.turns();
            CHECK(pair.receiver_has_its_own());
        }
    }
}

TEST_CASE("ucx: nothing of a rank that has given up is read", "[ucx][abandon]") {
    for (const Fabric& fabric : kFabrics) {
        for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}, kLong}) {
            INFO(fabric.name << ", " << bytes << " bytes");
            Pair pair(fabric, bytes);
            pair.post_send();
            pair.turns();
            if (pair.sent().state == MessageState::posted && !pair.held_by_sender()) {
                // UCX's own rendezvous carries it, so the receiver, too, has to let go of it.
                continue;
            }
            pair.sender_gives_up();
            CHECK(pair.sent().state != MessageState::posted);
            pair.post_receive();
            pair.turns();
            CHECK(pair.nothing_else_came());
            CHECK_FALSE(pair.sender().status().ok());
        }
    }
}

TEST_CASE("ucx: both ranks of a message that waits for its receive give up", "[ucx][abandon]") {
    for (const Fabric& fabric : kFabrics) {
        INFO(fabric.name);
        Pair pair(fabric, kLong, false, kLimit);
        pair.post_send();
        pair.turns();
        REQUIRE(pair.sent().state == MessageState::posted);
        pair.receiver_gives_up();
        const Driven receiver(pair.worker(1));
        pair.sender_gives_up();
        CHECK(pair.sent().state != MessageState::posted);
        CHECK(pair.receiver_has_its_own());
    }
}

TEST_CASE("ucx: a rank that gives up in the middle of a message sends no more of it",
          "[ucx][abandon]") {
    for (const Fabric& fabric : {kFabrics[0], kFabrics[1], kFabrics[2]}) {
        INFO(fabric.name);
        Pair pair(fabric, 100 * kLong, true, kLimit);
        pair.post_receive();
        pair.post_send();
        REQUIRE(pair.turns_until([&] { return pair.received().moved > 0; }));
        REQUIRE(pair.sent().state == MessageState::posted);
        {
            const Driven receiver(pair.worker(1));
            pair.sender_gives_up();
        }
        CHECK(pair.sent().state == MessageState::failed);
        pair.turns();
        CHECK(pair.received().state == MessageState::posted);
        pair.receiver_gives_up();
    }
}

TEST_CASE("ucx: another group goes on between ranks of which one has given up", "[ucx][abandon]") {
    for (const Fabric& fabric : kFabrics) {
        INFO(fabric.name);
        Pair pair(fabric, kLong);
        const auto others = pair.group(std::array{3U, 4U});
        pair.post_receive();
        pair.turns();
        pair.receiver_gives_up();
        std::vector<std::byte> out = filled(2, kLong);
        std::vector<std::byte> in(kLong);
        Message there = message(Direction::send, 1, out, 1);
        Message here = message(Direction::recv, 0, in, 1);
        others[1]->post({&here, 1});
        others[0]->post({&there, 1});
        CHECK(pair.turns_until([&] { return here.state == MessageState::done; }));
        CHECK(in == out);
    }
}
