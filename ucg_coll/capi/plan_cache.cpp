#include "ucg_coll/capi/plan_cache.hpp"

#include <algorithm>
#include <utility>

namespace ucg::capi {
namespace {

std::uint64_t hash_of(const graph::Request& request, const CallKey& key) {
    return Hash()
        .value(key.hash())
        .values<std::uint64_t>(request.send.bytes)
        .values<std::uint64_t>(request.send.offsets)
        .values<Rank>(request.send.peers)
        .values<std::uint64_t>(request.receive.bytes)
        .values<std::uint64_t>(request.receive.offsets)
        .values<Rank>(request.receive.peers)
        .digest();
}

} // namespace

PlanRun::PlanRun(CachedPlan& owner) : execution(owner.program()), plan(owner) {}

PlanRun* CachedPlan::add_run() {
    return runs_.emplace_back(std::make_unique<PlanRun>(*this)).get();
}

bool CachedPlan::in_use() const {
    std::size_t idle = 0;
    for (const PlanRun* run = idle_; run != nullptr; run = run->next_idle) {
        ++idle;
    }
    return idle != runs_.size();
}

std::uint64_t CachedPlan::bytes() const {
    const graph::LoweredSchedule& lowered = program_.lowered;
    const std::uint64_t run_bytes =
        program_.scratch_bytes + program_.slots.size() * sizeof(transport::Message);
    return std::max<std::size_t>(runs_.size(), 1) * run_bytes +
           lowered.steps.size() * sizeof(graph::Step) +
           lowered.addresses.size() * sizeof(graph::Address) +
           lowered.messages.size() * sizeof(graph::MessagePlan);
}

Result<const KnownCall*> PlanCache::understand(const ucg_coll_params_t& params, Rank rank,
                                               Rank rank_count) {
    Result<CallKey> key = key_of(params, rank, rank_count);
    if (!key.ok()) {
        return key.status();
    }
    const Result<CachedPlan*> plan = find(*key, params, rank, rank_count);
    if (!plan.ok()) {
        return plan.status();
    }
    const CallShape shape = shape_of(params);
    const CallBinding binding = binding_of(params, *key, rank, rank_count);
    const bool by_shape = !binding.user && !binding.vectors.send && !binding.vectors.receive;
    KnownCall call = {shape,    *plan,   key->collective,
                      by_shape, binding, GivenVectors(params, binding.vectors, rank_count)};
    KnownCall& known = place_for(shape);
    known = std::move(call);
    latest_ = &known;
    given_ = GivenValues(params);
    return &known;
}

/// Returns a place that no call of another shape has, as long as there may be more places. Known
/// calls may move: the caller has to set latest_ anew.
KnownCall& PlanCache::place_for(const CallShape& shape) {
    const auto taken = [&] {
        const KnownCall& known = recent_[place_of(shape)];
        return known.plan != nullptr && !(known.shape == shape);
    };
    while (recent_bits_ < kRecentBitsMax && taken()) {
        grow_recent();
    }
    return recent_[place_of(shape)];
}

/// Makes twice as many places: each call has one of the two that its own becomes.
void PlanCache::grow_recent() {
    std::vector<KnownCall> more(2 * recent_.size());
    ++recent_bits_;
    for (KnownCall& known : recent_) {
        if (known.plan != nullptr) {
            more[place_of(known.shape)] = std::move(known);
        }
    }
    recent_ = std::move(more);
    static const KnownCall kNone;
    latest_ = &kNone; // The call that it was has moved. This is none, until there is a new one.
}

Result<CachedPlan*> PlanCache::find(const CallKey& key, const ucg_coll_params_t& params, Rank rank,
                                    Rank rank_count) {
    Result<graph::Request> request = request_of(params, key, rank, rank_count);
    if (!request.ok()) {
        return request.status();
    }
    add_agreed(*request);
    const std::uint64_t hash = hash_of(*request, key) ^ rooms_hash_;
    CachedPlan* plan = nullptr;
    const auto [first, last] = plans_.equal_range(hash);
    for (auto entry = first; entry != last && plan == nullptr; ++entry) {
        if (entry->second->request() == *request) {
            plan = entry->second.get();
        }
    }
    if (plan == nullptr) {
        Result<CachedPlan*> added = add(*request, hash);
        if (!added.ok()) {
            return added.status();
        }
        plan = *added;
    }
    return plan;
}

void PlanCache::add_agreed(graph::Request& request) const {
    if (request.collective == graph::Collective::alltoallv) {
        request.bytes = mean_block_;
    }
    if (request.collective == graph::Collective::neighbor_alltoallv) {
        request.rooms = rooms_.rooms;
        request.crossing = rooms_.crossing;
    }
}

void PlanCache::set_rooms(AgreedRooms rooms) {
    if (rooms == rooms_) {
        return;
    }
    drop_by_rooms();
    rooms_ = std::move(rooms);
    Hash hash;
    for (const graph::EdgeRoom& room : rooms_.rooms) {
        hash.value(static_cast<std::uint64_t>(room.from))
            .value(static_cast<std::uint64_t>(room.to))
            .value(room.bytes);
    }
    rooms_hash_ = rooms_.rooms.empty() ? 0 : hash.digest();
    forget_calls();
}

/// Drops the plans that are not in use and that `drop` is true of.
template <typename Drop>
void PlanCache::drop_idle(Drop drop) {
    forget_calls();
    for (auto entry = plans_.begin(); entry != plans_.end();) {
        if (entry->second->in_use() || !drop(*entry->second)) {
            ++entry;
        } else {
            entry = plans_.erase(entry);
        }
    }
}

/// Drops plans by rooms that are no more: nothing asks for them.
void PlanCache::drop_by_rooms() {
    drop_idle([](const CachedPlan& plan) { return !plan.request().rooms.empty(); });
}

void PlanCache::trim(std::uint64_t bytes) {
    if (this->bytes() > bytes) {
        drop_idle([](const CachedPlan& /*plan*/) { return true; });
    }
}

const CachedPlan* PlanCache::plan_of(const engine::Program& program) const {
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& entry) {
        return &entry.second->program() == &program;
    });
    return found == plans_.end() ? nullptr : found->second.get();
}

std::uint64_t PlanCache::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [hash, plan] : plans_) {
        sum += plan->bytes();
    }
    return sum;
}

Result<CachedPlan*> PlanCache::add(const graph::Request& request, std::uint64_t hash) {
    while ((plans_.size() >= kPlansMax || bytes() >= kBytesMax) && drop_some()) {
    }
    Result<std::unique_ptr<CachedPlan>> made = make_(request, hash);
    if (!made.ok()) {
        return made.status();
    }
    ++planned_;
    return plans_.emplace(hash, std::move(*made))->second.get();
}

/// Drops every eighth of the plans that are idle, going on where the last time ended: in a loop
/// over more plans than the cache holds, those that were used last would be the wrong ones to keep.
/// Returns false if none is idle.
bool PlanCache::drop_some() {
    constexpr unsigned kOneOf = 8;
    bool any_idle = false;
    drop_idle([&](const CachedPlan& /*plan*/) {
        any_idle = true;
        return ++passed_ % kOneOf == 0;
    });
    return any_idle;
}

} // namespace ucg::capi
