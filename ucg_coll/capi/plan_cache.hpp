// Plans of one group, lowered and ready to run, by the call that needs them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/call.hpp"
#include "ucg_coll/capi/edge_rooms.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::capi {

class CachedPlan;

/// What one run of a plan takes, and a request holds while it exists.
struct PlanRun {
    explicit PlanRun(CachedPlan& owner);
    engine::Execution execution;
    UserOperator user;
    CachedPlan& plan;
    PlanRun* next = nullptr; ///< In one of the plan's lists, while nobody holds it.
};

/// A lowered plan with its idle runs. Most plans have one run; nonblocking calls that overlap have
/// more. Of those that nobody holds any more some are kept, however many were held at once.
class CachedPlan {
  public:
    CachedPlan(graph::Request request, std::string algorithm, engine::Program program);
    ~CachedPlan();
    CachedPlan(const CachedPlan&) = delete;
    CachedPlan& operator=(const CachedPlan&) = delete;

    /// Returns a run, which the caller holds until it calls give_back() or keep_failed().
    PlanRun* take() {
        PlanRun* run = idle_;
        if (run == nullptr) [[unlikely]] {
            return add_run();
        }
        idle_ = run->next;
        --idle_count_;
        return run;
    }
    void give_back(PlanRun* run) {
        if (idle_count_ == idle_max_) [[unlikely]] {
            drop_run(run);
            return;
        }
        run->next = idle_;
        idle_ = run;
        ++idle_count_;
    }
    /// Keeps a failed run as long as the plan, which is in use from then on: a transport may still
    /// hold its messages. Nobody gets it any more.
    void keep_failed(PlanRun* run) { run->next = std::exchange(failed_, run); }
    bool in_use() const { return idle_count_ != run_count_; }

    const graph::Request& request() const { return request_; }
    const std::string& algorithm() const { return algorithm_; }
    const engine::Program& program() const { return program_; }
    /// Returns how many bytes of memory it holds with all its runs, each of which has scratch of
    /// its own, roughly.
    std::uint64_t bytes() const;
    /// Does its request have lengths and places of single blocks? Such plans are large, and in many
    /// programs each serves one call only.
    bool has_vectors() const { return !request_.send.empty() || !request_.receive.empty(); }
    /// When it was last asked for, by the cache's count.
    std::uint64_t used() const { return used_; }
    void set_used(std::uint64_t when) { used_ = when; }

  private:
    /// The idle runs hold no more than these bytes, unless they are no more than so many: a loop
    /// may have a collective in progress while it prepares the next one.
    static constexpr std::uint64_t kIdleBytesMax = 16ULL << 20;
    static constexpr std::uint64_t kIdleLeast = 2;

    PlanRun* add_run();
    void drop_run(PlanRun* run);
    std::uint64_t bytes_of_run() const;

    graph::Request request_;
    std::string algorithm_;
    engine::Program program_;
    std::uint64_t used_ = 0;
    PlanRun* idle_ = nullptr;   ///< List of the runs that take() returns.
    PlanRun* failed_ = nullptr; ///< List of those that failed.
    std::size_t idle_count_ = 0;
    std::size_t run_count_ = 0; ///< Of all runs: idle, failed or held.
    std::size_t idle_max_;
};

/// A call that was understood before, with what a repetition of it needs in order to start.
struct KnownCall {
    CallShape shape;
    CachedPlan* plan = nullptr; ///< Null: no call was understood here.
    graph::Collective type = graph::Collective::barrier;
    bool by_shape = false; ///< Every call of this shape repeats it, whatever else the call brings.
    CallBinding binding;
    GivenVectors vectors;

    /// Does a call of the same shape bring the same vectors, and everything else that it needs?
    /// False for a call that lacks something: key_of() tells what.
    bool repeated_by(const ucg_coll_params_t& params) const {
        return (!binding.user || params.reduce != nullptr) &&
               vectors.repeated_by(params, binding.vectors);
    }
};

class PlanCache {
  public:
    /// Plans and lowers a request; the second argument is its hash.
    using Make =
        std::function<Result<std::unique_ptr<CachedPlan>>(const graph::Request&, std::uint64_t)>;

    /// `all_bytes`: what the plans of all groups of the process hold together; outlives this.
    PlanCache(Make make, std::atomic<std::uint64_t>& all_bytes)
        : make_(std::move(make)), all_bytes_(all_bytes) {}
    ~PlanCache() { all_bytes_.fetch_sub(counted_bytes_, std::memory_order_relaxed); }
    PlanCache(const PlanCache&) = delete;
    PlanCache& operator=(const PlanCache&) = delete;

