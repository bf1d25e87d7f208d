#include "perf/perftest/primitives/uct_tests.hpp"

#include <algorithm>

#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/primitives/uct_operation.hpp"
#include "ucg_coll/base/log.hpp"

namespace ucg::perftest {

namespace {

/// The number that ends a stream that is not acknowledged; targets hold 0 until then.
constexpr Sequence kLast = 2;

/// The time between two checks for a peer that is checked only now and then, in nanoseconds.
constexpr double kLookInterval = 1e6;

constexpr Sequence before(Sequence number) {
    return static_cast<Sequence>(number - 1);
}

class UctTest : public Test {
  public:
    explicit UctTest(UctSetup setup) : setup_(std::move(setup)) {}
    void progress() override { setup_.link->resource().progress(); }

  protected:
    const UctSetup& setup() const { return setup_; }
    bool is_first() const { return setup_.rank == 0; }

    /// Ends a run: completes all that was sent, as a part of the measured time, then waits for the
    /// peer.
    Status finish(Recorder& recorder, const Status& found) const {
        Status status = found;
        if (status.ok()) {
            status = setup_.link->resource().flush();
        }
        recorder.stop();
        return status.ok() ? setup_.link->barrier() : status;
    }

  private:
    UctSetup setup_;
};

/// Two processes that answer one another.
template <UctCommand command, UctLayout layout, bool one_sided>
class UctPingPong final : public UctTest {
  public:
    explicit UctPingPong(UctSetup setup) : UctTest(std::move(setup)), operation_(this->setup()) {}

    Status run(Recorder& recorder) override {
        operation_.reset();
        arrived_ = arrival();
        *arrived_ = before(0);
        Status status = setup().link->barrier();
        if (!status.ok()) {
            return status;
        }
        recorder.start();
        Sequence number = 0;
        if (is_first()) {
            while (!recorder.done() && post(number)) {
                recorder.update(1, operation_.bytes());
                wait_for(number++);
            }
        } else {
            while (!recorder.done() && wait_for(number) && post(number)) {
                recorder.update(1, operation_.bytes());
                ++number;
            }
        }
        return finish(recorder, operation_.status());
    }

  private:
    /// Returns where a message's arrival shows: for a put, which may arrive in pieces, at its last
    /// byte.
    volatile Sequence* arrival() {
        if (command == UctCommand::am) {
            return operation_.received();
        }
        const std::size_t at = command == UctCommand::put ? operation_.bytes() - 1 : 0;
        return reinterpret_cast<volatile Sequence*>(operation_.target() + at);
    }

    bool post(Sequence number) {
        if constexpr (command == UctCommand::put) {
            *reinterpret_cast<volatile Sequence*>(operation_.source() + operation_.extent() - 1) =
                number;
        }
        return operation_.send(number, before(number), nullptr);
    }

    bool wait_for(Sequence number) {
        const volatile Sequence* const arrived = arrived_;
        do {
            operation_.progress_waiting();
        } while (*arrived != number && !operation_.failed());
        return !operation_.failed();
    }

    UctOperation<command, layout, one_sided> operation_;
    volatile Sequence* arrived_ = nullptr;
};

/// Returns whether operations are counted until they complete, as those are that UCT may return as
/// incomplete.
constexpr bool has_window(UctCommand command, UctLayout layout) {
    return command == UctCommand::get || command > UctCommand::add ||
           (command != UctCommand::add && layout == UctLayout::zero_copy);
}

/// The last rank sends active messages, and rank 0 acknowledges them, with a window of -W.
template <UctCommand command, UctLayout layout, bool one_sided>
class UctMessageStream final : public UctTest {
  public:
    explicit UctMessageStream(UctSetup setup)
        : UctTest(std::move(setup)), operation_(this->setup()) {}

    Status run(Recorder& recorder) override {
        operation_.reset();
        *operation_.received() = 0;
        std::memset(operation_.source(), 0, operation_.extent());
        Status status = setup().link->barrier();
        if (!status.ok()) {
            return status;
        }
        recorder.start();
        if (is_first() && !setup().parameters.loopback) {
            receive(recorder);
        } else {
            send(recorder);
        }
        return finish(recorder, operation_.status());
    }

  private:
    Sequence window() const { return static_cast<Sequence>(setup().parameters.window); }

