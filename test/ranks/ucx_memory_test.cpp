// Memory runs out while messages arrive, in UCX's callbacks: everything that waits for these
// messages ends and gives the reason. Or it runs out while a rank leaves its group, or in UCX
// itself.
#include <array>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"
#include "test/support/scarce_memory.hpp"
#include "ucg_coll/base/log_handler.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace {

using ucg::transport::ucx::Kind;
using ucg::transport::ucx::kUcpData;
using ucg::transport::ucx::LongHeader;

/// UCX has no memory for the next such word about a long message.
std::optional<Kind> refused;

bool is_refused(unsigned id, const void* header, std::size_t header_bytes) {
    LongHeader head;
    if (!refused || id != kUcpData || header_bytes != sizeof(head)) {
        return false;
    }
    std::memcpy(&head, header, sizeof(head));
    return head.envelope.kind == *refused;
}

} // namespace

/// Replaces UCX's function.
extern "C" __attribute__((visibility("default"))) ucs_status_ptr_t
ucp_am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header, size_t header_bytes,
                const void* data, size_t count, const ucp_request_param_t* parameters) {
    if (is_refused(id, header, header_bytes)) {
        refused.reset();
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    static const auto next =
        reinterpret_cast<decltype(&::ucp_am_send_nbx)>(::dlsym(RTLD_NEXT, "ucp_am_send_nbx"));
    return next(endpoint, id, header, header_bytes, data, count, parameters);
}

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

/// Two workers of this process over TCP, of which the first sends a long message to the second.
struct LongMessage {
    std::vector<std::byte> out = filled(1, kLong);
    std::vector<std::byte> in = std::vector<std::byte>(kLong);
    Message send = message(Direction::send, 1, out, 1);
    Message receive = message(Direction::recv, 0, in, 1);
    std::unique_ptr<UcxWorker> workers[2];
    std::unique_ptr<UcxTransport> sender;
    std::unique_ptr<UcxTransport> receiver;

    LongMessage() {
        std::vector<PeerAddress> both;
        for (auto& worker : workers) {
            UcxOptions options = options_for(kFabrics[0]);
            options.close_timeout = 5ms;
            worker = UcxWorker::create(options).value();
            both.emplace_back(worker->address());
        }
        sender = UcxTransport::create(*workers[0], kIds, 0, both).value();
        receiver = UcxTransport::create(*workers[1], kIds, 1, both).value();
    }

    void turns(int count) const {
        for (int i = 0; i < count; ++i) {
            workers[0]->progress();
            workers[1]->progress();
        }
    }
    bool ends() const {
        const auto deadline = std::chrono::steady_clock::now() + 20s;
        while (in_flight({&send, 1}) || in_flight({&receive, 1})) {
            turns(1);
            if (std::chrono::steady_clock::now() > deadline) {
                return false;
            }
        }
        return true;
    }
};

} // namespace

TEST_CASE("ucx: nobody waits for a word that UCX has no memory for", "[ucx][errors]") {
    LongMessage scene;
    if (GENERATE(true, false)) {
        refused = Kind::ready_to_receive;
        scene.receiver->post({&scene.receive, 1});
        scene.sender->post({&scene.send, 1});
    } else {
        refused = Kind::declined;
        scene.sender->post({&scene.send, 1});
        scene.turns(500);
        REQUIRE(scene.send.state == MessageState::posted);
        scene.receiver->abandon();
    }
    CHECK(scene.ends());
    CHECK_FALSE(refused);
    CHECK(scene.send.state == MessageState::failed);
    CHECK(scene.receive.state != MessageState::done);
}

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
