// Processes of a run that are connected by stream sockets, in a star with rank 0 in its middle:
// what the local launcher and the one over TCP have in common.
#pragma once

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// Owns the sockets. Rank 0 has a socket for each rank, the others have one that leads to rank 0.
class StarRuntime : public Runtime {
  public:
    /// `lines` are sockets: on rank 0 by rank, with -1 for itself; on another rank a single one.
    StarRuntime(Rank rank, Rank size, std::vector<int> lines);
    ~StarRuntime() override;
    StarRuntime(const StarRuntime&) = delete;
    StarRuntime& operator=(const StarRuntime&) = delete;

    Rank rank() const override { return rank_; }
    Rank size() const override { return size_; }
    using Runtime::exchange;
    Result<std::vector<std::string>> exchange(std::string_view mine,
                                              const std::function<void()>& progress) override;

  protected:
    const std::vector<int>& lines() const { return lines_; }

  private:
    Result<std::vector<std::string>> collect(std::string_view mine,
                                             const std::function<void()>& progress);
    Result<std::vector<std::string>> take_part(std::string_view mine,
                                               const std::function<void()>& progress);
    Status lost(Rank rank);

    Rank rank_;
    Rank size_;
    std::vector<int> lines_;
    Rank lost_ = kNoRank; ///< A rank that is lost; then every exchange fails at once.
};

} // namespace ucg::perftest
