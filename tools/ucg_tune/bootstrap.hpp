// How the processes of a measurement find one another, whoever started them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

struct RankInJob {
    Rank rank = 0;
    Rank count = 1;
};

/// Returns the place that Open MPI's mpirun, a PMI launcher (MPICH, Intel MPI) or Slurm's srun has
/// set in the environment of this process; a count of 1 if none of them started it. Fails if the
/// variables make no sense.
Result<RankInJob> launched_place();

/// A star of TCP connections with rank 0 in the middle. It carries a few strings before and after
/// the measurement and nothing during it. Every wait is bounded.
class TcpStar {
  public:
    TcpStar() = default;
    ~TcpStar();
    TcpStar(const TcpStar&) = delete;
    TcpStar& operator=(const TcpStar&) = delete;

    /// Joins the bootstrap at `point`, HOST:PORT. Rank 0 listens there; the others try to connect
    /// until `timeout`.
    Status join(const RankInJob& place, const std::string& point, std::chrono::seconds timeout);

    /// Starts `count` - 1 further processes on this host and joins with them. Returns in all of the
    /// processes. The new ones die with the caller. REQUIRES: no other threads, count >= 2.
    Status fork(Rank count, std::chrono::seconds timeout);

    const RankInJob& place() const { return place_; }

    /// Gives each rank the strings of all ranks, by rank.
    Result<std::vector<std::string>> allgather(std::string_view mine);

    /// Waits for the processes that fork() started; fails if one of them failed. For rank 0.
    Status reap();

  private:
    Status listen(const std::string& host, const std::string& port);
    Status accept_all(std::chrono::steady_clock::time_point end);
    Status connect(const std::string& host, const std::string& port,
                   std::chrono::steady_clock::time_point end);

    RankInJob place_;
    int listener_ = -1;
    std::vector<int> lines_; ///< On rank 0 by rank, its own is -1; elsewhere only that to rank 0.
    std::vector<int> children_;
};

} // namespace ucg::tools
