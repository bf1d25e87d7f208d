// Every collective of the C API among ranks that are threads of this process, over real shared
// memory or real UCX and without MPI. ThreadSanitizer checks it as well.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "test/ranks/capi_cases.hpp"
#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::CollectiveCase;
using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

using Settings = std::vector<std::pair<const char*, const char*>>;

/// A rank's context and group, which are destroyed at the end of the scope.
class Job {
  public:
    Job(ThreadRank& me, const Settings& settings) : me_(me) {
        ucg_config_h config = nullptr;
        require(ucg_config_read(&config), "read the configuration");
        for (const auto& [name, value] : settings) {
            require(ucg_config_modify(config, name, value), name);
        }
        require(ucg_context_create(nullptr, config, &context_), "create the context");
        ucg_config_release(config);
        status_ = add_group(groups_.emplace_back());
    }
    ~Job() {
        me_.meeting->wait(); // No rank leaves while a peer still waits for it.
        for (ucg_group_h group : groups_) {
            if (group != nullptr) {
                ucg_group_destroy(group);
            }
        }
        ucg_context_disconnect(context_);
        me_.meeting->wait();
        ucg_context_destroy(context_);
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    ucg_status_t add_group(ucg_group_h& group) {
        const ucg_group_params_t params = me_.group_params();
        return ucg_group_create(context_, &params, &group);
    }
    void add_another_group() { require(add_group(groups_.emplace_back()), "another group"); }

    ucg_status_t status() const { return status_; }
    ucg_context_h context() const { return context_; }
    ucg_group_h group(std::size_t index = 0) const { return groups_[index]; }
    std::size_t group_count() const { return groups_.size(); }
    const std::string& complaint() const { return complaint_; }

    void require(ucg_status_t status, const char* what) {
        if (status != UCG_OK && complaint_.empty()) {
            complaint_ = std::string(what) + ": " + ucg_status_string(status);
        }
    }
    void require(bool right, const std::string& what) {
        if (!right && complaint_.empty()) {
            complaint_ = what;
        }
    }

  private:
    ThreadRank& me_;
    ucg_context_h context_ = nullptr;
    std::vector<ucg_group_h> groups_;
    ucg_status_t status_ = UCG_OK;
    std::string complaint_;
};

std::string run_all_collectives(ThreadRank& me, const Settings& settings,
                                const std::vector<std::size_t>& counts) {
    Job job(me, settings);
    job.require(job.status(), "make the group");
    for (const std::size_t count : counts) {
        for (int type = 0; type < UCG_COLL_LAST && job.complaint().empty(); ++type) {
            for (const bool in_place : {false, true}) {
                CollectiveCase c{me.rank, me.meeting->size(), (me.meeting->size() - 1) / 2, count,
                                 in_place};
                fill(c, static_cast<ucg_coll_type_t>(type));
                const std::string what = std::string(ucg_coll_type_string(c.params.type)) + " of " +
                                         std::to_string(count) + (in_place ? " in place" : "");
                job.require(ucg_coll_run(job.group(), &c.params), what.c_str());
                job.require(right(c), what + ": wrong result");
            }
        }
    }
    return job.complaint();
}

TEST_CASE("capi: every collective over shared memory", "[capi][shm]") {
    const unsigned size = GENERATE(1U, 2U, 3U, 4U, 5U, 8U);
    CHECK(run_thread_ranks(size, [](ThreadRank& me) {
              return run_all_collectives(me, {{"TLS", "shm"}}, {0, 1, 7, 1000, 20000});
          }) == "");
}

TEST_CASE("capi: every collective over UCX", "[capi][ucx]") {
    const unsigned size = GENERATE(2U, 3U, 4U);
    CHECK(run_thread_ranks(size, [](ThreadRank& me) {
              return run_all_collectives(me, {{"TLS", "ucx"}}, {0, 1, 7, 1000, 20000});
          }) == "");
}

/// While it lives, it collects what this process writes to standard error.
class StandardError {
  public:
    StandardError() : file_(memfd_create("said", 0)), before_(dup(STDERR_FILENO)) {
        dup2(file_, STDERR_FILENO);
    }
    ~StandardError() {
        dup2(before_, STDERR_FILENO);
        close(before_);
        close(file_);
    }
    StandardError(const StandardError&) = delete;
    StandardError& operator=(const StandardError&) = delete;

