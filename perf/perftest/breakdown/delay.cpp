#include "perf/perftest/breakdown/delay.hpp"

#include <bit>

#include "perf/perftest/launch/agree.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::perftest::breakdown {

namespace {

using transport::Direction;
using transport::Message;
using transport::MessageState;

constexpr const char* kAlgorithm = "recursive_doubling";
constexpr const char* kPost = "post";
constexpr const char* kProgress = "progress";
constexpr const char* kLatency = "latency";
constexpr const char* kReduce = "reduce";

std::string delayed_name(double delay_ns) {
    return fmt::format("delayed by {:.0f}", delay_ns);
}

void spin(double ns) {
    const Ticks start = read_unordered();
    const auto ticks = static_cast<Ticks>(ns * ticks_per_second() / 1e9);
    while (read_unordered() - start < ticks) {
    }
}

/// Returns the longest delay reduced by the fraction. The post itself stays as it is.
double delay_at(double longest_ns, double fraction) {
    return longest_ns * (1 - fraction);
}

} // namespace

void DelayedTransport::post(std::span<Message> messages) {
    for (Message& message : messages) {
        if (message.direction == Direction::send && delay_ns_ > 0) {
            spin(delay_ns_);
        }
        inner_.post({&message, 1});
    }
}

DelayCheck::~DelayCheck() {
    execution_.reset();
    engine_.reset();
    delayed_.reset();
    inner_.reset();
    if (worker_ != nullptr) {
        worker_->begin_close();
        while (!worker_->close_progress()) {
        }
        static_cast<void>(runtime_.barrier([this] { worker_->progress(); }));
    }
}

Result<std::unique_ptr<DelayCheck>> DelayCheck::open(Runtime& runtime, Lines& lines,
                                                     const std::string& transport) {
    std::unique_ptr<DelayCheck> check(new DelayCheck(runtime, lines));
    Status status = check->open_transport(transport);
    if (status.ok()) {
        status = check->lower_plan();
    }
    status = agree(runtime, status);
    if (!status.ok()) {
        return status;
    }
    return check;
}

Status DelayCheck::open_transport(const std::string& transport) {
    transport::ucx::UcxOptions options;
    options.config = {{"TLS", transport}};
    options.detect_failures = false;
    Result<std::unique_ptr<transport::ucx::UcxWorker>> worker =
        transport::ucx::UcxWorker::create(options);
    if (Status status = agree(runtime_, worker.status()); !status.ok()) {
        return status;
    }
    worker_ = std::move(*worker);
    const Result<std::vector<std::string>> all = runtime_.exchange(worker_->address());
    if (!all) {
        return all.status();
    }
    Result<std::unique_ptr<transport::ucx::UcxTransport>> made =
        transport::ucx::UcxTransport::create(*worker_, std::vector<std::uint32_t>(all->size(), 1),
                                             runtime_.rank(), *all);
    if (!made) {
        return made.status();
    }
    inner_ = std::move(*made);
    delayed_ = std::make_unique<DelayedTransport>(*inner_);
    return {};
}

Status DelayCheck::lower_plan() {
    const topo::Placement placement = topo::Placement::one_host(2);
    const plan::Facts facts = {.placement = placement, .profile = cost::default_profile()};
    const graph::Request request = {.collective = graph::Collective::allreduce,
                                    .rank_count = 2,
                                    .bytes = sizeof(double),
                                    .element_bytes = sizeof(double),
                                    .send = {},
                                    .receive = {}};
    const Result<graph::Schedule> schedule =
        plan::plan(facts, request, runtime_.rank(), kAlgorithm);
    if (!schedule) {
        return schedule.status();
    }
    std::array<transport::Transport*, 2> routes = {delayed_.get(), delayed_.get()};
    routes[static_cast<std::size_t>(runtime_.rank())] = nullptr;
    Result<engine::Program> program = engine::lower(*schedule, routes);
    if (!program) {
        return program.status();
    }
    program_ = std::make_unique<engine::Program>(std::move(*program));
    execution_ = std::make_unique<engine::Execution>(*program_);
    engine_ = std::make_unique<engine::Engine>(std::vector<transport::Transport*>{delayed_.get()});
    return {};
}

double DelayCheck::both(double ns) {
    const auto self = static_cast<std::size_t>(runtime_.rank());
    lines_.number(self).store(std::bit_cast<std::uint64_t>(ns));
    lines_.meet(runtime_.rank());
    const double mean = (std::bit_cast<double>(lines_.number(0).load()) +
                         std::bit_cast<double>(lines_.number(1).load())) /
                        2;
    lines_.meet(runtime_.rank());
    return mean;
}