    /// Returns the call that `params` repeats, if it is the latest of those that share its place;
    /// else null. Most often it is the very latest call. Valid until the next call of understand().
    const KnownCall* recall(const ucg_coll_params_t& params) {
        if (!given_.same(params)) {
            const CallShape shape = shape_of(params);
            KnownCall& known = recent_[place_of(shape)];
            if (!(known.shape == shape)) {
                return nullptr;
            }
            latest_ = &known;
            given_ = GivenValues(params);
        }
        const bool same =
            latest_->plan != nullptr && (latest_->by_shape || latest_->repeated_by(params));
        return same ? latest_ : nullptr;
    }

    /// Checks a call, finds or makes its plan, and keeps the call for recall().
    Result<const KnownCall*> understand(const ucg_coll_params_t& params, Rank rank,
                                        Rank rank_count);

    /// Sets how many bytes a block of an alltoallv counts as having in the mean, from now on.
    void set_mean_block(std::uint64_t bytes) {
        mean_block_ = bytes;
        forget_calls();
    }
    std::uint64_t mean_block() const { return mean_block_; }
    /// Sets the rooms that neighbourhood collectives use from now on.
    void set_rooms(AgreedRooms rooms);
    /// Adds to a request what ranks have agreed on.
    void add_agreed(graph::Request& request) const;

    /// Drops all plans that are not in use, if all plans take more than so many bytes.
    void trim(std::uint64_t bytes);

    /// Returns the plan that has this program; null if none has. Takes time in proportion to the
    /// number of plans.
    const CachedPlan* plan_of(const engine::Program& program) const;

    std::uint64_t planned() const { return planned_; }
    std::size_t size() const { return plans_.size(); }

  private:
    /// Beyond so many plans, or bytes of them in all groups, some of those that are not in use are
    /// dropped: programs whose sizes never repeat must not grow without bound, and a loop over a
    /// few more plans than these keeps most.
    static constexpr std::size_t kPlansMax = 512;
    static constexpr std::uint64_t kBytesMax = 256ULL << 20;
    /// Of plans with vectors that are not in use, so many are kept, and more as long as they hold
    /// no more bytes than these: a program may come with other vectors each time.
    static constexpr std::size_t kVectorPlansKept = 8;
    static constexpr std::uint64_t kVectorBytesMax = 4ULL << 20;
    static constexpr unsigned kRecentBitsMax = 6;

    /// Returns the place of a shape in recent_, by the uppermost bits of its hash.
    std::size_t place_of(const CallShape& shape) const {
        return shape.hash() >> 1U >> (63 - recent_bits_);
    }
    KnownCall& place_for(const CallShape& shape);
    void grow_recent();
    Result<CachedPlan*> find(const CallKey& key, const ucg_coll_params_t& params, Rank rank,
                             Rank rank_count);
    Result<CachedPlan*> add(const graph::Request& request, std::uint64_t hash);
    /// Returns how many bytes all plans hold. Takes time in proportion to their number.
    std::uint64_t bytes() const;
    std::uint64_t count_all_bytes();
    bool drop_some();
    void drop_with_vectors();
    void drop_by_rooms();
    template <typename Drop>
    void drop_idle(Drop drop);
    void forget_calls() {
        std::fill(recent_.begin(), recent_.end(), KnownCall());
        latest_ = recent_.data();
    }

    Make make_;
    std::atomic<std::uint64_t>& all_bytes_;
    std::uint64_t counted_bytes_ = 0; ///< What all_bytes_ has of this cache.
    std::uint64_t uses_ = 0;          ///< Counts what CachedPlan::used() tells.
    /// Logarithm of the number of places. Programs have thousands of groups, most of which serve
    /// one or two calls: there are as many places as it takes to keep these apart.
    unsigned recent_bits_ = 0;
    std::vector<KnownCall> recent_ = std::vector<KnownCall>(1);
    const KnownCall* latest_ = recent_.data(); ///< That was recalled or understood last ...
    GivenValues given_;                        ///< ... and its values.
    std::unordered_multimap<std::uint64_t, std::unique_ptr<CachedPlan>> plans_; // By request hash.
    unsigned passed_ = 0; ///< Counts the idle plans that drop_some() has looked at.
    std::uint64_t planned_ = 0;
    std::uint64_t mean_block_ = 0;
    AgreedRooms rooms_;
    std::uint64_t rooms_hash_ = 0;
};

} // namespace ucg::capi
