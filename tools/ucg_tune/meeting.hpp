// How the processes of a measurement find one another, whoever started them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

struct Place {
    Rank rank = 0;
    Rank count = 1;
};

/// What Open MPI's mpirun, a PMI launcher (MPICH, Intel MPI) or Slurm's srun tells a process by its
/// environment; a count of 1 if none of them started it. Fails if what they say makes no sense.
Result<Place> launched_place();

/// A star of TCP connections with rank 0 in the middle, for a few strings before and after the
/// measurement; nothing moves on it meanwhile. Every wait is bounded.
class Meeting {
  public:
    Meeting() = default;
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    /// `point` is HOST:PORT, where rank 0 listens and the others look for it until `timeout`.
    Status join(const Place& place, const std::string& point, std::chrono::seconds timeout);

    /// Starts `count` - 1 further processes on this host and joins with them; returns in all. They
    /// die with the caller. REQUIRES: no other threads, count >= 2.
    Status fork(Rank count, std::chrono::seconds timeout);

    const Place& place() const { return place_; }

    /// What each rank gave, by rank, in all ranks.
    Result<std::vector<std::string>> allgather(std::string_view mine);

    /// Rank 0 of fork(): waits for the others; fails if one failed.
    Status reap();

  private:
    Status listen(const std::string& host, const std::string& port);
    Status accept_all(std::chrono::steady_clock::time_point end);
    Status connect(const std::string& host, const std::string& port,
                   std::chrono::steady_clock::time_point end);

    Place place_;
    int listener_ = -1;
    std::vector<int> lines_; ///< Rank 0: by rank, its own is -1. Others: the one to rank 0.
    std::vector<int> children_;
};

} // namespace ucg::tools
