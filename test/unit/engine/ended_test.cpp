// Who asked to be told of the end of a collective is told once, in the order of the ends.
#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/builder.hpp"

namespace ucg {
namespace {

using engine::Execution;
using engine::ExecutionState;

/// Completes what is posted to it when it is told to.
class Held final : public transport::Transport {
  public:
    std::string_view name() const override { return "held"; }
    void post(std::span<transport::Message> messages) override {
        for (transport::Message& message : messages) {
            message.state = transport::MessageState::posted;
            posted.push_back(&message);
        }
    }
    unsigned progress() override { return 0; }
    Status status() const override { return {}; }

    std::vector<transport::Message*> posted;
};

graph::Schedule receives() {
    graph::Request request;
    request.collective = graph::Collective::bcast;
    request.rank_count = 2;
    request.bytes = 8;
    graph::Builder builder(request, 1, "receives");
    builder.recv(0, builder.output(0, 8));
    return builder.finish();
}

constexpr std::size_t kCount = 5;

/// Rank 1 with some collectives, each of which waits for one message.
struct Rank1 {
    Rank1() {
        for (std::unique_ptr<Execution>& execution : executions) {
            execution = std::make_unique<Execution>(program);
            engine.start(*execution, {nullptr, output.data(), {}});
        }
        REQUIRE(transport.posted.size() == kCount);
    }

    /// The messages of these come, before the engine looks.
    void complete(std::initializer_list<std::size_t> which) {
        for (const std::size_t i : which) {
            transport.posted[i]->state = transport::MessageState::done;
        }
        engine.progress();
    }

    Held transport;
    std::array<transport::Transport*, 2> routes = {&transport, nullptr};
    std::array<std::byte, 8> output = {};
    engine::Program program = engine::lower(receives(), routes).value();
    engine::Engine engine{{&transport}};
    std::array<std::unique_ptr<Execution>, kCount> executions;
};

} // namespace

TEST_CASE("engine: ends that are to be told are given out once, in their order", "[engine]") {
    Rank1 rank;
    std::array<int, kCount> listeners = {};
    for (std::size_t i = 0; i < kCount; ++i) {
        if (i != 3) { // Nobody asks for its end.
            rank.executions[i]->tell_end(&listeners[i]);
        }
    }
    const auto told = [&](std::size_t i) {
        Execution* const ended = rank.engine.take_ended();
        REQUIRE(ended == rank.executions[i].get());
        CHECK(ended->state() == ExecutionState::done);
        CHECK(ended->take_listener() == &listeners[i]);
    };
    CHECK(rank.engine.take_ended() == nullptr);
    rank.complete({1});
    told(1);
    CHECK(rank.engine.take_ended() == nullptr);
    rank.complete({4, 0, 3}); // The engine comes to them in the order of their starts.
    rank.complete({2});
    told(0);
    told(4);
    told(2);
    CHECK(rank.engine.take_ended() == nullptr);
    CHECK(rank.engine.idle());
}

} // namespace ucg