    unsigned lines_with(std::string_view words) const {
        std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), ' ');
        const ssize_t length = pread(file_, text.data(), text.size(), 0);
        text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
        unsigned count = 0;
        for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) {
            ++count;
        }
        return count;
    }

  private:
    int file_;
    int before_;
};

TEST_CASE("capi: every plan passes the proof before it is used", "[capi][verify]") {
    const unsigned size = GENERATE(2U, 5U);
    const StandardError said;
    CHECK(run_thread_ranks(size, [](ThreadRank& me) {
              return run_all_collectives(me, {{"TLS", "shm"}, {"VERIFY", "y"}}, {0, 1, 37});
          }) == "");
    // Where a rank does not know other ranks' blocks it assumes them, and says so once for each
    // collective.
    CHECK(said.lines_with("UCG_VERIFY: ") == 5);
    for (const char* collective :
         {"allgatherv", "alltoallv", "gatherv", "scatterv", "neighbor_alltoallv"}) {
        CHECK(said.lines_with(std::string("UCG_VERIFY: ") + collective + ": ") == 1);
    }
}

TEST_CASE("capi: nonblocking collectives overlap on two groups", "[capi][nonblocking]") {
    CHECK(
        run_thread_ranks(3, [](ThreadRank& me) {
            Job job(me, {{"TLS", "shm"}});
            job.add_another_group();
            // These are more than the window of outstanding collectives.
            constexpr int kCount = 100;
            std::vector<CollectiveCase> cases;
            for (int i = 0; i < kCount; ++i) {
                CollectiveCase c{me.rank, 3, 1, static_cast<std::size_t>(1 + i * 13 % 700), false};
                cases.push_back(c);
            }
            std::vector<ucg_coll_h> requests(kCount);
            for (int i = 0; i < kCount; ++i) {
                fill(cases[i], i % 2 == 0 ? UCG_COLL_ALLREDUCE : UCG_COLL_BCAST);
                job.require(ucg_coll_init(job.group(i % 3 == 0), &cases[i].params, &requests[i]),
                            "init");
                const ucg_status_t started = ucg_coll_start(requests[i]);
                job.require(started == UCG_OK || started == UCG_INPROGRESS, "start");
            }
            // Each rank waits in its own order.
            for (int i = 0; i < kCount; ++i) {
                const int which = (i * 37 + static_cast<int>(me.rank) * 11) % kCount;
                job.require(ucg_coll_wait(requests[which]), "wait");
                job.require(right(cases[which]), "wrong result");
                ucg_coll_free(requests[which]);
            }
            return job.complaint();
        }) == "");
}

TEST_CASE("capi: a prepared collective runs again with new data", "[capi][persistent]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              Job job(me, {{"TLS", "shm"}});
              CollectiveCase c{me.rank, 2, 0, 5, false};
              fill(c, UCG_COLL_ALLREDUCE);
              ucg_coll_h request = nullptr;
              job.require(ucg_coll_init(job.group(), &c.params, &request), "init");
              for (int round = 0; round < 50; ++round) {
                  std::fill(c.send.begin(), c.send.end(), round + static_cast<int>(me.rank));
                  ucg_coll_start(request);
                  ucg_status_t status = UCG_INPROGRESS;
                  while (status == UCG_INPROGRESS) {
                      status = ucg_coll_test(request);
                  }
                  job.require(status, "test");
                  job.require(c.receive[4] == 2 * round + 1, "wrong result");
              }
              ucg_coll_free(request);
              return job.complaint();
          }) == "");
}

void concatenate(void*, const void* left, const void* right, void* target, std::size_t count) {
    // Affine maps x -> a x + b modulo 2^32 under composition, which is associative and does not
    // commute.
    using Map = std::array<std::uint32_t, 2>;
    for (std::size_t i = 0; i < count; ++i) {
        const Map f = static_cast<const Map*>(left)[i];
        const Map g = static_cast<const Map*>(right)[i];
        static_cast<Map*>(target)[i] = {f[0] * g[0], f[0] * g[1] + f[1]};
    }
}