    bool post(Sequence number, Sequence previous) {
        if constexpr (has_window(command, layout)) {
            operation_.wait_for_window();
        }
        return operation_.send(number, previous, operation_.completion());
    }

    /// Returns when no more than `most` messages after the acknowledged one have been sent.
    bool wait_for_acknowledgement(Sequence next, Sequence most) {
        while (is_after(next, static_cast<Sequence>(*operation_.received() + most)) &&
               !operation_.failed()) {
            operation_.progress_waiting();
        }
        return !operation_.failed();
    }

    void send(Recorder& recorder) {
        Sequence next = 1;
        const Sequence most = window();
        while (!recorder.done() && wait_for_acknowledgement(next, most) &&
               post(next, before(next))) {
            ++next;
            recorder.update(1, operation_.bytes());
        }
        wait_for_acknowledgement(before(next), 0);
    }

    void receive(Recorder& recorder) {
        Sequence acknowledged = before(0);
        const Sequence half = window() / 2;
        std::uint64_t count = 0;
        while (count < recorder.wanted() && !operation_.failed()) {
            operation_.progress_waiting();
            const Sequence latest = *operation_.received();
            if (is_after(latest, static_cast<Sequence>(acknowledged + half))) {
                post(latest, acknowledged);
                acknowledged = latest;
            }
            count += static_cast<Sequence>(latest - static_cast<Sequence>(count));
        }
        const Sequence latest = *operation_.received();
        if (is_after(latest, acknowledged)) {
            post(latest, acknowledged);
        }
        recorder.update(count, 0, 0);
    }

    UctOperation<command, layout, one_sided> operation_;
};

/// The last rank puts, gets or changes remote memory; rank 0 only progresses for it.
template <UctCommand command, UctLayout layout, bool one_sided>
class UctRemoteStream final : public UctTest {
  public:
    explicit UctRemoteStream(UctSetup setup)
        : UctTest(std::move(setup)), operation_(this->setup()) {}

    Status run(Recorder& recorder) override {
        operation_.reset();
        std::memset(operation_.source(), 0, operation_.extent());
        std::memset(operation_.target(), 0, operation_.bytes());
        Status status = setup().link->barrier();
        if (!status.ok()) {
            return status;
        }
        recorder.start();
        if (is_first() && !setup().parameters.loopback) {
            receive();
            recorder.update(recorder.wanted(), 0, 0);
        } else {
            send(recorder);
        }
        return finish(recorder, operation_.status());
    }

  private:
    static constexpr bool kGets = command == UctCommand::get;

    bool post(Sequence number) {
        if constexpr (has_window(command, layout)) {
            operation_.wait_for_window();
        }
        return operation_.send(number, 0, operation_.completion());
    }

    void send(Recorder& recorder) {
        while (!recorder.done() && post(0)) {
            recorder.update(1, operation_.bytes());
        }
        if constexpr (kGets) {
            *reinterpret_cast<volatile Sequence*>(operation_.target()) = kLast;
        } else {
            operation_.wait_for_window(); // A source that is sent without a copy must not change.
            *reinterpret_cast<volatile Sequence*>(operation_.source()) = kLast;
            post(kLast);
        }
    }

    /// Waits for the end. A getter writes nothing here, so that its target is read from time to
    /// time.
    void receive() {
        const std::byte* at = kGets ? operation_.source() : operation_.target();
        Ticks looked = read_unordered();
        const auto interval = static_cast<Ticks>(ticks_per_second() * kLookInterval / 1e9);
        while (*reinterpret_cast<const volatile Sequence*>(at) != kLast && !operation_.failed()) {
            operation_.progress_waiting();
            if (kGets && read_unordered() - looked > interval) {
                post(0);
                looked = read_unordered();
            }
        }
    }

