#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <utility>

#include <ucp/api/ucp.h>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace {

unsigned releases_later = 0; ///< By so much UCX says that it is later than it is.

} // namespace

/// Replaces UCX's function.
extern "C" void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
    static const auto next =
        reinterpret_cast<decltype(&::ucp_get_version)>(::dlsym(RTLD_NEXT, "ucp_get_version"));
    next(major, minor, release);
    *minor += releases_later;
}

using namespace ucg;
using namespace ucg::transport;
using namespace ucg::transport::ucx;

namespace {

std::unique_ptr<UcxWorker> make_worker(bool short_lane = true, double lane_overhead_us_max = 1e9) {
    UcxOptions options;
    options.config = {{"TLS", "tcp"}, {"NET_DEVICES", "lo"}};
    options.short_lane = short_lane;
    options.lane_overhead_us_max = lane_overhead_us_max;
    Result<std::unique_ptr<UcxWorker>> worker = UcxWorker::create(options);
    REQUIRE(worker.ok());
    return std::move(*worker);
}

/// In one process neither worker can wait for the other in its destructor.
void close_both(const std::unique_ptr<UcxWorker> (&workers)[2]) {
    for (int i = 0; i < 10'000'000; ++i) {
        const bool closed = workers[0]->close_progress();
        if (workers[1]->close_progress() && closed) {
            return;
        }
    }
}

/// A group of two workers of this process, of which each sends a word to the other.
struct Words {
    std::array<std::unique_ptr<UcxTransport>, 2> ranks;
    std::array<std::array<std::byte, 8>, 4> data{};

    explicit Words(const std::unique_ptr<UcxWorker> (&workers)[2]) {
        const std::vector<PeerAddress> both = {std::string(workers[0]->address()),
                                               std::string(workers[1]->address())};
        for (std::size_t i = 0; i < 2; ++i) {
            ranks[i] =
                UcxTransport::create(*workers[i], std::array{1U, 2U}, static_cast<Rank>(i), both)
                    .value();
        }
    }
    bool exchange() {
        std::array<Message, 4> messages;
        for (std::size_t i = 0; i < 4; ++i) {
            messages[i].data = data[i].data();
            messages[i].bytes = data[i].size();
            messages[i].peer = i < 2 ? 1 : 0;
            messages[i].direction = i % 2 == 0 ? Direction::send : Direction::recv;
        }
        ranks[0]->post(std::span(messages).first(2));
        ranks[1]->post(std::span(messages).last(2));
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        const auto done = [](const Message& each) { return each.state == MessageState::done; };
        while (!std::ranges::all_of(messages, done) &&
               std::chrono::steady_clock::now() < deadline) {
            ranks[0]->progress();
            ranks[1]->progress();
        }
        return std::ranges::all_of(messages, done);
    }
    void end() { ranks = {}; }
};

/// The outcome at both ends of a message.
struct Outcome {
    MessageState sent;
    MessageState received;
    Status sender;
    Status receiver;
};

/// Two workers of this process over TCP: one sends a message that does not fit the other's receive.
Outcome disagree(Message send, Message receive, bool receives_first) {
    const std::unique_ptr<UcxWorker> workers[] = {make_worker(), make_worker()};
    const std::vector<PeerAddress> both = {std::string(workers[0]->address()),
                                           std::string(workers[1]->address())};
    constexpr std::array kIds = {1U, 2U};
    auto first = UcxTransport::create(*workers[0], kIds, 0, both).value();
    auto second = UcxTransport::create(*workers[1], kIds, 1, both).value();
    std::vector<std::byte> out(send.bytes, std::byte{1});
    std::vector<std::byte> in(receive.bytes);
    send.data = out.data();
    send.peer = 1;
    receive.data = in.data();
    receive.peer = 0;
    receive.direction = Direction::recv;
    (receives_first ? second : first)->post({receives_first ? &receive : &send, 1});
    for (int i = 0; i < 100; ++i) { // The other end may have heard of it by then, or not yet.
        first->progress();
        second->progress();
    }
    (receives_first ? first : second)->post({receives_first ? &send : &receive, 1});
    // The messages go over sockets: when the kernel is busy, a connection may take seconds.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while ((receive.state == MessageState::posted || send.state == MessageState::posted) &&
           std::chrono::steady_clock::now() < deadline) {
        first->progress();
        second->progress();
    }
    Outcome outcome = {send.state, receive.state, first->status(), second->status()};
    first.reset();
    second.reset();
    close_both(workers);
    return outcome;
}

