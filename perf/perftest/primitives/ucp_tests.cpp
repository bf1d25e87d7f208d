#include "perf/perftest/primitives/ucp_tests.hpp"

#include <algorithm>

#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/primitives/ucp_operation.hpp"
#include "perf/perftest/primitives/uct_link.hpp"
#include "ucg_coll/base/log.hpp"

namespace ucg::perftest {

namespace {

/// The last byte of the buffers: before a ping-pong, during a stream, and at its end.
constexpr std::uint8_t kNothing = 255;
constexpr std::uint8_t kStreaming = 0;
constexpr std::uint8_t kLast = 1;

template <UcpCommand command, TestKind kind, UcpVariant variant>
class UcpTest final : public Test {
  public:
    explicit UcpTest(UcpSetup setup) : setup_(std::move(setup)), operation_(setup_) {}

    Status run(Recorder& recorder) override {
        operation_.reset(kind == TestKind::ping_pong ? kNothing : kStreaming);
        Status status = setup_.link->barrier();
        if (!status.ok()) {
            return status;
        }
        recorder.start();
        if constexpr (kind == TestKind::ping_pong) {
            answer(recorder);
        } else if (setup_.parameters.loopback) {
            send_to_self(recorder);
        } else if (setup_.rank == 0) {
            receive_all(recorder);
        } else {
            send_all(recorder);
        }
        status = operation_.status();
        if (status.ok()) {
            status = setup_.link->flush();
        }
        recorder.stop();
        return status.ok() ? setup_.link->barrier() : status;
    }

    void progress() override { setup_.link->progress(); }

  private:
    void answer(Recorder& recorder) {
        std::uint8_t number = 0;
        if (setup_.rank == 0) {
            while (!recorder.done() && operation_.send(number) && operation_.receive(number) &&
                   operation_.wait_for_receives(1)) {
                recorder.update(1, operation_.bytes());
                ++number;
            }
        } else {
            while (!recorder.done() && operation_.receive(number) &&
                   operation_.wait_for_receives(1) && operation_.send(number)) {
                recorder.update(1, operation_.bytes());
                ++number;
            }
        }
        operation_.wait_for_receives(1);
        operation_.wait_for_sends(1);
    }

    void send_all(Recorder& recorder) {
        while (!recorder.done() && operation_.send(kStreaming)) {
            recorder.update(1, operation_.bytes());
        }
        operation_.send_last(kLast);
    }

    void receive_all(Recorder& recorder) {
        while (!recorder.done() && operation_.receive(kStreaming)) {
            recorder.update(1, operation_.bytes());
        }
        operation_.wait_for_last(kLast);
        operation_.wait_for_receives(1);
    }

    void send_to_self(Recorder& recorder) {
        while (!recorder.done() && operation_.send(kStreaming) && operation_.receive(kStreaming)) {
            recorder.update(1, operation_.bytes());
        }
        operation_.wait_for_sends(1);
        operation_.wait_for_receives(1);
    }

