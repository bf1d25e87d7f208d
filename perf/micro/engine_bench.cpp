// What the engine costs above what it calls, in one process over the loopback transport:
//
//   start       starting a cached plan that has nothing to do                    budget: 30 ns
//   copy        a copy of 8 bytes, beside memcpy                                 budget: 10 ns
//   reduce      a reduction of two operands of 8 bytes, beside the kernel        budget: 10 ns
//   message     messages of 8 bytes in one post (several operations at a time),
//               beside Transport::post with the same messages                    budget: 10 ns
//   relay       messages of 8 bytes that wait for one another, so that each is
//               a post and is found complete by a progress of its own            no budget
//
// Each is run through the engine and directly. After Google Benchmark's table a summary subtracts
// one from the other. The options are Google Benchmark's.
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "perf/micro/benchmark_run.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/graph/builder.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace {

using namespace ucg;
using graph::Builder;
using graph::Schedule;
using graph::Slice;
using transport::Direction;
using transport::LoopbackFabric;
using transport::Message;
using transport::MessageState;
using transport::Transport;

constexpr std::uint64_t kOps = 64;
constexpr std::uint64_t kMessages = 16; ///< Few, since the loopback searches all that are posted.
constexpr std::uint64_t kBytes = 8;

engine::Reduction sum() {
    return {engine::find_operator(engine::OperatorKind::sum, engine::ElementType::int64), nullptr};
}

/// Returns the builder of an empty program whose buffers are `count` words long.
Builder builder(Rank rank, std::uint64_t count) {
    graph::Request request;
    request.collective = graph::Collective::allreduce;
    request.rank_count = 2;
    request.bytes = count * kBytes;
    request.element_bytes = kBytes;
    return Builder(request, rank, "bench");
}

/// One rank with its own program.
struct Side {
    Side(LoopbackFabric& fabric, const Schedule& schedule)
        : routes(fabric.routes(schedule.rank)), program(engine::lower(schedule, routes).value()),
          engine({&fabric.transport(schedule.rank)}), execution(program),
          input(schedule.input_bytes + kBytes), output(schedule.output_bytes + kBytes) {}

    void start() { engine.start(execution, {input.data(), output.data(), sum()}); }
    bool done() const { return execution.state() == engine::ExecutionState::done; }

    std::vector<Transport*> routes;
    engine::Program program;
    engine::Engine engine;
    engine::Execution execution;
    std::vector<std::byte> input;
    std::vector<std::byte> output;
};

/// Hides the value from the compiler, which does not know it in the engine either.
/// benchmark::DoNotOptimize(T&) of release 1.7 miscompiles with gcc 12.
template <typename T>
void hide(T& value) {
    asm volatile("" : "+r"(value));
}