TEST_CASE("capi: a caller's operator sees its operands in rank order", "[capi][user-op]") {
    const unsigned size = GENERATE(2U, 3U, 5U, 6U, 7U);
    CHECK(run_thread_ranks(size, [&](ThreadRank& me) {
              Job job(me, {{"TLS", "shm"}});
              using Map = std::array<std::uint32_t, 2>;
              const auto map_of = [](unsigned rank, unsigned i) {
                  return Map{2 * rank + 3 + i, rank * 5 + 1};
              };
              for (const unsigned count : {1U, 9U, 500U}) {
                  std::vector<Map> send, receive(count), expected;
                  for (unsigned i = 0; i < count; ++i) {
                      send.push_back(map_of(me.rank, i));
                      Map total = map_of(0, i);
                      for (unsigned rank = 1; rank < size; ++rank) {
                          const Map next = map_of(rank, i);
                          concatenate(nullptr, &total, &next, &total, 1);
                      }
                      expected.push_back(total);
                  }
                  ucg_coll_params_t params = {};
                  params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
                  params.type = UCG_COLL_ALLREDUCE;
                  params.flags = UCG_COLL_FLAG_NON_COMMUTATIVE;
                  params.send_buffer = send.data();
                  params.recv_buffer = receive.data();
                  params.count = count;
                  params.element_bytes = sizeof(Map);
                  params.op = UCG_OP_USER;
                  params.reduce = concatenate;
                  job.require(ucg_coll_run(job.group(), &params), "allreduce");
                  job.require(receive == expected, "wrong result");
              }
              return job.complaint();
          }) == "");
}

TEST_CASE("capi: without room for shared memory all ranks step down to UCX", "[capi][step-down]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              // Only one rank has too little memory, and both must make the same decision.
              Job job(me, {{"HEAP_SIZE", me.rank == 1 ? "4k" : "1G"}});
              job.require(job.status(), "make the group");
              ucg_group_attr_t attr = {};
              attr.field_mask = ~std::uint64_t{0};
              job.require(ucg_group_query(job.group(), &attr), "query");
              job.require(attr.uses_shm == 0 && attr.uses_ucx == 1, "not stepped down");
              CollectiveCase c{me.rank, 2, 0, 100, false};
              fill(c, UCG_COLL_ALLREDUCE);
              job.require(ucg_coll_run(job.group(), &c.params), "allreduce");
              job.require(right(c), "wrong result");
              return job.complaint();
          }) == "");
}

TEST_CASE("capi: a group that nothing can connect fails on all ranks", "[capi][errors]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              Job job(me, {{"HEAP_SIZE", "4k"}, {"TLS", "shm"}});
              job.require(job.status() == UCG_ERR_UNREACHABLE,
                          std::string("got ") + ucg_status_string(job.status()));
              return job.complaint();
          }) == "");
}

TEST_CASE("capi: ranks with different settings are told what differs", "[capi][errors]") {
    const auto ranks_with = [](const char* name, const char* first, const char* second,
                               ucg_status_t expected) {
        return run_thread_ranks(2, [=](ThreadRank& me) {
            Job job(me, {{name, me.rank == 0 ? first : second}});
            job.require(job.status() == expected,
                        std::string("got ") + ucg_status_string(job.status()));
            return job.complaint();
        });
    };
    CHECK(ranks_with("ALLREDUCE", "ring", "", UCG_ERR_DISAGREEMENT) == "");
    CHECK(ranks_with("HELP_PEERS", "auto", "never", UCG_ERR_DISAGREEMENT) == "");
    CHECK(ranks_with("REPRODUCIBLE", "n", "placement", UCG_ERR_DISAGREEMENT) == "");
    CHECK(ranks_with("ALLREDUCE", "0-4k:ring", "0-4096:ring", UCG_OK) == "");
    // Of these the ranks agree on one value for all, or each follows its own.
    CHECK(ranks_with("CMA", "n", "64k", UCG_OK) == "");
    CHECK(ranks_with("STAGING", "0", "1M", UCG_OK) == "");
    CHECK(ranks_with("HEAP_SIZE", "128M", "1G", UCG_OK) == "");
    CHECK(ranks_with("SHORT_LANE", "n", "y", UCG_OK) == "");
    CHECK(ranks_with("VERIFY", "n", "y", UCG_OK) == "");
    CHECK(ranks_with("TLS", "shm", "shm,ucx", UCG_OK) == "");
    CHECK(ranks_with("TLS", "shm", "ucx", UCG_ERR_UNREACHABLE) == "");
}

