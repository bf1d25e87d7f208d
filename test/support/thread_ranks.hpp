// Runs a test body in N threads of this process, as ranks of one job: each has a context of its
// own, and they find each other through an allgather in plain memory.
#pragma once

#include <barrier>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ucg/ucg.h"

namespace ucg::test {

/// The bootstrap of the ranks of one job: an allgather in plain memory.
class Meeting {
  public:
    explicit Meeting(unsigned size) : size_(size), barrier_(size), slots_(size) {}

    unsigned size() const { return size_; }
    void wait() { barrier_.arrive_and_wait(); }

    void allgather(unsigned rank, const void* send, void* receive, std::size_t bytes) {
        slots_[rank].assign(static_cast<const char*>(send), bytes);
        wait();
        for (unsigned i = 0; i < size_; ++i) {
            std::memcpy(static_cast<char*>(receive) + i * bytes, slots_[i].data(), bytes);
        }
        wait();
    }

  private:
    unsigned size_;
    std::barrier<> barrier_;
    std::vector<std::string> slots_;
};

/// What the body of a rank is called with.
struct ThreadRank {
    Meeting* meeting = nullptr;
    unsigned rank = 0;

    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        auto* me = static_cast<ThreadRank*>(self);
        me->meeting->allgather(me->rank, send, receive, bytes);
        return 0;
    }

    ucg_group_params_t group_params() {
        ucg_group_params_t params = {};
        params.rank = rank;
        params.size = meeting->size();
        params.oob_allgather = allgather;
        params.oob_arg = this;
        return params;
    }
};

/// Runs `body` on every rank. A body returns its complaint, or an empty string. Returns all
/// complaints, one line per rank, empty if there are none.
inline std::string run_thread_ranks(unsigned size,
                                    const std::function<std::string(ThreadRank&)>& body) {
    Meeting meeting(size);
    std::vector<std::thread> threads;
    std::vector<std::string> complaints(size);
    for (unsigned rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            ThreadRank me{&meeting, rank};
            complaints[rank] = body(me);
        });
    }
    std::string all;
    for (unsigned rank = 0; rank < size; ++rank) {
        threads[rank].join();
        if (!complaints[rank].empty()) {
            all += "rank " + std::to_string(rank) + ": " + complaints[rank] + "\n";
        }
    }
    return all;
}

/// An allreduce of `in`. Both vectors must be equally long and must outlive the call.
inline ucg_coll_params_t sum_of_ranks(const std::vector<std::int64_t>& in,
                                      std::vector<std::int64_t>& out) {
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = UCG_COLL_ALLREDUCE;
    params.element_bytes = sizeof(std::int64_t);
    params.count = in.size();
    params.send_buffer = in.data();
    params.recv_buffer = out.data();
    params.datatype = UCG_DT_INT64;
    params.op = UCG_OP_SUM;
    return params;
}

} // namespace ucg::test