/// Exchanges messages both ways at once, as the collective does, with lines of both ends under way.
/// Times the posts, or the progress that finds a message which has already arrived, or the whole.
Status DelayCheck::exchange_messages(std::size_t samples, Timed timed, double& mean_ns) {
    const Rank peer = 1 - runtime_.rank();
    double data = 1;
    double result = 0;
    stopwatch_->clear();
    for (std::size_t i = 0; i < samples && inner_->status().ok(); ++i) {
        Message send = {.data = reinterpret_cast<std::byte*>(&data),
                        .bytes = sizeof(data),
                        .peer = peer,
                        .sequence = sequence_,
                        .direction = Direction::send};
        Message receive = send;
        receive.data = reinterpret_cast<std::byte*>(&result);
        receive.direction = Direction::recv;
        ++sequence_;
        const auto post = [&] {
            inner_->post({&send, 1});
            return 0;
        };
        const auto await = [&] {
            while (receive.state == MessageState::posted || send.state == MessageState::posted) {
                inner_->progress();
            }
            return 0;
        };
        lines_.start_together(runtime_.rank());
        if (timed == Timed::whole) {
            stopwatch_->time([&] {
                inner_->post({&receive, 1});
                post();
                return await();
            });
            stopwatch_->keep();
            continue;
        }
        inner_->post({&receive, 1});
        stopwatch_->time(post);
        if (timed == Timed::progress) {
            lines_.meet(runtime_.rank());
            stopwatch_->time([&] { return inner_->progress(); });
        }
        if (timed == Timed::post || receive.state == MessageState::done) {
            stopwatch_->keep();
        }
        await();
    }
    mean_ns = both(stopwatch_->size() > 0 ? stopwatch_->mean_ns() : 0);
    return inner_->status();
}

Status DelayCheck::run_collective(double delay_ns, std::size_t samples, double& mean_ns) {
    delayed_->delay(delay_ns);
    engine::Binding binding;
    binding.input = reinterpret_cast<std::byte*>(input_.data());
    binding.output = reinterpret_cast<std::byte*>(output_.data());
    binding.reduction.combine =
        engine::find_operator(engine::OperatorKind::sum, engine::ElementType::float64);
    stopwatch_->clear();
    for (std::size_t i = 0; i < samples && inner_->status().ok(); ++i) {
        lines_.start_together(runtime_.rank());
        stopwatch_->time([&] {
            engine_->start(*execution_, binding);
            while (execution_->in_progress()) {
                engine_->progress();
            }
            return 0;
        });
        stopwatch_->keep();
    }
    mean_ns = both(stopwatch_->mean_ns());
    return inner_->status();
}

Status DelayCheck::round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds) {
    stopwatch_ = &stopwatch;
    double ns = 0;
    const auto add = [&](const std::string& name) {
        if (runtime_.rank() == 0) {
            rounds.add(name, ns, samples);
        }
    };
    Status status;
    for (const auto& [name, timed] :
         {std::pair{kPost, Timed::post}, std::pair{kProgress, Timed::progress},
          std::pair{kLatency, Timed::whole}}) {
        if (status.ok()) {
            status = exchange_messages(samples, timed, ns);
            add(name);
        }
    }
    std::vector<double> delays = {kDelayNs};
    for (const double fraction : kReductions) {
        delays.push_back(delay_at(kDelayNs, fraction));
    }
    for (const double delay : delays) {
        if (status.ok()) {
            status = run_collective(delay, samples, ns);
            add(delayed_name(delay));
        }
    }
    const auto combine =
        engine::find_operator(engine::OperatorKind::sum, engine::ElementType::float64);
    auto* const target = reinterpret_cast<std::byte*>(output_.data());
    const std::array<const std::byte*, 2> operands = {
        reinterpret_cast<const std::byte*>(input_.data()), target};
    ns = stopwatch.window_ns(samples, [&] {
        combine(nullptr, operands.data(), operands.size(), target, sizeof(double));
    });
    add(kReduce);
    return agree(runtime_, status);
}

Result<std::string> DelayCheck::report(const Rounds& rounds) const {
    const auto ns = [&](const std::string& name) {
        return rounds.component(name, Category::llp).ns;
    };
    const double post = ns(kPost);
    MessagePrices prices = {.post_ns = post,
                            .flight_ns = std::max(0.0, ns(kLatency) - post - ns(kProgress)),
                            .progress_ns = ns(kProgress),
                            .reduce_ns = ns(kReduce)};
    std::string text = fmt::format(
        "\nWhat-if against a real change: allreduce of 8 bytes by {}, two ranks, {} over UCX, each "
        "post\ndelayed by {:.0f} ns, and this delay reduced\n"
        "  post {:.1f} ns, path {:.1f} ns, progress {:.1f} ns, reduction {:.1f} ns\n"
        "  {:>9} {:>12} {:>12} {:>8}  {:>18} {:>18}\n",
        kAlgorithm, inner_->name(), kDelayNs, prices.post_ns, prices.flight_ns, prices.progress_ns,
        prices.reduce_ns, "reduced %", "predicted ns", "measured ns", "error %", "predicted gain %",
        "measured gain %");
    double before_predicted = 0;
    double before_measured = 0;
    std::vector<double> fractions = {0};
    fractions.insert(fractions.end(), kReductions.begin(), kReductions.end());
    for (const double fraction : fractions) {
        const double delay = delay_at(kDelayNs, fraction);
        prices.post_ns = post + delay;
        const Result<double> predicted =
            simulated_ns(prices, graph::Collective::allreduce, 2, kAlgorithm);
        if (!predicted) {
            return predicted.status();
        }
        const double measured = ns(delayed_name(delay));
        before_predicted = fraction == 0 ? *predicted : before_predicted;
        before_measured = fraction == 0 ? measured : before_measured;
        text +=
            fmt::format("  {:>9.0f} {:>12.1f} {:>12.1f} {:>+8.1f}  {:>18.1f} {:>18.1f}\n",
                        100 * fraction, *predicted, measured, 100 * error_of(*predicted, measured),
                        100 * improvement(before_predicted, *predicted),
                        100 * improvement(before_measured, measured));
    }
    return text;
}

} // namespace ucg::perftest::breakdown
