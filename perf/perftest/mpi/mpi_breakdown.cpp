// Times short messages of MPI by the calls that the paper behind `ucg_perftest breakdown` times:
// MPI_Isend, the MPI_Wait of an MPI_Irecv whose message has already arrived, windows of MPI_Isend
// and MPI_Waitall, and the latency that a ping-pong observes. Two ranks; rank 0 prints JSON that
// `ucg_perftest breakdown --mpi FILE` reads. Of this project it uses only the timer.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <mpi.h>

#include "perf/option_value.h"
#include "perf/perftest/timer.hpp"

namespace {

using ucg::perftest::read_ordered;
using ucg::perftest::Ticks;

constexpr int kWindow = 64;
constexpr int kTag = 1;
/// The time in which a message that was sent arrives at its receiver.
constexpr double kUnderWaySeconds = 30e-6;

double median_of(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
}

/// Returns the nanoseconds of a tick, by MPI's own clock.
double tick_ns() {
    const double start = MPI_Wtime();
    const Ticks first = read_ordered();
    while (MPI_Wtime() - start < 0.02) {
    }
    const double elapsed = MPI_Wtime() - start;
    return elapsed * 1e9 / static_cast<double>(read_ordered() - first);
}

/// Returns the mean without interruptions, which are times above ten times the median.
double undisturbed_mean(std::vector<Ticks> times) {
    std::sort(times.begin(), times.end());
    const Ticks limit = 10 * times[times.size() / 2];
    double sum = 0;
    std::size_t count = 0;
    while (count < times.size() && times[count] <= limit) {
        sum += static_cast<double>(times[count++]);
    }
    return sum / static_cast<double>(count);
}

class Measurement {
  public:
    Measurement(int rank, int samples) : rank_(rank), samples_(samples) {}

    double overhead() {
        std::vector<Ticks> times;
        for (int i = 0; i < samples_; ++i) {
            const Ticks before = read_ordered();
            times.push_back(read_ordered() - before);
        }
        return undisturbed_mean(std::move(times));
    }