TEST_CASE("capi: ranks that name different cost profiles are told so", "[capi][errors]") {
    // A file with the defaults would be the same profile, so the file has a change.
    std::string path = "/tmp/ucg-profile-XXXXXX";
    const int file = ::mkstemp(path.data());
    REQUIRE(file >= 0);
    const std::string_view text = "version = 1\n"
                                  "[compute]\n"
                                  "copy_per_byte_ns = 1\n"
                                  "reduce_per_byte_ns = 1\n"
                                  "reduce_fixed_ns = 1\n";
    REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(file);
    const auto status_with = [&](const std::string& first, const std::string& second,
                                 ucg_status_t expected) {
        return run_thread_ranks(2, [&](ThreadRank& me) {
            Job job(me, {{"PROFILE", (me.rank == 0 ? first : second).c_str()}});
            job.require(job.status() == expected,
                        std::string("got ") + ucg_status_string(job.status()));
            return job.complaint();
        });
    };
    CHECK(status_with(path, path, UCG_OK) == "");
    CHECK(status_with("builtin", "builtin", UCG_OK) == "");
    CHECK(status_with(path, "builtin", UCG_ERR_DISAGREEMENT) == "");
    ::unlink(path.c_str());
}

TEST_CASE("capi: an algorithm that cannot serve gives way with a warning", "[capi][algorithm]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) {
              Job job(me, {{"ALLREDUCE", "no_such_algorithm"}, {"TLS", "shm"}});
              CollectiveCase c{me.rank, 2, 0, 3, false};
              fill(c, UCG_COLL_ALLREDUCE);
              job.require(ucg_coll_run(job.group(), &c.params), "allreduce");
              job.require(right(c), "wrong result");
              return job.complaint();
          }) == "");
}

/// Puts buffers of a filled case where the other ranks map them: bit 0 of `which` stands for the
/// send buffer, bit 1 for the receive buffer. Before and afterwards the buffers are the case's
/// vectors.
class InHeap {
  public:
    InHeap(ucg_context_h context, CollectiveCase& c, unsigned which) : context_(context), case_(c) {
        if ((which & 1) != 0) {
            case_.params.send_buffer = send_ = copy_of(c.send);
        }
        if ((which & 2) != 0) {
            case_.params.recv_buffer = receive_ = copy_of(c.receive);
        }
    }
    ~InHeap() {
        fetch();
        ucg_mem_free(context_, send_);
        ucg_mem_free(context_, receive_);
    }
    InHeap(const InHeap&) = delete;
    InHeap& operator=(const InHeap&) = delete;

    /// Copies the result to where right() looks.
    void fetch() {
        if (receive_ != nullptr) {
            std::memcpy(case_.receive.data(), receive_, bytes(case_.receive));
        }
    }

  private:
    static std::size_t bytes(const std::vector<std::int64_t>& vector) {
        return vector.size() * sizeof(std::int64_t);
    }
    void* copy_of(const std::vector<std::int64_t>& vector) {
        void* memory = nullptr;
        if (ucg_mem_alloc(context_, std::max<std::size_t>(bytes(vector), 1), &memory) == UCG_OK) {
            std::copy(vector.begin(), vector.end(), static_cast<std::int64_t*>(memory));
        }
        return memory;
    }

    ucg_context_h context_;
    CollectiveCase& case_;
    void* send_ = nullptr;
    void* receive_ = nullptr;
};

/// The algorithms in which ranks read one another's memory, on one socket.
Settings reading_peers(const char* allreduce, const char* bcast, const char* reduce,
                       const char* staging) {
    return {
        {"TLS", "shm"},           {"ALLREDUCE", allreduce},   {"BCAST", bcast},
        {"REDUCE", reduce},       {"ALLGATHER", "peer_read"}, {"GATHER", "peer_read"},
        {"SCATTER", "peer_read"}, {"ALLTOALL", "peer_read"},  {"REDUCE_SCATTER_BLOCK", "peer_read"},
        {"STAGING", staging},     {"LOG_LEVEL", "error"}};
}

constexpr ucg_coll_type_t kReadingPeers[] = {
    UCG_COLL_ALLREDUCE, UCG_COLL_BCAST,   UCG_COLL_REDUCE,   UCG_COLL_ALLGATHER,
    UCG_COLL_GATHER,    UCG_COLL_SCATTER, UCG_COLL_ALLTOALL, UCG_COLL_REDUCE_SCATTER_BLOCK,
};

