// Several threads in each rank, which is a thread itself: what UCG_THREAD_MODE_MULTIPLE promises.
// Nothing here depends on time: a thread that has to wait for another one waits for a word that
// this one sets.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/handles.hpp"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

/// A rank whose context several threads use. The first thread that finds something wrong reports
/// it.
class Job {
  public:
    Job(ThreadRank& me, unsigned group_count) : me_(me) {
        ucg_config_h config = nullptr;
        require(ucg_config_read(&config), "read the configuration");
        require(ucg_config_modify(config, "TLS", "shm"), "TLS");
        ucg_context_params_t params = {};
        params.field_mask = UCG_CONTEXT_PARAM_FIELD_THREAD_MODE;
        params.thread_mode = UCG_THREAD_MODE_MULTIPLE;
        require(ucg_context_create(&params, config, &context_), "create the context");
        ucg_config_release(config);
        for (unsigned i = 0; i < group_count; ++i) {
            groups_.push_back(make_group(me_.group_params()));
        }
    }
    ~Job() {
        me_.meeting->wait(); // No rank leaves while a peer still waits for it.
        for (ucg_group_h group : groups_) {
            ucg_group_destroy(group);
        }
        ucg_context_destroy(context_);
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    unsigned rank() const { return me_.rank; }
    unsigned size() const { return me_.meeting->size(); }
    ThreadRank& me() { return me_; }
    ucg_context_h context() { return context_; }
    ucg_group_h group(std::size_t index) const { return groups_[index]; }

    ucg_group_h make_group(const ucg_group_params_t& params) {
        ucg_group_h group = nullptr;
        require(ucg_group_create(context_, &params, &group), "create a group");
        return group;
    }
    void barrier(ucg_group_h group) {
        ucg_coll_params_t params = {};
        params.type = UCG_COLL_BARRIER;
        require(ucg_coll_run(group, &params), "barrier");
    }

    void require(ucg_status_t status, const char* what) {
        require(status == UCG_OK, std::string(what) + ": " + ucg_status_string(status));
    }
    void require(bool right, const std::string& what) {
        const std::lock_guard lock(mutex_);
        if (!right && complaint_.empty()) {
            complaint_ = what;
        }
    }
    const std::string& complaint() const { return complaint_; }

  private:
    ThreadRank& me_;
    ucg_context_h context_ = nullptr;
    std::vector<ucg_group_h> groups_;
    std::mutex mutex_;
    std::string complaint_;
};

/// A sum with the program's own operator, which calls `called` before it adds.
class Sum {
  public:
    Sum(Job& job, std::size_t count, std::function<void()> called)
        : job_(job), called_(std::move(called)), send_(count), receive_(count) {}

    ucg_coll_params_t params(std::int64_t salt) {
        send_.front() = send_.back() = salt + job_.rank();
        ucg_coll_params_t params = {};
        params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
        params.type = UCG_COLL_ALLREDUCE;
        params.send_buffer = send_.data();
        params.recv_buffer = receive_.data();
        params.count = send_.size();
        params.element_bytes = sizeof(std::int64_t);
        params.op = UCG_OP_USER;
        params.reduce = add;
        params.reduce_arg = this;
        return params;
    }
    void check(std::int64_t salt) {
        const std::int64_t ranks = job_.size();
        const std::int64_t expected = ranks * salt + ranks * (ranks - 1) / 2;
        job_.require(receive_.front() == expected && receive_.back() == expected, "the sum");
    }
    void run(ucg_group_h group, std::int64_t salt) {
        const ucg_coll_params_t call = params(salt);
        job_.require(ucg_coll_run(group, &call), "allreduce");
        check(salt);
    }

  private:
    static void add(void* self, const void* left, const void* right, void* target,
                    std::size_t count) {
        static_cast<Sum*>(self)->called_();
        for (std::size_t i = 0; i < count; ++i) {
            static_cast<std::int64_t*>(target)[i] = static_cast<const std::int64_t*>(left)[i] +
                                                    static_cast<const std::int64_t*>(right)[i];
        }
    }