Message of_length(int bytes) {
    Message message;
    message.bytes = static_cast<std::uint64_t>(bytes);
    return message;
}

} // namespace

TEST_CASE("ucx worker: says what it found", "[ucx]") {
    const auto worker = make_worker();
    REQUIRE(worker->interfaces().size() == 1);
    CHECK(worker->interfaces()[0].transport == "tcp");
    CHECK(worker->interfaces()[0].usable);
    CHECK(worker->describe().find("tcp/lo: usable") != std::string::npos);
    CHECK(make_worker(false)->describe().find("not asked for") != std::string::npos);
}

TEST_CASE("ucx worker: no short lane where messages are system calls", "[ucx]") {
    const auto worker = make_worker(true, UcxOptions().lane_overhead_us_max);
    REQUIRE(worker->interfaces().size() == 1);
    CHECK_FALSE(worker->interfaces()[0].usable);
    CHECK(worker->describe().find("tcp/lo: a message costs") != std::string::npos);
}

TEST_CASE("ucx worker: no short lane by a UCX that the library was not compiled for", "[ucx]") {
    releases_later = 1;
    const std::unique_ptr<UcxWorker> workers[] = {make_worker(), make_worker()};
    CHECK(workers[0]->interfaces().empty());
    CHECK(workers[0]->describe().find("compiled for another release") != std::string::npos);
    releases_later = 0;
    Words words(workers);
    CHECK(words.exchange()); // UCP carries everything.
    words.end();
    close_both(workers);
}

TEST_CASE("ucx worker: a peer that has left is forgotten, but not that it has left", "[ucx]") {
    const bool ends_first = GENERATE(true, false);
    const bool abandoned = GENERATE(true, false);
    CAPTURE(ends_first, abandoned);
    std::unique_ptr<UcxWorker> workers[] = {make_worker(), make_worker()};
    const std::vector<PeerAddress> both = {std::string(workers[0]->address()),
                                           std::string(workers[1]->address())};
    Words words(workers);
    REQUIRE(words.exchange());
    if (abandoned) {
        words.ranks[0]->abandon();
    }
    words.ranks[ends_first ? 0 : 1].reset();
    words.ranks[1].reset();
    const auto turns_until = [&](const auto& condition) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!condition() && std::chrono::steady_clock::now() < deadline) {
            workers[0]->progress();
        }
        return condition();
    };
    REQUIRE(turns_until([&] { return workers[1]->close_progress(); }));
    workers[1].reset();
    const auto says = [&](const char* text) {
        return workers[0]->describe().find(text) != std::string::npos;
    };
    if (!ends_first) {
        CHECK(turns_until([&] { return says("the peer process has closed its connections"); }));
        words.end();
    }
    CHECK(turns_until([&] { return !says("peer "); }));

    const auto late = UcxTransport::create(*workers[0], std::array{3U, 4U}, 0, both).value();
    std::array<std::byte, 8> data{};
    Message message = of_length(data.size());
    message.data = data.data();
    message.peer = 1;
    message.direction = Direction::recv;
    late->post({&message, 1});
    CHECK(message.state == MessageState::failed);
    CHECK(late->status().code() == Code::io_error);
}

