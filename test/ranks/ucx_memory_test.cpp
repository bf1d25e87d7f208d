// Memory runs out while messages arrive, in UCX's callbacks: everything that waits for these
// messages ends and gives the reason. Or it runs out while a rank leaves its group.
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"
#include "test/support/scarce_memory.hpp"
#include "ucg_coll/base/log_handler.hpp"

namespace {

using namespace ucg;
using namespace ucg::test;
using transport::ucx::PeerAddress;

constexpr std::size_t kLong = 300000; ///< Every transport sends this by rendezvous.
constexpr std::array kIds = {1U, 2U}; ///< The ranks' ids of the group.

/// One message between two workers of this process.
struct Scene {
    Fabric fabric;
    std::size_t sent;
    std::size_t expected;
    bool known;  ///< The receiver has the group when the message arrives.
    bool posted; ///< The receiver has posted the receive by then.
};

struct Outcome {
    bool failed = false; ///< An allocation has failed.
    bool told = false;   ///< The receiver's group knows of the failure.
    std::string complaint;
};

class Stage {
  public:
    Stage(const Scene& scene, std::uint64_t succeed)
        : scene_(scene), succeed_(succeed), out_(filled(1, scene.sent)), in_(scene.expected) {
        for (auto& worker : workers_) {
            UcxOptions options = options_for(scene.fabric);
            options.close_timeout = 5ms; // The workers end one by one, so no peer answers.
            worker = UcxWorker::create(options).value();
        }
        both_ = {PeerAddress(workers_[0]->address()), PeerAddress(workers_[1]->address())};
        send_ = message(Direction::send, 1, out_, 1);
        receive_ = message(Direction::recv, 0, in_, 1);
    }

    Outcome play() {
        sender_ = UcxTransport::create(*workers_[0], kIds, 0, both_).value();
        if (scene_.known) {
            join();
        }
        if (scene_.posted) {
            receiver_->post({&receive_, 1});
        }
        sender_->post({&send_, 1});
        bring_there();
        if (!receiver_ && !join()) {
            return {failed_, true, failed_ ? "" : "no group"};
        }
        if (!scene_.posted) {
            receiver_->post({&receive_, 1});
        }
        const std::string complaint = end();
        return {failed_, receiver_->status().code() == Code::out_of_memory, complaint};
    }

  private:
    bool join() {
        auto made = UcxTransport::create(*workers_[1], kIds, 1, both_);
        if (made.ok()) {
            receiver_ = std::move(*made);
        }
        return made.ok();
    }

    /// Makes one turn in which only the receiver's progress lacks memory.
    unsigned turn() {
        const unsigned handled = workers_[0]->progress();
        if (failed_) {
            return handled + workers_[1]->progress();
        }
        allocations_left = succeed_;
        const unsigned received = workers_[1]->progress();
        succeed_ = std::exchange(allocations_left, kNever);
        failed_ = succeed_ == kNever;
        return handled + received;
    }

    /// Brings everything that needs no answer to the receiver.
    void bring_there() {
        constexpr int kTurns = 100;
        for (int i = 0; i < kTurns; ++i) {
            turn();
            i = scene_.sent < kLong && in_flight({&send_, 1}) ? 0 : i;
        }
    }

    std::string end() {
        const auto deadline = std::chrono::steady_clock::now() + 20s;
        while (in_flight({&send_, 1}) || in_flight({&receive_, 1})) {
            if (turn() == 0) {
                sched_yield();
            }
            if (std::chrono::steady_clock::now() > deadline) {
                return "a message does not end";
            }
        }
        const Code code = receiver_->status().code();
        if (failed_ && code == Code::out_of_memory) {
            return "";
        }
        // The failed allocation may have come after the message, or may not have been needed.
        const bool fits = scene_.sent == scene_.expected;
        return code == (fits ? Code::ok : Code::disagreement) && (!fits || in_ == out_)
                   ? ""
                   : fmt::format("it ended as {}", name(code));
    }