    UctOperation<command, layout, one_sided> operation_;
};

template <template <UctCommand, UctLayout, bool> class Loop, UctCommand command, UctLayout layout>
std::unique_ptr<Test> make(UctSetup setup) {
    if (setup.parameters.one_sided_idle) {
        return std::make_unique<Loop<command, layout, true>>(std::move(setup));
    }
    return std::make_unique<Loop<command, layout, false>>(std::move(setup));
}

/// REQUIRES: check_uct() has returned ok.
template <template <UctCommand, UctLayout, bool> class Loop, UctCommand command>
std::unique_ptr<Test> make(UctSetup setup) {
    const UctLayout layout = setup.parameters.uct_layout;
    if constexpr (!is_atomic(command)) {
        if (layout == UctLayout::buffered_copy) {
            return make<Loop, command, UctLayout::buffered_copy>(std::move(setup));
        }
        if (layout == UctLayout::zero_copy) {
            return make<Loop, command, UctLayout::zero_copy>(std::move(setup));
        }
    }
    if constexpr (command == UctCommand::am) {
        if (layout == UctLayout::short_iov) {
            return make<Loop, command, UctLayout::short_iov>(std::move(setup));
        }
    }
    return make<Loop, command, UctLayout::short_copy>(std::move(setup));
}

Status check_names(const Parameters& parameters) {
    if (parameters.transport.empty() || parameters.device.empty()) {
        return failure(Code::invalid_argument,
                       "a UCT test needs a transport (-x) and a device (-d), as `ucx_info -d` "
                       "lists them");
    }
    if (parameters.check) {
        return failure(Code::unsupported, "{} moves nothing whose result could be checked",
                       parameters.test);
    }
    return {};
}

struct UctParts {
    std::unique_ptr<UctResource> resource;
    std::unique_ptr<TestMemory> source;
    std::unique_ptr<TestMemory> target;
};

Result<UctParts> open_parts(UctCommand command, const Parameters& parameters) {
    Status status = check_names(parameters);
    if (!status.ok()) {
        return status;
    }
    Result<std::unique_ptr<UctResource>> resource =
        UctResource::open(parameters.transport, parameters.device);
    status = resource ? check_uct(**resource, command, parameters) : resource.status();
    if (!status.ok()) {
        return status;
    }
    const std::size_t bytes =
        std::max(parameters.bytes(), parameters.sizes.size() * parameters.stride);
    const unsigned flags = parameters.nonblocking_registration ? UCT_MD_MEM_FLAG_NONBLOCK : 0;
    Result<std::unique_ptr<TestMemory>> source = TestMemory::allocate(**resource, bytes, flags);
    if (!source) {
        return source.status();
    }
    Result<std::unique_ptr<TestMemory>> target = TestMemory::allocate(**resource, bytes, flags);
    if (!target) {
        return target.status();
    }
    return UctParts{std::move(*resource), std::move(*source), std::move(*target)};
}

template <template <UctCommand, UctLayout, bool> class Loop, UctCommand command>
Result<std::unique_ptr<Test>> open(Runtime& runtime, const Parameters& parameters) {
    const Status fits = find_peer(runtime, parameters.loopback).status();
    if (!fits.ok()) {
        return fits;
    }
    Result<UctParts> parts = open_parts(command, parameters);
    const Status status = agree(runtime, parts.status());
    if (!status.ok()) {
        return status;
    }
    Result<std::unique_ptr<UctLink>> link = UctLink::connect(
        runtime, std::move(parts->resource), std::move(parts->target), std::move(parts->source));
    if (!link) {
        return link.status();
    }
    return make<Loop, command>(UctSetup{std::move(*link), parameters, runtime.rank()});
}

} // namespace

std::vector<TestInfo> uct_tests() {
    using Command = UctCommand;
    using Kind = TestKind;
    return {
        {"am_lat", "UCT active message latency", Kind::ping_pong, open<UctPingPong, Command::am>},
        {"put_lat", "UCT put latency", Kind::ping_pong, open<UctPingPong, Command::put>},
        {"add_lat", "UCT atomic add latency", Kind::ping_pong, open<UctPingPong, Command::add>},
        {"get", "UCT get latency / bandwidth / message rate", Kind::stream,
         open<UctRemoteStream, Command::get>},
        {"fadd", "UCT atomic fetch-and-add latency / rate", Kind::stream,
         open<UctRemoteStream, Command::fetch_add>},
        {"swap", "UCT atomic swap latency / rate", Kind::stream,
         open<UctRemoteStream, Command::swap>},
        {"cswap", "UCT atomic compare-and-swap latency / rate", Kind::stream,
         open<UctRemoteStream, Command::compare_swap>},
        {"am_bw", "UCT active message bandwidth / message rate", Kind::stream,
         open<UctMessageStream, Command::am>},
        {"put_bw", "UCT put bandwidth / message rate", Kind::stream,
         open<UctRemoteStream, Command::put>},
        {"add_mr", "UCT atomic add message rate", Kind::stream,
         open<UctRemoteStream, Command::add>},
    };
}

} // namespace ucg::perftest