    double isend() {
        return ping_pong([&](std::vector<Ticks>& times) {
            MPI_Request request;
            const Ticks before = read_ordered();
            MPI_Isend(&data_, 1, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD, &request);
            times.push_back(read_ordered() - before);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Recv(&data_, 1, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        });
    }

    double successful_wait() {
        return ping_pong([&](std::vector<Ticks>& times) {
            MPI_Request request;
            MPI_Irecv(&data_, 1, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD, &request);
            MPI_Send(&data_, 1, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD);
            const double start = MPI_Wtime();
            while (MPI_Wtime() - start < kUnderWaySeconds) {
            }
            const Ticks before = read_ordered();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            times.push_back(read_ordered() - before);
        });
    }

    double latency() {
        return ping_pong([&](std::vector<Ticks>& times) {
                   const Ticks before = read_ordered();
                   MPI_Send(&data_, 1, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD);
                   MPI_Recv(&data_, 1, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                   times.push_back(read_ordered() - before);
               }) /
               2;
    }

    /// Times of a window per message: all posts, the MPI_Waitall that follows, and both together in
    /// windows of which nothing else is timed.
    struct Window {
        double posts;
        double waitall;
        double whole;
    };
    Window windows() {
        std::vector<Ticks> posts;
        std::vector<Ticks> waits;
        std::vector<Ticks> whole;
        double data[kWindow] = {};
        MPI_Request requests[kWindow];
        for (int i = 0; i < 2 * std::max(samples_ / kWindow, 4); ++i) {
            MPI_Barrier(MPI_COMM_WORLD);
            const Ticks start = read_ordered();
            for (int k = 0; k < kWindow; ++k) {
                if (rank_ == 0) {
                    MPI_Isend(&data[k], 1, MPI_DOUBLE, 1, kTag, MPI_COMM_WORLD, &requests[k]);
                } else {
                    MPI_Irecv(&data[k], 1, MPI_DOUBLE, 0, kTag, MPI_COMM_WORLD, &requests[k]);
                }
            }
            const Ticks posted = i % 2 == 0 ? read_ordered() : start;
            MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
            const Ticks end = read_ordered();
            (i % 2 == 0 ? waits : whole).push_back(end - posted);
            if (i % 2 == 0) {
                posts.push_back(posted - start);
            }
        }
        return {undisturbed_mean(std::move(posts)) / kWindow,
                undisturbed_mean(std::move(waits)) / kWindow,
                undisturbed_mean(std::move(whole)) / kWindow};
    }

  private:
    /// Times a ping-pong. Rank 0 runs `turn`, which sends and receives; rank 1 answers.
    template <typename Turn>
    double ping_pong(Turn turn) {
        MPI_Barrier(MPI_COMM_WORLD);
        std::vector<Ticks> times;
        for (int i = 0; i < samples_; ++i) {
            if (rank_ == 0) {
                turn(times);
            } else {
                MPI_Recv(&data_, 1, MPI_DOUBLE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(&data_, 1, MPI_DOUBLE, 0, kTag, MPI_COMM_WORLD);
            }
        }
        return rank_ == 0 ? undisturbed_mean(std::move(times)) : 0;
    }

    int rank_;
    int samples_;
    double data_ = 1;
};

void measure(int rank, int samples, int rounds) {
    std::vector<double> overhead;
    std::vector<double> isend;
    std::vector<double> wait;
    std::vector<double> posts;
    std::vector<double> waitall;
    std::vector<double> windows;
    std::vector<double> latency;
    Measurement measurement(rank, samples);
    for (int i = 0; i < rounds; ++i) {
        overhead.push_back(measurement.overhead());
        isend.push_back(measurement.isend() - overhead.back());
        wait.push_back(measurement.successful_wait() - overhead.back());
        const Measurement::Window times = measurement.windows();
        posts.push_back(times.posts - overhead.back() / kWindow);
        waitall.push_back(times.waitall - overhead.back() / kWindow);
        windows.push_back(times.whole - overhead.back() / kWindow);
        latency.push_back(measurement.latency() - overhead.back() / 2);
    }
    const double tick = tick_ns();
    if (rank == 0) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        int length = 0;
        MPI_Get_library_version(version, &length);
        version[std::strcspn(version, ",\n\"")] = '\0';
        std::printf("{\"library\": \"%s\", \"samples\": %d, \"overhead_ns\": %.2f, "
                    "\"isend_ns\": %.2f, \"wait_ns\": %.2f, \"window_isend_ns\": %.2f, "
                    "\"window_waitall_ns\": %.2f, \"window_ns\": %.2f, \"latency_ns\": %.2f}\n",
                    version, samples * rounds, median_of(overhead) * tick, median_of(isend) * tick,
                    median_of(wait) * tick, median_of(posts) * tick, median_of(waitall) * tick,
                    median_of(windows) * tick, median_of(latency) * tick);
    }
}

constexpr long kSamples = 1000;
constexpr long kRounds = 21;
constexpr long kSamplesLeast = 100; ///< In all rounds together.

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int says = rank == 0 ? 1 : 0;
    const bool helps = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    const long samples =
        argc > 1 && !helps ? option_count("SAMPLES", argv[1], 1, 1000000, says) : kSamples;
    const long rounds = argc > 2 ? option_count("ROUNDS", argv[2], 1, 10000, says) : kRounds;
    const bool right =
        size == 2 && argc <= 3 && samples > 0 && rounds > 0 && samples * rounds >= kSamplesLeast;
    if (right && !helps) {
        measure(rank, static_cast<int>(samples), static_cast<int>(rounds));
    } else if (says != 0) {
        std::fprintf(helps ? stdout : stderr,
                     "usage: mpirun -np 2 mpi_breakdown [SAMPLES [ROUNDS]]\n"
                     "Two ranks, at least %ld samples in all rounds together (default: %ld in each "
                     "of %ld).\n",
                     kSamplesLeast, kSamples, kRounds);
    }
    MPI_Finalize();
    return right || helps ? 0 : 2;
}