    Job& job_;
    std::function<void()> called_;
    std::vector<std::int64_t> send_;
    std::vector<std::int64_t> receive_;
};

void wait_for(const std::atomic<int>& word, int value) {
    while (word.load() < value) {
        std::this_thread::yield();
    }
}

TEST_CASE("capi: an operator may wait for a thread that waits in another group",
          "[capi][multiple]") {
    const unsigned size = GENERATE(2U, 3U);
    CHECK(run_thread_ranks(size, [](ThreadRank& me) {
              constexpr int kRounds = 30;
              Job job(me, 2);
              std::mutex interpreter;
              std::atomic<int> holds = 0;
              std::thread holder([&] {
                  for (int round = 1; round <= kRounds; ++round) {
                      const std::lock_guard lock(interpreter);
                      holds = round;
                      job.barrier(job.group(1));
                  }
              });
              Sum sum(job, 5, [&] { const std::lock_guard lock(interpreter); });
              for (int round = 1; round <= kRounds; ++round) {
                  wait_for(holds, round);
                  sum.run(job.group(0), round);
              }
              holder.join();
              return job.complaint();
          }) == "");
}

TEST_CASE("capi: the operator of a blocking collective runs where it was called",
          "[capi][multiple]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              constexpr int kRounds = 1000;
              Job job(me, 3);
              const auto reduce = [&job](std::size_t group) {
                  const std::thread::id caller = std::this_thread::get_id();
                  Sum sum(job, 700, [&job, caller] {
                      job.require(std::this_thread::get_id() == caller, "called by a stranger");
                  });
                  for (int round = 0; round < kRounds; ++round) {
                      sum.run(job.group(group), round);
                  }
              };
              std::thread one(reduce, 0);
              std::thread other(reduce, 1);
              if (me.rank == 0) { // Rank 0 waits all the while, and drives all groups.
                  job.barrier(job.group(2));
              }
              one.join();
              other.join();
              if (me.rank != 0) {
                  job.barrier(job.group(2));
              }
              return job.complaint();
          }) == "");
}

/// A rank that comes to an allgather only when told to.
struct LateRank {
    ThreadRank& me;
    const std::atomic<int>& word;
    int value;

    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        const auto& late = *static_cast<LateRank*>(self);
        wait_for(late.word, late.value);
        late.me.meeting->allgather(late.me.rank, send, receive, bytes);
        return 0;
    }
};

TEST_CASE("capi: while a group waits for its last rank, other threads go on", "[capi][multiple]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              constexpr int kRounds = 100;
              Job job(me, 1);
              std::atomic<int> done = 0;
              std::thread maker([&] {
                  LateRank late = {me, done, kRounds};
                  ucg_group_params_t params = me.group_params();
                  params.oob_allgather = LateRank::allgather;
                  params.oob_arg = &late;
                  ucg_group_h group = job.make_group(params);
                  job.barrier(group);
                  me.meeting->wait();
                  ucg_group_destroy(group);
              });
              Sum sum(job, 3, [] {});
              for (int round = 1; round <= kRounds; ++round) {
                  sum.run(job.group(0), round);
                  void* memory = nullptr;
                  job.require(ucg_mem_alloc(job.context(), 1, &memory), "memory");
                  job.require(ucg_mem_free(job.context(), memory), "free");
                  done = round;
              }
              maker.join();
              return job.complaint();
          }) == "");
}

TEST_CASE("capi: who waits elsewhere calls the operators of nonblocking collectives",
          "[capi][multiple][nonblocking]") {
    CHECK(run_thread_ranks(3, [](ThreadRank& me) {
              Job job(me, 2);
              int calls = 0;
              Sum sum(job, 40, [&calls] { ++calls; });
              for (int round = 0; round < 50; ++round) {
                  const ucg_coll_params_t params = sum.params(round);
                  ucg_coll_h request = nullptr;
                  job.require(ucg_coll_init(job.group(0), &params, &request), "init");
                  const ucg_status_t started = ucg_coll_start(request);
                  job.require(started == UCG_OK || started == UCG_INPROGRESS, "start");
                  const bool barrier_first = round % 3 == static_cast<int>(me.rank);
                  if (barrier_first) { // The other ranks come to it when they have the sum.
                      job.barrier(job.group(1));
                  }
                  job.require(ucg_coll_wait(request), "wait");
                  sum.check(round);
                  ucg_coll_free(request);
                  if (!barrier_first) {
                      job.barrier(job.group(1));
                  }
              }
              return job.complaint();
          }) == "");
}

