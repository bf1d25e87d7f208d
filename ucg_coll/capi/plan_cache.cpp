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

template <typename Element>
std::uint64_t bytes_of(const std::vector<Element>& elements) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the elements may be pointers.
    return elements.capacity() * sizeof(Element);
}

std::uint64_t bytes_of(const graph::Blocks& blocks) {
    return bytes_of(blocks.bytes) + bytes_of(blocks.offsets) + bytes_of(blocks.peers);
}

std::uint64_t bytes_of(const graph::LoweredSchedule& lowered) {
    return bytes_of(lowered.steps) + bytes_of(lowered.waits) + bytes_of(lowered.messages) +
           bytes_of(lowered.addresses) + bytes_of(lowered.flag_slots) + bytes_of(lowered.repeats);
}

std::uint64_t bytes_of(const engine::HelpedProgram& helped) {
    std::uint64_t sum = bytes_of(helped.parts) + bytes_of(helped.whose) + bytes_of(helped.repeats);
    for (const graph::Schedule& schedule : helped.schedules) {
        sum += sizeof(schedule) + bytes_of(schedule.ops) + bytes_of(schedule.dependencies) +
               bytes_of(schedule.operands) + bytes_of(schedule.repeats);
    }
    for (const transport::HelpedPart& part : helped.parts) {
        sum += bytes_of(part.named);
    }
    return sum;
}

} // namespace

PlanRun::PlanRun(CachedPlan& owner) : execution(owner.program()), plan(owner) {}

CachedPlan::CachedPlan(graph::Request request, std::string algorithm, engine::Program program)
    : request_(std::move(request)), algorithm_(std::move(algorithm)), program_(std::move(program)),
      idle_max_(std::max(kIdleBytesMax / bytes_of_run(), kIdleLeast)) {}

CachedPlan::~CachedPlan() {
    for (PlanRun* list : {idle_, failed_}) {
        while (list != nullptr) {
            delete std::exchange(list, list->next);
        }
    }
}

PlanRun* CachedPlan::add_run() {
    auto* const run = new PlanRun(*this);
    ++run_count_;
    return run;
}

/// No transport has messages of a run that has ended without a failure.
void CachedPlan::drop_run(PlanRun* run) {
    delete run;
    --run_count_;
}

std::uint64_t CachedPlan::bytes_of_run() const {
    return sizeof(PlanRun) + program_.scratch_bytes + bytes_of(program_.slots) +
           (program_.helped.help != nullptr ? program_.helped.run_bytes() : 0) +
           program_.lowered.flag_slots.size() * sizeof(const std::byte*); // Where they lie.
}

std::uint64_t CachedPlan::bytes() const {
    return std::max<std::size_t>(run_count_, 1) * bytes_of_run() + sizeof(*this) +
           bytes_of(request_.send) + bytes_of(request_.receive) + bytes_of(request_.rooms) +
           bytes_of(program_.lowered) + bytes_of(program_.slots) + bytes_of(program_.parts) +
           bytes_of(program_.helped);
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
    if (known.plan != nullptr) {
        known.plan->set_used(++uses_); // By repetitions that came to it without a look for it.
    }
    (*plan)->set_used(++uses_);
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
        static_cast<void>(count_all_bytes());
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
    if (!request.send.empty() || !request.receive.empty()) {
        drop_with_vectors();
    }
    while ((plans_.size() >= kPlansMax || count_all_bytes() >= kBytesMax) && drop_some()) {
    }
    Result<std::unique_ptr<CachedPlan>> made = make_(request, hash);
    if (!made.ok()) {
        return made.status();
    }
    ++planned_;
    return plans_.emplace(hash, std::move(*made))->second.get();
}

/// Returns how many bytes the plans of all groups hold, by the latest count of each.
std::uint64_t PlanCache::count_all_bytes() {
    const std::uint64_t before = std::exchange(counted_bytes_, bytes());
    const std::uint64_t more = counted_bytes_ - before; // Modulo 2^64: it may be less.
    return all_bytes_.fetch_add(more, std::memory_order_relaxed) + more;
}

/// Makes room for one more plan with vectors where there are too many: of those that are not in
/// use it drops the ones that were not asked for longest, until half of the bytes are left. What a
/// known call repeats without a look for its plan was just asked for, as far as one can know.
void PlanCache::drop_with_vectors() {
    for (const KnownCall& known : recent_) {
        if (known.plan != nullptr) {
            known.plan->set_used(++uses_);
        }
    }
    std::vector<CachedPlan*> idle;
    std::uint64_t sum = 0;
    for (const auto& [hash, plan] : plans_) {
        if (plan->has_vectors() && !plan->in_use()) {
            idle.push_back(plan.get());
            sum += plan->bytes();
        }
    }
    if (idle.size() < kVectorPlansKept || sum <= kVectorBytesMax) {
        return;
    }
    std::sort(idle.begin(), idle.end(), [](const CachedPlan* left, const CachedPlan* right) {
        return left->used() > right->used();
    });
    std::size_t kept = 0;
    for (sum = 0; kept < idle.size(); ++kept) {
        sum += idle[kept]->bytes();
        if (kept >= kVectorPlansKept - 1 && sum > kVectorBytesMax / 2) {
            break;
        }
    }
    const std::uint64_t earliest = idle[kept - 1]->used();
    drop_idle([&](const CachedPlan& plan) { return plan.has_vectors() && plan.used() < earliest; });
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