void count_ops(benchmark::State& state, std::uint64_t ops) {
    state.counters["per_op"] =
        benchmark::Counter(static_cast<double>(ops), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

/// Runs a program without messages.
void run_alone(benchmark::State& state, const Schedule& schedule, std::uint64_t ops) {
    LoopbackFabric fabric(2, transport::Delivery::immediate);
    Side side(fabric, schedule);
    for (auto _ : state) {
        side.start();
        benchmark::ClobberMemory();
    }
    count_ops(state, ops);
}

void start_engine(benchmark::State& state) {
    run_alone(state, builder(0, 1).finish(), 1);
}

void copy_engine(benchmark::State& state) {
    Builder b = builder(0, kOps);
    for (std::uint64_t i = 0; i < kOps; ++i) {
        b.copy(b.input(i * kBytes, kBytes), b.output(i * kBytes, kBytes));
    }
    run_alone(state, b.finish(), kOps);
}

void copy_direct(benchmark::State& state) {
    std::vector<std::byte> source(kOps * kBytes);
    std::vector<std::byte> target(kOps * kBytes);
    std::uint64_t bytes = kBytes;
    for (auto _ : state) {
        for (std::uint64_t i = 0; i < kOps; ++i) {
            hide(bytes);
            std::memcpy(&target[i * kBytes], &source[i * kBytes], bytes);
        }
        benchmark::ClobberMemory();
    }
    count_ops(state, kOps);
}

void reduce_engine(benchmark::State& state) {
    Builder b = builder(0, kOps + 1);
    for (std::uint64_t i = 0; i < kOps; ++i) {
        const std::array<Slice, 2> operands = {b.input(i * kBytes, kBytes),
                                               b.input((i + 1) * kBytes, kBytes)};
        b.reduce(operands, b.output(i * kBytes, kBytes));
    }
    run_alone(state, b.finish(), kOps);
}

void reduce_direct(benchmark::State& state) {
    std::vector<std::byte> source((kOps + 1) * kBytes);
    std::vector<std::byte> target(kOps * kBytes);
    engine::Reduction reduction = sum();
    hide(reduction.combine);
    for (auto _ : state) {
        for (std::uint64_t i = 0; i < kOps; ++i) {
            const std::array<const std::byte*, 2> operands = {&source[i * kBytes],
                                                              &source[(i + 1) * kBytes]};
            reduction.combine(reduction.context, operands.data(), operands.size(),
                              &target[i * kBytes], kBytes);
        }
        benchmark::ClobberMemory();
    }
    count_ops(state, kOps);
}

Schedule messages_of(Rank rank) {
    Builder b = builder(rank, kMessages);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
        if (rank == 0) {
            b.send(1, b.input(i * kBytes, kBytes));
        } else {
            b.recv(0, b.output(i * kBytes, kBytes));
        }
    }
    return b.finish();
}

/// Rank 1 starts first, so that the loopback never buffers.
void message_engine(benchmark::State& state) {
    LoopbackFabric fabric(2, transport::Delivery::immediate);
    Side sender(fabric, messages_of(0));
    Side receiver(fabric, messages_of(1));
    for (auto _ : state) {
        receiver.start();
        sender.start();
        receiver.engine.progress();
    }
    UCG_ASSERT(sender.done() && receiver.done());
    count_ops(state, 2 * kMessages);
}

std::vector<Message> message_list(Direction direction, Rank peer, std::byte* data,
                                  std::uint64_t count) {
    std::vector<Message> messages(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        messages[i].data = data + i * kBytes;
        messages[i].bytes = kBytes;
        messages[i].peer = peer;
        messages[i].step = static_cast<std::uint16_t>(i);
        messages[i].direction = direction;
    }
    return messages;
}

void message_direct(benchmark::State& state) {
    LoopbackFabric fabric(2, transport::Delivery::immediate);
    std::vector<std::byte> source(kMessages * kBytes);
    std::vector<std::byte> target(kMessages * kBytes);
    std::vector<Message> sends = message_list(Direction::send, 1, source.data(), kMessages);
    std::vector<Message> recvs = message_list(Direction::recv, 0, target.data(), kMessages);
    Transport* at_sender = &fabric.transport(0);
    Transport* at_receiver = &fabric.transport(1);
    hide(at_sender);
    hide(at_receiver);
    for (auto _ : state) {
        at_receiver->post(recvs);
        at_sender->post(sends);
        at_receiver->progress();
    }
    UCG_ASSERT(recvs.back().state == MessageState::done);
    count_ops(state, 2 * kMessages);
}

/// Returns a schedule in which one word goes to and fro: each message answers the one before.
Schedule relay_of(Rank rank) {
    Builder b = builder(rank, 1);
    const Slice word = b.scratch(kBytes);
    if (rank == 0) {
        b.copy(b.input(0, kBytes), word);
    }
    for (std::uint64_t i = 0; i < kMessages; ++i) {
        if (i % 2 == static_cast<std::uint64_t>(rank)) {
            b.send(1 - rank, word);
        } else {
            b.recv(1 - rank, word);
        }
    }
    return b.finish();
}

void relay_engine(benchmark::State& state) {
    LoopbackFabric fabric(2, transport::Delivery::immediate);
    Side first(fabric, relay_of(0));
    Side second(fabric, relay_of(1));
    for (auto _ : state) {
        second.start();
        first.start();
        while (!first.done() || !second.done()) {
            second.engine.progress();
            first.engine.progress();
        }
    }
    count_ops(state, 2 * kMessages);
}

/// Makes the same posts in the same order. In both versions the answer is there when it is looked
/// for.
void relay_direct(benchmark::State& state) {
    LoopbackFabric fabric(2, transport::Delivery::immediate);
    std::array<std::byte, kBytes> words[2] = {};
    std::array<std::vector<Message>, 2> sends;
    std::array<std::vector<Message>, 2> recvs;
    std::array<Transport*, 2> transports = {&fabric.transport(0), &fabric.transport(1)};
    for (std::size_t side = 0; side < 2; ++side) {
        const Rank peer = static_cast<Rank>(1 - side);
        sends[side] = message_list(Direction::send, peer, words[side].data(), 1);
        recvs[side] = message_list(Direction::recv, peer, words[side].data(), 1);
    }
    hide(transports[0]);
    hide(transports[1]);
    for (auto _ : state) {
        transports[1]->post(recvs[1]);
        for (std::size_t i = 0; i < kMessages; ++i) {
            const std::size_t side = i % 2;
            transports[side]->post(sends[side]);
            if (i + 2 <= kMessages) { // Receives the answer to what was just sent.
                transports[side]->post(recvs[side]);
            }
            transports[1 - side]->progress();
        }
    }
    count_ops(state, 2 * kMessages);
}

/// Prints as usual, and remembers the time per operation.
class Reporter : public benchmark::ConsoleReporter {
  public:
    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs) {
            const auto counter = run.counters.find("per_op");
            if (run.run_type == Run::RT_Iteration && counter != run.counters.end()) {
                const double ns = counter->second.value * 1e9;
                const auto [known, is_new] = least_ns_.try_emplace(run.run_name.function_name, ns);
                if (!is_new && ns < known->second) {
                    known->second = ns;
                }
            }
        }
    }

    /// Prints the summary. It uses the least of all repetitions, since other work of the machine
    /// adds to the rest.
    void summarize() const {
        if (least_ns_.empty()) {
            return; // After help, a list, or wrong usage.
        }
        std::printf("\n%-10s %12s %12s %12s %10s\n", "what", "engine_ns", "direct_ns", "above_ns",
                    "budget_ns");
        for (const auto& [name, budget_ns] : kBudgets) {
            const auto engine = least_ns_.find(name + "/engine");
            const auto direct = least_ns_.find(name + "/direct");
            if (engine == least_ns_.end()) {
                continue; // Filtered out.
            }
            const double direct_ns = direct == least_ns_.end() ? 0 : direct->second;
            std::printf("%-10s %12.2f %12.2f %12.2f %10s\n", name.c_str(), engine->second,
                        direct_ns, engine->second - direct_ns, budget_ns.c_str());
        }
    }

  private:
    inline static const std::vector<std::pair<std::string, std::string>> kBudgets = {
        {"start", "30"}, {"copy", "10"}, {"reduce", "10"}, {"message", "10"}, {"relay", "-"}};
    std::map<std::string, double> least_ns_;
};

BENCHMARK(start_engine)->Name("start/engine");
BENCHMARK(copy_engine)->Name("copy/engine");
BENCHMARK(copy_direct)->Name("copy/direct");
BENCHMARK(reduce_engine)->Name("reduce/engine");
BENCHMARK(reduce_direct)->Name("reduce/direct");
BENCHMARK(message_engine)->Name("message/engine");
BENCHMARK(message_direct)->Name("message/direct");
BENCHMARK(relay_engine)->Name("relay/engine");
BENCHMARK(relay_direct)->Name("relay/direct");

} // namespace

int main(int argc, char** argv) {
    Reporter reporter;
    const int status = perf::run_benchmarks(argc, argv, &reporter);
    reporter.summarize();
    return status;
}
