// Sleeping ranks in forked processes: the doorbell brings every wake-up, and what a waiting rank
// costs.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "shm/shm.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/forked_group.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/transport/shm/shm.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using transport::Message;
using transport::MessageState;
using transport::ShmAddress;
using transport::ShmOptions;
using transport::ShmTransport;

/// This is longer than the ranks are given, so no nap may end by it.
constexpr std::chrono::nanoseconds kForEver = 300s;

void require_all_ok(const std::vector<test::RankResult>& results) {
    for (const auto& result : results) {
        INFO(result.output);
        CHECK(result.ok());
        CHECK_FALSE(result.timed_out);
    }
}

/// Two groups of all ranks on one heap, which therefore share one doorbell.
class SleepingRank {
  public:
    SleepingRank(const test::ForkedRank& rank, const ShmOptions& options)
        : heap_(shm::Heap::create({1 << 26}).value()), random_(97 + rank.rank()) {
        std::vector<Rank> ranks(static_cast<std::size_t>(rank.size()));
        std::iota(ranks.begin(), ranks.end(), 0);
        for (auto& transport : transports_) {
            transport = ShmTransport::create(*heap_, ranks, rank.rank(), options).value();
            const ShmAddress mine = transport->address();
            std::vector<ShmAddress> all;
            for (const std::string& text :
                 rank.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
                std::memcpy(&all.emplace_back(), text.data(), sizeof(ShmAddress));
            }
            UCG_ASSERT(transport->connect(all).ok());
        }
        sleeper_ = heap_->sleeper().value();
    }

    ShmTransport& transport(std::size_t group) { return *transports_[group]; }
    shm::NapCounts naps() const { return sleeper_->counts(); }

    /// Sleeps until all of `messages` are done, without any other rung of the waiting ladder.
    void await(std::span<Message> messages) {
        while (!done(messages)) {
            const bool stuck = transports_[0]->stuck() || transports_[1]->stuck();
            announced_ =
                sleeper_->announce(stuck ? shm::Awaits::both : shm::Awaits::message, announced_);
            if (transports_[0]->progress() + transports_[1]->progress() == 0) {
                sleeper_->nap(announced_, kForEver);
            }
        }
    }

    /// Waits for a random time: from none, so that peers are just falling asleep, to long enough
    /// for them to be asleep.
    void dawdle() {
        const std::uint64_t choice = random_() % 8;
        for (std::uint64_t i = random_() % 2000; i > 0 && choice > 1; --i) {
            shm::cpu_pause();
        }
        if (choice == 7) {
            ::usleep(static_cast<useconds_t>(random_() % 300));
        }
    }

  private:
    static bool done(std::span<const Message> messages) {
        return std::all_of(messages.begin(), messages.end(), [](const Message& message) {
            return message.state == MessageState::done;
        });
    }

    std::unique_ptr<shm::Heap> heap_;
    std::array<std::unique_ptr<ShmTransport>, 2> transports_;
    shm::Sleeper* sleeper_ = nullptr;
    shm::Announcement announced_;
    std::mt19937_64 random_;
};

/// Sends `rounds` messages of `bytes` to the next rank and receives as many from the one before, in
/// either group, and waits for all of them asleep.
std::string circulate(SleepingRank& me, const test::ForkedRank& rank, std::uint32_t rounds,
                      std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    for (std::uint32_t round = 0; round < rounds; ++round) {
        std::fill(out.begin(), out.end(), static_cast<std::byte>(round));
        std::array<Message, 2> messages;
        messages[0] = {out.data(), bytes, (rank.rank() + 1) % rank.size(), round};
        messages[1] = {in.data(), bytes, (rank.rank() + rank.size() - 1) % rank.size(), round};
        messages[1].direction = transport::Direction::recv;
        me.dawdle();
        me.transport(round % 2).post(messages);
        me.await(messages);
        if (in != out) {
            return "wrong bytes in round " + std::to_string(round);
        }
    }
    return "";
}

std::string none_by_the_clock(const SleepingRank& me) {
    const shm::NapCounts naps = me.naps();
    std::printf("%llu naps ended by a ring, %llu by the clock\n",
                static_cast<unsigned long long>(naps.rung),
                static_cast<unsigned long long>(naps.timed_out));
    return naps.timed_out == 0 ? "" : "a wake-up was lost";
}

/// A host that has so many things to do and does one at each call.
struct Host {
    unsigned left = 0;
    unsigned calls = 0;

    static unsigned progress(void* arg, unsigned /*flags*/) {
        Host& host = *static_cast<Host*>(arg);
        ++host.calls;
        return host.left == 0 ? 0 : (--host.left, 1);
    }
};

/// A context and a group of all ranks, for the C API.
struct Job : test::ForkedGroup {
    explicit Job(const test::ForkedRank& rank, Host* host = nullptr)
        : Job(rank, context_params(host)) {}

    static ucg_context_params_t context_params(Host* host) {
        ucg_context_params_t params = {};
        params.field_mask = host != nullptr ? UCG_CONTEXT_PARAM_FIELD_PROGRESS : 0;
        params.progress = Host::progress;
        params.progress_arg = host;
        return params;
    }

    ucg_status_t barrier() const {
        ucg_coll_params_t params = {};
        params.type = UCG_COLL_BARRIER;
        return ucg_coll_run(group, &params);
    }

