// Checks the what-if curves of a collective by a real change. An allreduce of 8 bytes runs over
// UCX's transport between two ranks, through a transport that spins before each message it posts.
// So the price of a post is known with and without the spin, and is really reduced.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "perf/perftest/breakdown/lines.hpp"
#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/breakdown/what_if.hpp"
#include "perf/perftest/runtime.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::perftest::breakdown {

/// A transport that spins before each message that is sent, and then passes it to another
/// transport.
class DelayedTransport final : public transport::Transport {
  public:
    explicit DelayedTransport(transport::Transport& inner) : inner_(inner) {}
    void delay(double ns) { delay_ns_ = ns; }

    std::string_view name() const override { return inner_.name(); }
    void post(std::span<transport::Message> messages) override;
    void take_part(transport::Message& message) override { inner_.take_part(message); }
    unsigned progress() override { return inner_.progress(); }
    Status status() const override { return inner_.status(); }

  private:
    transport::Transport& inner_;
    double delay_ns_ = 0;
};

class DelayCheck {
  public:
    /// Opens the check. `transport` becomes the value of UCX_TLS, such as posix. Collective of two.
    static Result<std::unique_ptr<DelayCheck>> open(Runtime& runtime, Lines& lines,
                                                    const std::string& transport);
    ~DelayCheck();
    DelayCheck(const DelayCheck&) = delete;
    DelayCheck& operator=(const DelayCheck&) = delete;

    /// Measures what a message costs without a delay, and the collective with each delay, `samples`
    /// times. Collective; rank 0 gets the times.
    Status round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds);

    /// Returns predicted and measured times, by reductions of the post with the longest delay.
    Result<std::string> report(const Rounds& rounds) const;

  private:
    /// The longest delay in nanoseconds. It stands for the time of a post without a delay, which is
    /// not known before it is measured, and lies in the middle of the times of UCX's transports.
    static constexpr double kDelayNs = 1000;

    DelayCheck(Runtime& runtime, Lines& lines) : runtime_(runtime), lines_(lines) {}
    Status open_transport(const std::string& transport);
    Status lower_plan();
    enum class Timed { post, progress, whole };
    Status exchange_messages(std::size_t samples, Timed timed, double& mean_ns);
    Status run_collective(double delay_ns, std::size_t samples, double& mean_ns);
    double both(double ns);

    Runtime& runtime_;
    Lines& lines_;
    Stopwatch* stopwatch_ = nullptr;
    std::unique_ptr<transport::ucx::UcxWorker> worker_;
    std::unique_ptr<transport::Transport> inner_;
    std::unique_ptr<DelayedTransport> delayed_;
    std::unique_ptr<engine::Engine> engine_;
    std::unique_ptr<engine::Program> program_;
    std::unique_ptr<engine::Execution> execution_;
    std::array<double, 1> input_{};
    std::array<double, 1> output_{};
    std::uint32_t sequence_ = 1u << 30; ///< For single messages: far from the engine's numbers.
};

} // namespace ucg::perftest::breakdown