std::string run_reading_peers(ThreadRank& me, const Settings& settings) {
    Job job(me, settings);
    job.require(job.status(), "make the group");
    unsigned turn = 0; // Which buffers are in the heap differs between ranks and calls.
    for (const std::size_t count : {1, 7, 1000, 20000}) {
        for (const ucg_coll_type_t type : kReadingPeers) {
            for (const bool in_place : {false, true}) {
                CollectiveCase c{me.rank, me.meeting->size(), (me.meeting->size() - 1) / 2, count,
                                 in_place};
                fill(c, type);
                InHeap heap(job.context(), c, turn++ / 3 + me.rank);
                const std::string what = std::string(ucg_coll_type_string(type)) + " of " +
                                         std::to_string(count) + (in_place ? " in place" : "");
                job.require(ucg_coll_run(job.group(), &c.params), what.c_str());
                heap.fetch();
                job.require(right(c), what + ": wrong result");
            }
        }
    }
    return job.complaint();
}

TEST_CASE("capi: ranks read one another's memory, in place or by way of staging buffers",
          "[capi][shm][peer]") {
    using Pair = std::pair<const char*, const char*>;
    const unsigned size = GENERATE(2U, 3U, 7U);
    const auto [allreduce, staging] =
        GENERATE(Pair("all_read", "4k"), Pair("tiled_naive", "64k"), Pair("tiled_cyclic", "4k"),
                 Pair("tiled_exchange", "64k"), Pair("numa_tree", "1M"), Pair("numa_tree", "4k"),
                 Pair("numa_dissemination", "64k"), Pair("numa_dissemination", "8k"));
    const char* const reduce = allreduce[0] == 't' ? "tiled" : "numa_tree";
    INFO(size << " ranks, " << allreduce << ", staging " << staging);
    const Settings settings = reading_peers(allreduce, "one_stage", reduce, staging);
    CHECK(run_thread_ranks(size, [&](ThreadRank& me) { return run_reading_peers(me, settings); }) ==
          "");
}

std::string run_overlapping(ThreadRank& me, const Settings& settings) {
    constexpr std::size_t kGroups = 3;
    // In each group this is more than the window of outstanding collectives.
    constexpr unsigned kCalls = 3 * 70;
    Job job(me, settings);
    while (job.group_count() < kGroups) {
        job.add_another_group();
    }
    std::deque<CollectiveCase> cases;
    std::deque<InHeap> heap;
    std::vector<ucg_coll_h> requests(kCalls);
    for (unsigned i = 0; i < kCalls && job.complaint().empty(); ++i) {
        const unsigned size = me.meeting->size();
        CollectiveCase& c =
            cases.emplace_back(me.rank, size, i % size, 1 + i * 131 % 1900, i % 2 == 0);
        fill(c, kReadingPeers[i / kGroups % std::size(kReadingPeers)]);
        heap.emplace_back(job.context(), c, i / 5 + me.rank);
        job.require(ucg_coll_init(job.group(i % kGroups), &c.params, &requests[i]), "init");
        const ucg_status_t started = ucg_coll_start(requests[i]);
        job.require(started == UCG_OK || started == UCG_INPROGRESS, "start");
    }
    for (unsigned i = 0; i < kCalls && job.complaint().empty(); ++i) {
        // The rank has an order of its own.
        const unsigned which = (i * 37 + me.rank * 11) % kCalls;
        job.require(ucg_coll_wait(requests[which]), "wait");
        heap[which].fetch();
        job.require(right(cases[which]), "call " + std::to_string(which) + ": wrong result");
        ucg_coll_free(requests[which]);
    }
    me.meeting->wait(); // From here on no peer reads what is freed.
    return job.complaint();
}

TEST_CASE("capi: collectives that read peers overlap, on several groups",
          "[capi][nonblocking][peer]") {
    const unsigned size = GENERATE(2U, 5U);
    const char* const staging = GENERATE("0", "4k", "64k");
    CHECK(run_thread_ranks(size, [&](ThreadRank& me) {
              return run_overlapping(me,
                                     reading_peers("tiled_cyclic", "one_stage", "tiled", staging));
          }) == "");
}

} // namespace