  private:
    Job(const test::ForkedRank& rank, const ucg_context_params_t& params)
        : ForkedGroup(rank, {}, &params) {
        UCG_ASSERT(group != nullptr);
    }
};

std::chrono::microseconds cpu_time() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// Binds all ranks to one processor, so that they outnumber it.
void bind_to_first_cpu() {
    cpu_set_t allowed;
    UCG_ASSERT(::sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed)) {
        ++cpu;
    }
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(cpu, &first);
    UCG_ASSERT(::sched_setaffinity(0, sizeof(first), &first) == 0);
}

ucg_status_t run(const Job& job, ucg_coll_type_t type) {
    std::int32_t value = 1;
    std::int32_t result = 0;
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = type;
    params.send_buffer = &value;
    params.recv_buffer = &result;
    params.count = 1;
    params.element_bytes = sizeof(value);
    params.datatype = UCG_DT_INT32;
    params.op = UCG_OP_SUM;
    return ucg_coll_run(job.group, &params);
}

/// The share of its time for which this rank uses a processor while rank 0 is late to a barrier.
long long permille_used(const Job& job, const test::ForkedRank& rank) {
    rank.barrier();
    const auto cpu_before = cpu_time();
    const auto before = std::chrono::steady_clock::now();
    if (rank.rank() == 0) {
        ::usleep(300000);
    }
    UCG_ASSERT(job.barrier() == UCG_OK);
    const auto waited = std::chrono::steady_clock::now() - before;
    return 1000 * (cpu_time() - cpu_before) / waited;
}

} // namespace

TEST_CASE("capi: each blocking call drives the host, a barrier until it is done", "[ranks][capi]") {
    const int size = GENERATE(1, 2, 3);
    require_all_ok(test::fork_ranks(size, 60s, [](const test::ForkedRank& rank) -> std::string {
        Host host;
        Job job(rank, &host);
        for (int round = 0; round < 50; ++round) {
            host = {10, 0};
            for (int i = 0; i < 8 + 10; ++i) {
                // The rank that comes last has its result at once and never waits.
                if (round % rank.size() == rank.rank()) {
                    ::usleep(50);
                }
                if (run(job, UCG_COLL_ALLREDUCE) != UCG_OK) {
                    return "an allreduce failed";
                }
            }
            if (host.left != 0) {
                return "allreduces left " + std::to_string(host.left) + " of the host's work";
            }
            host = {100, 0};
            if (run(job, UCG_COLL_BARRIER) != UCG_OK || host.left != 0) {
                return "a barrier left " + std::to_string(host.left) + " of the host's work";
            }
        }
        rank.barrier();
        return "";
    }));
}

TEST_CASE("shm/doorbell: every wake-up comes by a ring", "[ranks][shm]") {
    const int size = GENERATE(2, 3, 5);
    require_all_ok(test::fork_ranks(size, 60s, [](const test::ForkedRank& rank) {
        SleepingRank me(rank, {});
        std::string error = circulate(me, rank, 3000, 8);
        rank.barrier();
        return error.empty() ? none_by_the_clock(me) : error;
    }));
}

TEST_CASE("shm/doorbell: senders that sleep on a full ring are woken for room", "[ranks][shm]") {
    const int size = GENERATE(2, 4);
    require_all_ok(test::fork_ranks(size, 60s, [](const test::ForkedRank& rank) {
        ShmOptions options;
        options.depth = 2;
        options.slot_bytes_min = options.slot_bytes_max = 64;
        SleepingRank me(rank, options);
        // These are 256 fragments, and the ring holds two.
        std::string error = circulate(me, rank, 100, 16384);
        rank.barrier();
        return error.empty() ? none_by_the_clock(me) : error;
    }));
}

TEST_CASE("capi: ranks that share a processor leave it alone while one is late", "[ranks][capi]") {
    const int size = GENERATE(2, 4);
    require_all_ok(test::fork_ranks(size, 60s, [](const test::ForkedRank& rank) -> std::string {
        constexpr long long kPermilleMax = 200;
        constexpr int kRounds = 10; // Other programs disturb some.
        bind_to_first_cpu();
        Job job(rank);
        UCG_ASSERT(job.barrier() == UCG_OK); // After this, nothing remains that is done only once.
        long long most = 0;
        for (int round = 0; round < kRounds; ++round) {
            most = 0;
            for (const std::string& used :
                 rank.exchange(std::to_string(permille_used(job, rank)))) {
                most = std::max(most, std::stoll(used));
            }
            std::printf("at most %lld of 1000\n", most);
            if (most < kPermilleMax) {
                return "";
            }
        }
        return "used " + std::to_string(most) + " of 1000";
    }));
}

TEST_CASE("capi: ranks that sleep at once finish everything", "[ranks][capi]") {
    const int size = GENERATE(2, 4);
    require_all_ok(test::fork_ranks(size, 60s, [](const test::ForkedRank& rank) -> std::string {
        setenv("UCG_SLEEP_AFTER", "0", 1);
        Job job(rank);
        for (int round = 0; round < 500; ++round) {
            if (job.barrier() != UCG_OK) {
                return "a barrier failed";
            }
        }
        rank.barrier();
        return "";
    }));
}