TEST_CASE("capi: a thread waits for a request while another one is in the group",
          "[capi][multiple][nonblocking]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              Job job(me, 1);
              Sum started(job, 300, [] {});
              Sum blocking(job, 20, [] {});
              for (int round = 0; round < 50; ++round) {
                  const ucg_coll_params_t params = started.params(round);
                  ucg_coll_h request = nullptr;
                  job.require(ucg_coll_init(job.group(0), &params, &request), "init");
                  ucg_coll_start(request);
                  std::thread waiter([&] { job.require(ucg_coll_wait(request), "wait"); });
                  blocking.run(job.group(0), round);
                  waiter.join();
                  started.check(round);
                  ucg_coll_free(request);
              }
              return job.complaint();
          }) == "");
}

/// What one thread does on the groups that it has for itself; all ranks make the same calls.
void churn(Job& job, ucg_group_h group, unsigned seed) {
    std::minstd_rand draw(seed);
    Sum sum(job, 1 + seed * 500, [] {});
    std::vector<std::int64_t> all(job.size() * 40);
    for (int round = 0; round < 120; ++round) {
        ucg_coll_params_t params = {};
        void* memory = nullptr;
        switch (draw() % 5) {
        case 0: job.barrier(group); break;
        case 1:
            params.type = UCG_COLL_ALLGATHER;
            params.count = 40;
            params.element_bytes = sizeof(std::int64_t);
            params.flags = UCG_COLL_FLAG_IN_PLACE;
            params.recv_buffer = all.data();
            all[job.rank() * 40] = round + job.rank();
            job.require(ucg_coll_run(group, &params), "allgather");
            job.require(all[40] == round + 1 && all[0] == round, "what was gathered");
            break;
        case 2:
            job.require(ucg_mem_alloc(job.context(), 5000, &memory), "memory");
            job.require(ucg_mem_free(job.context(), memory), "free");
            break;
        default: sum.run(group, round); break;
        }
    }
}

TEST_CASE("capi: threads use groups of their own while others come and go", "[capi][multiple]") {
    const unsigned size = GENERATE(2U, 3U);
    CHECK(run_thread_ranks(size, [](ThreadRank& me) {
              Job job(me, 2);
              std::thread one([&] { churn(job, job.group(0), 1); });
              std::thread other([&] { churn(job, job.group(1), 2); });
              // A single thread makes the groups, so all ranks make them in one order.
              for (unsigned i = 0; i < 12; ++i) {
                  ucg_group_h group = job.make_group(me.group_params());
                  Sum sum(job, 10, [] {});
                  sum.run(group, i);
                  job.barrier(group);
                  ucg_group_destroy(group);
              }
              one.join();
              other.join();
              return job.complaint();
          }) == "");
}

/// A collective that one thread starts and another one completes.
struct Handed {
    explicit Handed(Job& job) : sum(job, 400, [] {}) {}

    Sum sum;
    ucg_coll_h request = nullptr;
    std::atomic<int> started = 0; ///< The last round in which it was started.
    std::atomic<int> ended = 0;
    std::atomic<int> told = 0; ///< How often the library called back.

    static void tell(void* self, ucg_coll_h /*coll*/, ucg_status_t /*status*/) {
        ++static_cast<Handed*>(self)->told;
    }
};

/// Completes it in one of three ways, by round: waits for it, asks about it, or drives the context
/// until the library has reported its end.
void complete(Job& job, Handed& handed, int round) {
    wait_for(handed.started, round);
    switch (round % 3) {
    case 0: job.require(ucg_coll_wait(handed.request), "wait"); break;
    case 1:
        while (ucg_coll_test(handed.request) == UCG_INPROGRESS) {
            std::this_thread::yield();
        }
        break;
    default:
        while (handed.told == 0) {
            ucg_context_progress(job.context());
        }
        break;
    }
    handed.sum.check(round);
    job.require(ucg_coll_free(handed.request), "free");
    handed.ended = round;
}

void start(Job& job, Handed& handed, int round) {
    const ucg_coll_params_t params = handed.sum.params(round);
    job.require(ucg_coll_init(job.group(0), &params, &handed.request), "init");
    handed.told = 0;
    const ucg_status_t status = round % 3 == 2
                                    ? ucg_coll_start_cb(handed.request, Handed::tell, &handed)
                                    : ucg_coll_start(handed.request);
    job.require(status == UCG_OK || status == UCG_INPROGRESS, "start");
    handed.told += status == UCG_OK ? 1 : 0; // In this case there is no callback.
    handed.started = round;
}