    UcpSetup setup_;
    UcpOperation<command, kind, variant> operation_;
};

Status check_choice(UcpCommand command, const Parameters& parameters) {
    const bool idle = parameters.one_sided_idle;
    if (idle && !is_one_sided(command)) {
        return failure(Code::invalid_argument,
                       "with -o nobody would receive; it is for put, get and atomic operations");
    }
    const bool list = parameters.send_layout == UcpLayout::scatter_gather ||
                      parameters.receive_layout == UcpLayout::scatter_gather;
    if (list && is_one_sided(command)) {
        return failure(Code::invalid_argument,
                       "-D iov is for tagged messages, streams and active messages");
    }
    if (parameters.check) {
        return failure(Code::unsupported, "{} moves nothing whose result could be checked",
                       parameters.test);
    }
    return {};
}

Status check_sizes(UcpCommand command, const Parameters& parameters) {
    const std::size_t bytes = parameters.bytes();
    if (is_one_sided(command) && bytes < 1) {
        return failure(Code::invalid_argument, "a one-sided operation moves at least 1 byte");
    }
    if (is_atomic(command) && bytes != sizeof(std::uint32_t) && bytes != sizeof(std::uint64_t)) {
        return failure(Code::invalid_argument, "an atomic operation has 4 or 8 bytes, not {}",
                       bytes);
    }
    const std::size_t longest = *std::max_element(parameters.sizes.begin(), parameters.sizes.end());
    if (parameters.stride > 0 && longest > parameters.stride) {
        return failure(Code::invalid_argument,
                       "an entry of {} bytes does not fit into the distance -i {}", longest,
                       parameters.stride);
    }
    return {};
}

Status check_header(const UcpLink& link, const Parameters& parameters) {
    ucp_worker_attr_t attributes{};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    if (ucp_worker_query(link.worker(), &attributes) == UCS_OK &&
        attributes.max_am_header < parameters.ucp_header) {
        return failure(Code::unsupported, "UCP takes headers of up to {} bytes here, not {}",
                       attributes.max_am_header, parameters.ucp_header);
    }
    return {};
}

std::uint64_t features(UcpCommand command, const Parameters& parameters) {
    std::uint64_t wakeup = 0;
    if (parameters.wakeup || parameters.sleeps) {
        wakeup = UCP_FEATURE_WAKEUP;
    }
    switch (command) {
    case UcpCommand::tag:
    case UcpCommand::tag_sync: return wakeup | UCP_FEATURE_TAG;
    case UcpCommand::put:
    case UcpCommand::get: return wakeup | UCP_FEATURE_RMA;
    case UcpCommand::stream: return wakeup | UCP_FEATURE_STREAM;
    case UcpCommand::am: return wakeup | UCP_FEATURE_AM;
    default:
        return wakeup | (parameters.bytes() == sizeof(std::uint32_t) ? UCP_FEATURE_AMO32
                                                                     : UCP_FEATURE_AMO64);
    }
}

/// Returns how many operations may be incomplete unless -O is given.
constexpr unsigned window(UcpCommand command, TestKind kind) {
    const bool many = command == UcpCommand::tag || command == UcpCommand::tag_sync ||
                      command == UcpCommand::put || command == UcpCommand::am;
    return kind == TestKind::stream && many ? 32 : 1;
}

template <UcpCommand command, TestKind kind>
std::unique_ptr<Test> make(UcpSetup setup) {
    const Parameters& parameters = setup.parameters;
    constexpr UcpVariant kBoth = UcpVariant::wildcard_tag_and_probe;
    if constexpr (command == UcpCommand::tag || command == UcpCommand::tag_sync) {
        if (parameters.wildcard_tag && parameters.unexpected) {
            return std::make_unique<UcpTest<command, kind, kBoth>>(std::move(setup));
        }
        if (parameters.wildcard_tag) {
            return std::make_unique<UcpTest<command, kind, UcpVariant::wildcard_tag>>(
                std::move(setup));
        }
        if (parameters.unexpected) {
            return std::make_unique<UcpTest<command, kind, UcpVariant::probe>>(std::move(setup));
        }
    } else if constexpr (command == UcpCommand::stream) {
        if (parameters.stream_recv_data) {
            return std::make_unique<UcpTest<command, kind, UcpVariant::receive_data>>(
                std::move(setup));
        }
    } else if constexpr (is_one_sided(command)) {
        if (parameters.one_sided_idle) {
            return std::make_unique<UcpTest<command, kind, UcpVariant::idle>>(std::move(setup));
        }
    }
    return std::make_unique<UcpTest<command, kind, UcpVariant::plain>>(std::move(setup));
}

template <UcpCommand command, TestKind kind>
Result<std::unique_ptr<Test>> open(Runtime& runtime, const Parameters& parameters) {
    Status status = find_peer(runtime, parameters.loopback).status();
    if (status.ok()) {
        status = check_choice(command, parameters);
    }
    if (status.ok()) {
        status = check_sizes(command, parameters);
    }
    if (!status.ok()) {
        return status; // All ranks know it: it depends on the parameters alone.
    }
    UcpOptions options;
    options.features = features(command, parameters);
    options.buffer_bytes =
        std::max(parameters.bytes(), parameters.sizes.size() * parameters.stride);
    options.error_handling = parameters.error_handling;
    options.nonblocking_registration = parameters.nonblocking_registration;
    Result<std::unique_ptr<UcpLink>> link = UcpLink::open(runtime, options);
    if (!link) {
        return link.status();
    }
    status = agree(runtime, check_header(**link, parameters));
    if (!status.ok()) {
        return status;
    }
    const unsigned outstanding =
        parameters.outstanding == 0 ? window(command, kind) : parameters.outstanding;
    return make<command, kind>(UcpSetup{std::move(*link), parameters, outstanding, runtime.rank()});
}

} // namespace

std::vector<TestInfo> ucp_tests() {
    using Command = UcpCommand;
    constexpr TestKind kPingPong = TestKind::ping_pong;
    constexpr TestKind kStream = TestKind::stream;
    return {
        {"tag_lat", "UCP tag match latency", kPingPong, open<Command::tag, kPingPong>},
        {"tag_bw", "UCP tag match bandwidth", kStream, open<Command::tag, kStream>},
        {"tag_sync_lat", "UCP tag sync match latency", kPingPong,
         open<Command::tag_sync, kPingPong>},
        {"tag_sync_bw", "UCP tag sync match bandwidth", kStream, open<Command::tag_sync, kStream>},
        {"ucp_put_lat", "UCP put latency", kPingPong, open<Command::put, kPingPong>},
        {"ucp_put_bw", "UCP put bandwidth", kStream, open<Command::put, kStream>},
        {"ucp_get", "UCP get latency / bandwidth / message rate", kStream,
         open<Command::get, kStream>},
        {"ucp_add", "UCP atomic add bandwidth / message rate", kStream,
         open<Command::add, kStream>},
        {"ucp_fadd", "UCP atomic fetch-and-add latency / bandwidth / rate", kStream,
         open<Command::fetch_add, kStream>},
        {"ucp_swap", "UCP atomic swap latency / bandwidth / rate", kStream,
         open<Command::swap, kStream>},
        {"ucp_cswap", "UCP atomic compare-and-swap latency / bandwidth / rate", kStream,
         open<Command::compare_swap, kStream>},
        {"stream_bw", "UCP stream bandwidth", kStream, open<Command::stream, kStream>},
        {"stream_lat", "UCP stream latency", kPingPong, open<Command::stream, kPingPong>},
        {"ucp_am_lat", "UCP am latency", kPingPong, open<Command::am, kPingPong>},
        {"ucp_am_bw", "UCP am bandwidth / message rate", kStream, open<Command::am, kStream>},
    };
}

} // namespace ucg::perftest
