// Runs the schedules of all ranks in one process over the loopback transport, and compares results
// with what the collective means for integers. It serves tests of the engine and of algorithms.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace ucg::test {

/// All ranks of a group, each with its engine, program and buffers.
class RankSet {
  public:
    RankSet(std::vector<graph::Schedule> schedules, transport::Delivery delivery,
            std::uint64_t seed)
        : schedules_(std::move(schedules)),
          fabric_(static_cast<Rank>(schedules_.size()), delivery, seed) {
        for (const graph::Schedule& schedule : schedules_) {
            ranks_.push_back(std::make_unique<One>(schedule, fabric_));
        }
    }

    std::vector<std::byte>& input(Rank rank) { return at(rank).input; }
    std::vector<std::byte>& output(Rank rank) { return at(rank).output; }
    engine::Execution& execution(Rank rank) { return *at(rank).execution; }
    engine::Engine& engine(Rank rank) { return at(rank).engine; }
    transport::LoopbackFabric& fabric() { return fabric_; }

    void start(Rank rank, engine::Reduction reduction) {
        One& one = at(rank);
        one.engine.start(*one.execution, {one.input.data(), one.output.data(), reduction});
    }

    /// Starts every rank and runs until all are done; false if nothing moves for a long while.
    bool run(engine::Reduction reduction) {
        for (Rank rank = 0; rank < fabric_.rank_count(); ++rank) {
            start(rank, reduction);
        }
        return drive();
    }

    bool drive() {
        unsigned idle_rounds = 0;
        while (!done() && idle_rounds < 1000) {
            unsigned events = 0;
            for (auto& one : ranks_) {
                events += one->engine.progress();
            }
            idle_rounds = events == 0 ? idle_rounds + 1 : 0;
        }
        return done();
    }

    bool done() const {
        for (const auto& one : ranks_) {
            if (one->execution->state() != engine::ExecutionState::done) {
                return false;
            }
        }
        return true;
    }

  private:
    struct One {
        One(const graph::Schedule& schedule, transport::LoopbackFabric& fabric)
            : routes(fabric.routes(schedule.rank)),
              program(engine::lower(schedule, routes).value()),
              engine({&fabric.transport(schedule.rank)}), input(schedule.input_bytes),
              output(schedule.output_bytes),
              execution(std::make_unique<engine::Execution>(program)) {}

        std::vector<transport::Transport*> routes;
        engine::Program program;
        engine::Engine engine;
        std::vector<std::byte> input;
        std::vector<std::byte> output;
        std::unique_ptr<engine::Execution> execution;
    };

    One& at(Rank rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

    std::vector<graph::Schedule> schedules_;
    transport::LoopbackFabric fabric_;
    std::vector<std::unique_ptr<One>> ranks_;
};

} // namespace ucg::test
