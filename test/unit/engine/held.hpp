// A transport whose messages end when a test says so, and a schedule that waits for one.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ucg_coll/graph/builder.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::test {

/// A transport that completes what is posted to it only when the test says so.
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

/// Returns rank 1's schedule of a bcast: it receives 8 bytes from rank 0.
inline graph::Schedule receives() {
    graph::Request request;
    request.collective = graph::Collective::bcast;
    request.rank_count = 2;
    request.bytes = 8;
    graph::Builder builder(request, 1, "receives");
    builder.recv(0, builder.output(0, 8));
    return builder.finish();
}

} // namespace ucg::test