    const Scene& scene_;
    std::uint64_t succeed_;
    bool failed_ = false;
    std::vector<std::byte> out_;
    std::vector<std::byte> in_;
    Message send_;
    Message receive_;
    std::unique_ptr<UcxWorker> workers_[2];
    std::vector<PeerAddress> both_;
    std::unique_ptr<UcxTransport> sender_;
    std::unique_ptr<UcxTransport> receiver_;
};

/// A rank that has sent what nobody receives gives its group up, or ends it.
struct Leaving {
    Fabric fabric;
    std::size_t bytes;
    bool gives_up;
};

/// Lines are made, so that they take memory, and are not written.
class Silence {
  public:
    Silence() : level_(log_level()), sink_(set_log_sink({[](const char*, void*) {}, nullptr})) {
        set_log_level(LogLevel::warn);
    }
    ~Silence() {
        set_log_level(level_);
        set_log_sink(sink_);
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;

  private:
    LogLevel level_;
    LogSink sink_;
};

/// After `succeed` more allocations one fails. Returns whether so many were needed.
bool leave(const Leaving& leaving, std::uint64_t succeed) {
    constexpr int kTurns = 100;
    const Silence silence;
    std::vector<std::byte> out = filled(1, leaving.bytes);
    Message sent = message(Direction::send, 1, out, 1);
    std::unique_ptr<UcxWorker> workers[2];
    std::vector<PeerAddress> both;
    for (auto& worker : workers) {
        UcxOptions options = options_for(leaving.fabric);
        options.close_timeout = 5ms; // Nobody answers.
        options.window_bytes = 0;    // So the message waits for its receiver.
        worker = UcxWorker::create(options).value();
        both.emplace_back(worker->address());
    }
    auto sender = UcxTransport::create(*workers[0], kIds, 0, both).value();
    const auto receiver = UcxTransport::create(*workers[1], kIds, 1, both).value();
    sender->post({&sent, 1});
    for (int i = 0; i < kTurns; ++i) {
        workers[0]->progress();
        workers[1]->progress();
    }
    REQUIRE(sent.state == MessageState::posted);
    bool thrown = false;
    allocations_left = succeed;
    try {
        if (leaving.gives_up) {
            sender->abandon();
        } else {
            sender.reset();
        }
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    const bool failed = std::exchange(allocations_left, kNever) == kNever;
    CHECK_FALSE(thrown);
    CHECK(sent.state == MessageState::failed);
    CHECK((sender == nullptr || !sender->status().ok()));
    return failed;
}

} // namespace

TEST_CASE("ucx: a rank without memory gives its group up, or ends it, all the same",
          "[ucx][errors]") {
    const Fabric& fabric = GENERATE(kFabrics[0], kFabrics[3], kFabrics[5]);
    const std::size_t bytes = GENERATE(8000, kLong);
    const bool gives_up = GENERATE(true, false);
    const Leaving leaving = {fabric, bytes, gives_up};
    INFO(fabric.name << ", " << bytes << " bytes, " << (gives_up ? "gives up" : "ends"));
    std::uint64_t succeed = 0;
    for (bool failed = true; failed; ++succeed) {
        INFO("after " << succeed << " allocations");
        failed = leave(leaving, succeed);
    }
    CHECK(succeed > 1);
}

TEST_CASE("ucx: memory that runs out in a callback is a failure of its messages", "[ucx][errors]") {
    const auto& fabric = GENERATE(kFabrics[0], kFabrics[1], kFabrics[4]);
    const auto [sent, expected] = GENERATE(std::pair<std::size_t, std::size_t>{8, 8},
                                           std::pair<std::size_t, std::size_t>{8000, 8000},
                                           std::pair<std::size_t, std::size_t>{kLong, kLong},
                                           std::pair<std::size_t, std::size_t>{kLong, kLong + 1});
    const auto [known, posted] =
        GENERATE(std::pair{false, false}, std::pair{true, false}, std::pair{true, true});
    const Scene scene = {fabric, sent, expected, known, posted};
    INFO(fabric.name << ", " << sent << " bytes for " << expected << ", known " << known
                     << ", posted " << posted);
    bool failed = true;
    bool told = false;
    for (std::uint64_t succeed = 0; failed; ++succeed) {
        INFO("after " << succeed << " allocations");
        const Outcome outcome = Stage(scene, succeed).play();
        CHECK(outcome.complaint == "");
        failed = outcome.failed;
        told = told || outcome.told;
    }
    // One of the allocations is that of the message's copy.
    CHECK((told || posted || sent == kLong));
}
