#include "perf/perftest/launch/runtime_pmix.hpp"

#include <atomic>
#include <cstdlib>
#include <pmix.h>
#include <sched.h>

namespace ucg::perftest {

namespace {

Status status_of(pmix_status_t status, std::string_view what) {
    return status == PMIX_SUCCESS
               ? Status()
               : failure(status == PMIX_ERR_LOST_CONNECTION ? Code::unreachable : Code::io_error,
                         "PMIx: {}: {}", what, PMIx_Error_string(status));
}

/// A fence, whose end a thread of PMIx reports.
struct Fence {
    std::atomic<bool> done = false;
    pmix_status_t status = PMIX_SUCCESS;

    static void finish(pmix_status_t status, void* fence) {
        auto* self = static_cast<Fence*>(fence);
        self->status = status;
        self->done.store(true, std::memory_order_release);
    }
};

class PmixRuntime : public Runtime {
  public:
    PmixRuntime(const pmix_proc_t& self, Rank size) : self_(self), size_(size) {}
    ~PmixRuntime() override { PMIx_Finalize(nullptr, 0); }
    PmixRuntime(const PmixRuntime&) = delete;
    PmixRuntime& operator=(const PmixRuntime&) = delete;

    Rank rank() const override { return static_cast<Rank>(self_.rank); }
    Rank size() const override { return size_; }

    /// Puts `mine` under a key that is new each time, commits, calls a fence that collects, and
    /// gets.
    Result<std::vector<std::string>> exchange(std::string_view mine,
                                              const std::function<void()>& progress) override {
        const std::string key = fmt::format("ucg_perftest.{}", turn_++);
        if (Status status = put(key, mine); !status.ok()) {
            return status;
        }
        if (Status status = fence(progress); !status.ok()) {
            return status;
        }
        std::vector<std::string> all;
        for (Rank rank = 0; rank < size_; ++rank) {
            Result<std::string> text = get(key, rank);
            if (!text.ok()) {
                return text.status();
            }
            all.push_back(std::move(*text));
        }
        return all;
    }

  private:
    static Status put(const std::string& key, std::string_view mine) {
        std::string bytes(mine);
        bytes.push_back('\0'); // An object without bytes would be missing.
        pmix_value_t value;
        PMIX_VALUE_CONSTRUCT(&value);
        value.type = PMIX_BYTE_OBJECT;
        value.data.bo.bytes = bytes.data();
        value.data.bo.size = bytes.size();
        if (Status status = status_of(PMIx_Put(PMIX_GLOBAL, key.c_str(), &value), "put");
            !status.ok()) {
            return status;
        }
        return status_of(PMIx_Commit(), "commit");
    }

    Status fence(const std::function<void()>& progress) const {
        pmix_proc_t all;
        PMIX_LOAD_PROCID(&all, self_.nspace, PMIX_RANK_WILDCARD);
        bool collects = true;
        pmix_info_t info;
        PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collects, PMIX_BOOL);
        pmix_status_t status = PMIX_SUCCESS;
        if (!progress) {
            status = PMIx_Fence(&all, 1, &info, 1);
        } else {
            Fence fence;
            status = PMIx_Fence_nb(&all, 1, &info, 1, Fence::finish, &fence);
            while (status == PMIX_SUCCESS && !fence.done.load(std::memory_order_acquire)) {
                progress();
                ::sched_yield(); // Threads of the launcher and of PMIx need processors, too.
            }
            status = status == PMIX_SUCCESS ? fence.status : status;
        }
        PMIX_INFO_DESTRUCT(&info);
        return status_of(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status, "fence");
    }

    Result<std::string> get(const std::string& key, Rank rank) const {
        pmix_proc_t from;
        PMIX_LOAD_PROCID(&from, self_.nspace, static_cast<pmix_rank_t>(rank));
        pmix_value_t* value = nullptr;
        const pmix_status_t status = PMIx_Get(&from, key.c_str(), nullptr, 0, &value);
        if (status != PMIX_SUCCESS) {
            return status_of(status, fmt::format("get from rank {}", rank));
        }
        std::string bytes;
        if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size > 0) {
            bytes.assign(value->data.bo.bytes, value->data.bo.size - 1);
        }
        PMIX_VALUE_RELEASE(value);
        return bytes;
    }

    pmix_proc_t self_;
    Rank size_;
    std::uint64_t turn_ = 0;
};

} // namespace

bool pmix_is_there() {
    return std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr;
}

Result<std::unique_ptr<Runtime>> join_by_pmix() {
    pmix_proc_t self;
    if (Status status =
            status_of(PMIx_Init(&self, nullptr, 0), "this process has no launcher that offers it");
        !status.ok()) {
        return status;
    }
    pmix_proc_t job;
    PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
    pmix_value_t* size = nullptr;
    if (Status status =
            status_of(PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &size), "number of processes");
        !status.ok()) {
        PMIx_Finalize(nullptr, 0);
        return status;
    }
    const auto count = static_cast<Rank>(size->data.uint32);
    PMIX_VALUE_RELEASE(size);
    return std::unique_ptr<Runtime>(new PmixRuntime(self, count));
}

} // namespace ucg::perftest
