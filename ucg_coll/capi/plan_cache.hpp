// Plans of one group, lowered and ready to run, by the call that needs them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/call.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::capi {

class CachedPlan;

/// One run of a plan: what a request holds while it exists.
struct PlanRun {
    explicit PlanRun(CachedPlan& owner);
    engine::Execution execution;
    UserOperator user;
    CachedPlan& plan;
};

/// A lowered plan with its idle runs. Most have one; nonblocking calls that overlap have more.
class CachedPlan {
  public:
    CachedPlan(graph::Request request, std::string algorithm, engine::Program program)
        : request_(std::move(request)), algorithm_(std::move(algorithm)),
          program_(std::move(program)) {}

    PlanRun* take();
    void give_back(PlanRun* run) { idle_.push_back(run); }
    bool in_use() const { return idle_.size() != runs_.size(); }

    const graph::Request& request() const { return request_; }
    const std::string& algorithm() const { return algorithm_; }
    const engine::Program& program() const { return program_; }
    /// Memory that it holds, roughly.
    std::uint64_t bytes() const;

  private:
    graph::Request request_;
    std::string algorithm_;
    engine::Program program_;
    std::vector<std::unique_ptr<PlanRun>> runs_;
    std::vector<PlanRun*> idle_;
};

class PlanCache {
  public:
    using Make = std::function<Result<std::unique_ptr<CachedPlan>>(const graph::Request&)>;

    /// `make` plans and lowers a request.
    explicit PlanCache(Make make) : make_(std::move(make)) {}

    /// The plan of a call. The latest call of its key is found without allocating.
    Result<CachedPlan*> find(const CallKey& key, const ucg_coll_params_t& params, Rank rank,
                             Rank rank_count) {
        Slot& slot = recent_[key.hash() % kRecent];
        if (slot.plan != nullptr && slot.key == key &&
            (!has_vectors(key) || has_same_vectors(slot.plan->request(), params, key, rank))) {
            return slot.plan;
        }
        return find_slowly(key, params, rank, rank_count);
    }

    std::uint64_t planned() const { return planned_; }
    std::size_t size() const { return plans_.size(); }

  private:
    /// Beyond these the plans that are not in use are dropped: programs whose sizes never repeat
    /// must not grow without bound.
    static constexpr std::size_t kPlansMax = 512;
    static constexpr std::uint64_t kBytesMax = 256ULL << 20;
    static constexpr std::size_t kRecent = 64;

    struct Slot {
        CallKey key;
        CachedPlan* plan = nullptr;
    };

    Result<CachedPlan*> find_slowly(const CallKey& key, const ucg_coll_params_t& params, Rank rank,
                                    Rank rank_count);
    Result<CachedPlan*> add(const graph::Request& request, std::uint64_t hash);
    void drop_unused();

    Make make_;
    Slot recent_[kRecent];
    std::unordered_multimap<std::uint64_t, std::unique_ptr<CachedPlan>> plans_; // By request hash.
    std::uint64_t bytes_ = 0;
    std::uint64_t planned_ = 0;
};

} // namespace ucg::capi
