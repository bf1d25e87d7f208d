// The what-if curves of a collective against a real change: an allreduce of 8 bytes over UCX's
// transport of two ranks, through a transport that spins before each message it posts. The price
// of a post is then known beside what it was, and is reduced in truth.
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

/// Spins before each message that is sent, then hands on.
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
    /// `transport`: what UCX_TLS is to name, such as posix. Collective of two.
    static Result<std::unique_ptr<DelayCheck>> open(Runtime& runtime, Lines& lines,
                                                    const std::string& transport);
    ~DelayCheck();
    DelayCheck(const DelayCheck&) = delete;
    DelayCheck& operator=(const DelayCheck&) = delete;

    /// Measures what a message costs without a delay, and the collective with each delay, `samples`
    /// times. Collective; rank 0 learns the times.
    Status round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds);

    /// Predicted and measured, by reductions of the post with the longest delay.
    Result<std::string> report(const Rounds& rounds) const;

  private:
    /// Of the post without a delay, which is not known before it is measured; in the middle of what
    /// UCX's transports take.
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
    std::uint32_t sequence_ = 1u << 30; ///< Of single messages: far from the engine's.
};

} // namespace ucg::perftest::breakdown