TEST_CASE("ucx worker: what it sets for UCX is gone when UCX has read it", "[ucx]") {
    UcxOptions options;
    options.config = {{"TLS", "tcp"}, {"NET_DEVICES", "lo"}};
    options.link_bytes_per_second = 100'000'000 / 8;
    REQUIRE(UcxWorker::create(options).ok());
    CHECK(std::getenv("UCX_TCP_SNDBUF") == nullptr);
    ::setenv("UCX_TCP_SNDBUF", "100k", 1);
    REQUIRE(UcxWorker::create(options).ok());
    CHECK(std::getenv("UCX_TCP_SNDBUF") == std::string("100k"));
    ::unsetenv("UCX_TCP_SNDBUF");
}

TEST_CASE("ucx worker: groups are refused for what is wrong with them", "[ucx]") {
    const auto worker = make_worker();
    const auto peer = make_worker();
    const std::vector<PeerAddress> both = {std::string(worker->address()),
                                           std::string(peer->address())};
    const auto group = UcxTransport::create(*worker, std::array{5U, 6U}, 0, both);
    REQUIRE(group.ok());
    CHECK(UcxTransport::create(*worker, std::array{5U, 7U}, 0, both).status().code() ==
          Code::invalid_argument);
    CHECK(UcxTransport::create(*worker, std::array{6U, 6U}, 0, {"", "nonsense"}).status().code() ==
          Code::invalid_argument);
    CHECK(UcxTransport::create(*worker, std::array{7U, 6U}, 0, both).ok());
}

TEST_CASE("ucx worker: the address of a peer is known as long as a group has it, or begins to",
          "[ucx]") {
    const auto worker = make_worker();
    const auto peer = make_worker();
    REQUIRE(worker->process() != peer->process());
    const auto knows = [&] { return worker->begin_group(0, 2)->add_known(1, peer->process()); };
    CHECK_FALSE(knows());
    auto told = worker->begin_group(0, 2);
    CHECK(told->add(1, "nonsense").code() == Code::invalid_argument);
    REQUIRE(told->add(1, peer->address()).ok());
    CHECK(knows());
    auto known = worker->begin_group(0, 2);
    REQUIRE(known->add_known(1, peer->process()));
    told.reset();
    CHECK(knows());
    auto transport = known->make_transport(std::array{8U, 9U}).value();
    known.reset();
    CHECK(knows());
    transport.reset();
    CHECK_FALSE(knows());
}

TEST_CASE("ucx worker: two workers of one process talk; lengths that differ are an error",
          "[ucx]") {
    const auto [sent, expected] =
        GENERATE(std::pair{4, 5}, std::pair{20000, 20001}, // These are eager over TCP.
                 std::pair{200000, 200001}, std::pair{200001, 200000}, std::pair{200000, 4},
                 std::pair{4, 200000});
    const bool receives_first = GENERATE(false, true);
    CAPTURE(sent, expected, receives_first);
    const Outcome outcome = disagree(of_length(sent), of_length(expected), receives_first);
    CHECK(outcome.received == MessageState::failed);
    CHECK(outcome.receiver.code() == Code::disagreement);
    CHECK(outcome.sent != MessageState::posted);
}

TEST_CASE("ucx worker: plans that differ are an error, also at the sender of a long message",
          "[ucx]") {
    const auto [sent, expected] = GENERATE(std::pair{200000, 200000}, std::pair{200000, 4},
                                           std::pair{4, 200000}, std::pair{4, 4});
    const bool receives_first = GENERATE(false, true);
    CAPTURE(sent, expected, receives_first);
    Message send = of_length(sent);
    Message receive = of_length(expected);
    send.plan = 1;
    receive.plan = 2;
    receive.step = 3;
    const Outcome outcome = disagree(send, receive, receives_first);
    CHECK(outcome.received == MessageState::failed);
    CHECK(outcome.receiver.code() == Code::disagreement);
    const bool eager = sent == 4;
    CHECK(outcome.sent == (eager ? MessageState::done : MessageState::failed));
    CHECK(outcome.sender.code() == (eager ? Code::ok : Code::disagreement));
}
