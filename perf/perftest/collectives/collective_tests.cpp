#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <optional>
#include <sched.h>

#include "perf/perftest/collectives/board.hpp"
#include "perf/perftest/collectives/collective_data.hpp"
#include "perf/perftest/collectives/collective_group.hpp"
#include "perf/perftest/collectives/collective_name.hpp"
#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/test.hpp"
#include "shm/segment.hpp"
#include "ucg_coll/base/ascii.hpp"

namespace ucg::perftest {

namespace {

constexpr int kCheckedCalls = 3; ///< The first one plans; the others find its plan.

/// A buffer from malloc() or from UCG's heap. Every byte has been written, so that all pages exist.
class Buffer {
  public:
    Buffer() = default;
    ~Buffer() {
        if (context_ != nullptr) {
            ucg_mem_free(context_, data_);
        } else {
            std::free(data_);
        }
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    /// `context` is null for malloc().
    Status allocate(ucg_context_h context, std::uint64_t bytes) {
        bytes_ = bytes;
        if (bytes == 0) {
            return {};
        }
        const std::uint64_t page = shm::page_bytes();
        if (context != nullptr) {
            if (Status status = status_of(ucg_mem_alloc(context, bytes, &data_),
                                          "--buffers heap: no memory from ucg_mem_alloc()");
                !status.ok()) {
                return status;
            }
            context_ = context;
        } else if (bytes < UINT64_MAX - page) {
            data_ = std::aligned_alloc(page, (bytes + page - 1) / page * page);
        }
        if (data_ == nullptr) {
            return failure(Code::out_of_memory, "no memory for a buffer of {} bytes", bytes);
        }
        std::ranges::fill(bytes_of(), std::byte{0x5a});
        return {};
    }

    std::span<std::byte> bytes_of() { return {static_cast<std::byte*>(data_), bytes_}; }
    void* data() { return data_; }

  private:
    ucg_context_h context_ = nullptr;
    void* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// Counts and displacements of the v-variants, for equal blocks that lie end to end.
struct Vectors {
    std::vector<std::uint64_t> counts;
    std::vector<std::int64_t> displacements;

    void fill(Rank size, std::uint64_t count) {
        for (Rank rank = 0; rank < size; ++rank) {
            counts.push_back(count);
            displacements.push_back(static_cast<std::int64_t>(count) * rank);
        }
    }
};

/// The neighbours in a ring: the first block goes down and comes from above, the second one the
/// other way.
struct Ring {
    std::array<int, 2> destinations = {};
    std::array<int, 2> sources = {};
    ucg_neighbors_t neighbors = {destinations.data(), sources.data(), 2, 2};

    Ring() = default;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    void fill(Rank rank, Rank size) {
        const Rank above = (rank + 1) % size;
        const Rank below = (rank + size - 1) % size;
        destinations = {below, above};
        sources = {above, below};
    }
};

class CollectiveTest : public Test {
  public:
    CollectiveTest(Runtime& runtime, const Parameters& parameters, CollectiveName name,
                   CollectiveData data)
        : runtime_(runtime), parameters_(parameters), name_(name), data_(data) {}

    ~CollectiveTest() override {
        if (prepared_ != nullptr) {
            ucg_coll_free(prepared_);
        }
    }

    /// Connects and allocates. Collective.
    Status open() {
        if (Status status = open_group(); !status.ok()) {
            return status;
        }
        if (Status status = allocate(); !status.ok()) {
            return status;
        }
        const Result<std::string> algorithm =
            group_->algorithm_of(call_, parameters_.collective.algorithm);
        if (!algorithm.ok()) {
            return failure(algorithm.status().code(), "{} of {} B on {} ranks: {}",
                           data_.shape.name, data_.block_bytes(), data_.size,
                           algorithm.status().message());
        }
        details_ = fmt::format("algorithm {}", *algorithm);
        if (name_.form == CollectiveForm::persistent) {
            if (Status status = told(ucg_coll_init(group_->group(), &call_, &prepared_));
                !status.ok()) {
                return status;
            }
        }
        return parameters_.check ? check() : Status();
    }

    Status run(Recorder& recorder) override {
        const bool separated = parameters_.collective.mode == CollectiveMode::separated;
        const std::uint64_t bytes = data_.block_bytes();
        while (!recorder.done()) {
            if (separated) {
                if (Status status = start_together(); !status.ok()) {
                    return status;
                }
                recorder.skip();
            }
            if (const ucg_status_t status = call(); status != UCG_OK) [[unlikely]] {
                return told(status);
            }
            if (separated) {
                recorder.update_alone(bytes, reading_);
            } else {
                recorder.update(1, bytes);
            }
        }
        return {};
    }

    void progress() override { group_->progress(); }
    std::string details() const override { return details_; }

  private:
    Status told(ucg_status_t status) const {
        return status_of(status, fmt::format("{} of {} B", data_.shape.name, data_.block_bytes()));
    }

    Status open_group() {
        const std::string variable = ascii_upper(data_.shape.name);
        Result<std::unique_ptr<CollectiveGroup>> group =
            CollectiveGroup::create(runtime_, variable, parameters_.collective.algorithm);
        if (!group.ok()) {
            return group.status();
        }
        group_ = std::move(*group);
        Result<std::unique_ptr<Board>> board = Board::create(runtime_);
        if (!board.ok()) {
            return board.status();
        }
        board_ = std::move(*board);
        if (board_ == nullptr) {
            // This group is separate, so that its messages do not mix with those that are measured.
            Result<std::unique_ptr<CollectiveGroup>> starter =
                CollectiveGroup::create(runtime_, "", "");
            if (!starter.ok()) {
                return starter.status();
            }
            starter_ = std::move(*starter);
        }
        return {};
    }

    /// Allocates the buffers. All ranks fail if one has no memory, since the others would wait for
    /// it.
    Status allocate() {
        const Rank rank = runtime_.rank();
        ucg_context_h heap = parameters_.collective.heap ? group_->context() : nullptr;
        const std::uint64_t sent = data_.send_bytes(rank);
        const std::uint64_t received = data_.receive_bytes(rank);
        Status status = send_.allocate(heap, data_.in_place ? 0 : sent);
        if (status.ok()) {
            status = receive_.allocate(heap, data_.in_place ? std::max(sent, received) : received);
        }
        if (status = agree(runtime_, status); !status.ok()) {
            return status;
        }
        describe_call();
        data_.fill(rank, send_.bytes_of());
        fill_receive_buffer();
        return {};
    }

    void describe_call() {
        call_.type = data_.shape.type;
        call_.root = static_cast<std::uint32_t>(data_.root);
        call_.send_buffer = send_.data();
        call_.flags = data_.in_place ? UCG_COLL_FLAG_IN_PLACE : 0;
        call_.recv_buffer = receive_.data();
        call_.count = data_.count;
        call_.element_bytes = element_bytes(data_.datatype);
        call_.datatype = data_.datatype;
        if (data_.shape.reduces) {
            call_.field_mask |= UCG_COLL_PARAM_FIELD_REDUCE;
            call_.op = data_.operation;
        }
        if (data_.shape.vectors) {
            vectors_.fill(std::max<Rank>(data_.size, 2), data_.count); // At least two neighbours.
            call_.field_mask |= UCG_COLL_PARAM_FIELD_VECTORS;
            call_.send_counts = vectors_.counts.data();
            call_.recv_counts = vectors_.counts.data();
            call_.send_displs = vectors_.displacements.data();
            call_.recv_displs = vectors_.displacements.data();
        }
        if (data_.shape.type == UCG_COLL_NEIGHBOR_ALLTOALLV) {
            ring_.fill(runtime_.rank(), data_.size);
            call_.field_mask |= UCG_COLL_PARAM_FIELD_NEIGHBORS;
            call_.neighbors = &ring_.neighbors;
        }
    }

    /// Fills the receive buffer of those that send from there: bcast's root, and all in place.
    void fill_receive_buffer() {
        const Rank rank = runtime_.rank();
        if (data_.shape.type == UCG_COLL_BCAST && rank == data_.root) {
            data_.fill(data_.root, receive_.bytes_of());
        } else if (data_.in_place) {
            data_.fill(
                rank, receive_.bytes_of().subspan(data_.place_bytes(rank), data_.send_bytes(rank)));
        }
    }

    ucg_status_t call() {
        switch (name_.form) {
        case CollectiveForm::blocking: return ucg_coll_run(group_->group(), &call_);
        case CollectiveForm::nonblocking: return call_nonblocking();
        case CollectiveForm::persistent: break;
        }
        const ucg_status_t started = ucg_coll_start(prepared_);
        return started == UCG_INPROGRESS ? ucg_coll_wait(prepared_) : started;
    }

    ucg_status_t call_nonblocking() {
        ucg_coll_h request = nullptr;
        ucg_status_t status = ucg_coll_init(group_->group(), &call_, &request);
        if (status != UCG_OK) {
            return status;
        }
        status = ucg_coll_start(request);
        while (status == UCG_INPROGRESS) {
            status = ucg_coll_test(request);
            // ucg_coll_wait() yields here, too.
            if (status == UCG_INPROGRESS && board_ != nullptr && board_->yields()) {
                ::sched_yield();
            }
        }
        ucg_coll_free(request);
        return status;
    }

    /// Returns what the rank has received, which in place may be the first part of what it sent.
    std::span<const std::byte> result_bytes() {
        return receive_.bytes_of().first(data_.receive_bytes(runtime_.rank()));
    }

    Status start_together() {
        if (board_ != nullptr) {
            board_->start_together(progress_);
            return {};
        }
        ucg_coll_params_t barrier = {};
        barrier.type = UCG_COLL_BARRIER;
        return told(ucg_coll_run(starter_->group(), &barrier));
    }

    Status check() {
        const Rank rank = runtime_.rank();
        for (int turn = 0; turn < kCheckedCalls; ++turn) {
            std::ranges::fill(receive_.bytes_of(), std::byte{0x5a});
            fill_receive_buffer();
            if (Status status = start_together(); !status.ok()) {
                return status;
            }
            if (Status status = told(call()); !status.ok()) {
                return status;
            }
            Status result;
            if (const auto wrong = data_.check(rank, result_bytes())) {
                result = failure(Code::disagreement,
                                 "{} of {} B: element {} on rank {} is wrong: expected the bits "
                                 "{:#x} of {}, found {:#x}",
                                 parameters_.test, data_.block_bytes(), wrong->element, rank,
                                 wrong->expected, name(data_.datatype), wrong->found);
            }
            if (result = agree(runtime_, result); !result.ok()) {
                return result;
            }
        }
        return {};
    }

    Runtime& runtime_;
    Parameters parameters_;
    CollectiveName name_;
    CollectiveData data_;
    std::unique_ptr<CollectiveGroup> group_;
    std::unique_ptr<Board> board_;             ///< Null where not all ranks are on one host,
    std::unique_ptr<CollectiveGroup> starter_; ///< which is where this is not null.
    std::function<void()> progress_ = [this] { group_->progress(); };
    Buffer send_;
    Buffer receive_;
    Vectors vectors_;
    Ring ring_;
    ucg_coll_params_t call_ = {};
    ucg_coll_h prepared_ = nullptr;
    /// What a reading of the clock takes that waits for what precedes it. Back to back the errors
    /// of two readings that do not wait cancel; of a call alone the processor may begin to wait for
    /// the peers' data only after it has read the clock.
    Ticks reading_ = static_cast<Ticks>(timer_overhead().median_ns * 1e-9 * ticks_per_second());
    std::string details_;
};

Result<CollectiveData> data_of(const Parameters& parameters, const CollectiveShape& shape,
                               Rank size) {
    const CollectiveParameters& asked = parameters.collective;
    const std::optional<ucg_datatype_t> datatype = find_datatype(asked.datatype);
    const std::optional<ucg_op_t> operation = find_operation(asked.operation);
    if (!datatype || !operation) {
        return failure(Code::invalid_argument, "no datatype {} or no operator {}", asked.datatype,
                       asked.operation);
    }
    const std::uint64_t width = element_bytes(*datatype);
    if (parameters.sizes.size() != 1) {
        return failure(Code::invalid_argument,
                       "{}: a collective has one size; several for one test after another are "
                       "--sizes",
                       parameters.test);
    }
    if (parameters.bytes() % width != 0) {
        return failure(Code::invalid_argument,
                       "{}: {} bytes are not a whole number of {}; choose another --datatype",
                       parameters.test, parameters.bytes(), asked.datatype);
    }
    if (shape.reduces && !applies(*operation, *datatype)) {
        return failure(Code::invalid_argument, "--op {} does not apply to {}", asked.operation,
                       asked.datatype);
    }
    if (shape.rooted && asked.root >= size) {
        return failure(Code::invalid_argument, "--root {}: there are {} ranks", asked.root, size);
    }
    const bool has_data = shape.type != UCG_COLL_BARRIER;
    if (asked.in_place &&
        (shape.rooted || !has_data || shape.type == UCG_COLL_NEIGHBOR_ALLTOALLV)) {
        return failure(Code::invalid_argument,
                       "{}: --in-place is for collectives without a root that have data, and not "
                       "for those of neighbours",
                       parameters.test);
    }
    return CollectiveData{shape,
                          size,
                          shape.rooted ? asked.root : 0,
                          has_data ? parameters.bytes() / width : 0,
                          *datatype,
                          *operation,
                          asked.in_place};
}

Result<std::unique_ptr<Test>> open_collective(Runtime& runtime, const Parameters& parameters) {
    const std::optional<CollectiveName> name = parse_collective_name(parameters.test);
    UCG_ASSERT(name.has_value());
    const Result<CollectiveData> data = data_of(parameters, *name->shape, runtime.size());
    if (!data.ok()) {
        return data.status();
    }
    auto test = std::make_unique<CollectiveTest>(runtime, parameters, *name, *data);
    if (Status status = test->open(); !status.ok()) {
        return status;
    }
    return std::unique_ptr<Test>(std::move(test));
}

std::string_view description_of(CollectiveForm form) {
    switch (form) {
    case CollectiveForm::blocking: return "";
    case CollectiveForm::nonblocking: return ", started and tested until done";
    case CollectiveForm::persistent: break;
    }
    return ", prepared once";
}

} // namespace

std::span<const TestInfo> collective_tests() {
    static const auto tests = [] {
        static std::deque<std::string> texts; // string_views point at these.
        std::vector<TestInfo> made;
        for (const CollectiveShape& shape : collective_shapes()) {
            for (const CollectiveForm form : kCollectiveForms) {
                const std::string& name =
                    texts.emplace_back(fmt::format("{}{}", shape.name, suffix_of(form)));
                const std::string& description =
                    texts.emplace_back(fmt::format("{}{}", shape.name, description_of(form)));
                made.push_back({name, description, TestKind::collective, open_collective});
            }
        }
        return made;
    }();
    return tests;
}

} // namespace ucg::perftest