TEST_CASE("capi: requests of one group are completed by other threads than started them",
          "[capi][multiple][nonblocking]") {
    const unsigned size = GENERATE(2U, 3U);
    CHECK(run_thread_ranks(size, [](ThreadRank& me) {
              constexpr int kThreads = 3;
              constexpr int kRounds = 40;
              Job job(me, 1 + kThreads);
              std::array<Handed, kThreads> all = {Handed(job), Handed(job), Handed(job)};
              std::atomic<int> turn = 0;
              const auto body = [&](int index) {
                  Handed& mine = all[static_cast<std::size_t>(index)];
                  Handed& other = all[static_cast<std::size_t>((index + 1) % kThreads)];
                  Sum own(job, 9, [] {});
                  for (int round = 1; round <= kRounds; ++round) {
                      wait_for(mine.ended, round - 1);
                      // All ranks start them in one order.
                      wait_for(turn, (round - 1) * kThreads + index);
                      start(job, mine, round);
                      ++turn;
                      own.run(job.group(static_cast<std::size_t>(1 + index)), round);
                      complete(job, other, round);
                  }
              };
              std::vector<std::thread> threads;
              for (int index = 0; index < kThreads; ++index) {
                  threads.emplace_back(body, index);
              }
              for (std::thread& thread : threads) {
                  thread.join();
              }
              return job.complaint();
          }) == "");
}

/// One thread goes through all groups, and has to wait at the first one, whose lock the test holds.
/// Another one meanwhile polls and starts collectives in the second group.
void poll_meanwhile(Job& job) {
    ucg::capi::Context& context = *job.context();
    ucg_coll_params_t barrier = {};
    barrier.type = UCG_COLL_BARRIER;
    std::array<ucg_coll_h, 3> colls = {};
    for (std::size_t i = 0; i < colls.size(); ++i) {
        job.require(ucg_coll_init(job.group(i == 0 ? 0 : 1), &barrier, &colls[i]), "init");
    }
    int told = 0;
    unsigned looks = 0;
    job.require(ucg_coll_post(colls[1], &looks, &told) == UCG_INPROGRESS, "post the first");
    job.me().meeting->wait(); // The others join it.
    while (ucg_coll_test(colls[1]) == UCG_INPROGRESS) {
    }
    context.progress(ucg::capi::Busy::await); // Its end waits to be told now.
    job.require(ucg_coll_start(colls[0]) == UCG_INPROGRESS, "start where nobody comes");
    std::atomic<int> step = 0;
    std::thread goes_through;
    std::thread polls;
    {
        const ucg::capi::Group::Lock held = job.group(0)->group->lock();
        goes_through = std::thread([&] {
            step = 1;
            context.progress(ucg::capi::Busy::await);
        });
        polls = std::thread([&] {
            wait_for(step, 1);
            std::this_thread::sleep_for(std::chrono::milliseconds(50)); // It waits for the lock.
            ucg_completion_t end = {};
            job.require(ucg_context_poll(job.context(), &end, 1) == 1, "poll an end");
            job.require(ucg_context_poll(job.context(), &end, 1) == 0, "poll no end");
            job.require(ucg_coll_start(colls[2]) == UCG_INPROGRESS, "start another one");
            step = 2;
        });
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (step < 2 && std::chrono::steady_clock::now() < give_up) {
            std::this_thread::yield();
        }
        job.require(step == 2, "a poll or a start waits for a thread that goes through all groups");
    }
    goes_through.join();
    polls.join();
    job.me().meeting->wait(); // The others join the rest.
    job.require(ucg_coll_wait(colls[0]), "wait for the first");
    job.require(ucg_coll_wait(colls[2]), "wait for the last");
    for (ucg_coll_h coll : colls) {
        job.require(ucg_coll_free(coll), "free");
    }
}

TEST_CASE("capi: neither a poll nor a start waits for a thread that goes through all groups",
          "[capi][multiple][nonblocking]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              Job job(me, 2);
              if (me.rank == 0) {
                  poll_meanwhile(job);
              } else {
                  me.meeting->wait();
                  job.barrier(job.group(1));
                  me.meeting->wait();
                  job.barrier(job.group(0));
                  job.barrier(job.group(1));
              }
              return job.complaint();
          }) == "");
}

} // namespace
