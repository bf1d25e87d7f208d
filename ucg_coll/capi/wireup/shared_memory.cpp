#include "ucg_coll/capi/wireup/shared_memory.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "ucg_coll/engine/engine.hpp"

namespace ucg::capi {

void SharedMemoryWireup::break_off() {
    if (Transport* made = offered_ != nullptr ? offered_.get() : given_; made != nullptr) {
        made->break_off();
    }
}

SharedMemoryWireup::~SharedMemoryWireup() {
    if (claimed_) {
        memory_.release_claim();
    }
}

void SharedMemoryWireup::tell(Hello& mine) {
    if (mine.shm_enabled == 0) {
        return;
    }
    const NodeMemory::HeapOrWish own = memory_.heap_or_wish(waits_);
    if (own.heap != nullptr) {
        mine.has_heap = 1;
        mine.heap = {.token = own.heap->address().token, .key = {}};
        mapped_ = own.heap->keep_mapped();
        guess(mine, *own.heap);
    } else {
        wished_ = own.wish.has_value();
        claimed_ = wished_ && waits_;
        mine.makes_heap = wished_ ? 0 : 1;
        mine.waits = waits_ ? 1 : 0;
        mine.heap = own.wish.value_or(shm::HeapWish());
        if (config_.cma_bytes_min() != ~std::uint64_t{0}) {
            mine.ticket = shm::own_access_ticket();
        }
    }
}

void SharedMemoryWireup::guess(Hello& mine, shm::Heap& heap) {
    const std::optional<transport::ShmOptions> options = latest_.of(peers_.count());
    if (!options) {
        return;
    }
    std::vector<Rank> ranks(peers_.count());
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    Result<std::unique_ptr<Transport>> made =
        Transport::create(heap, ranks, peers_.rank(), *options);
    if (!made.ok()) {
        return; // The offer that is not guessed says so.
    }
    offered_ = std::move(*made);
    mine.guess = offer_of(heap, *offered_);
    mine.guessed_options = digest(*options);
    mine.attached_heaps = heap.attached_digest();
    mine.guess.reaches_attached = memory_.reaches_attached() ? 1 : 0;
}

namespace {

/// The user is told nothing: the program asks again later.
Status heap_is_claimed() {
    return failure(Code::busy, "a rank makes the memory that it shares for another group just now");
}

} // namespace

Status SharedMemoryWireup::agree(const std::vector<Hello>& all) {
    for (const Hello& hello : all) {
        all_enable_ = all_enable_ && hello.shm_enabled != 0;
        staging_bytes_ = std::min(staging_bytes_, hello.staging_bytes);
        ring_room_ = std::min(ring_room_, hello.ring_bytes);
    }
    for (const Rank local : group_.local_ranks(peers_.rank())) {
        heaps_.push_back(all[static_cast<std::size_t>(local)].heap);
        tickets_.push_back(all[static_cast<std::size_t>(local)].ticket);
    }
    if (some_on_hosts(all, [](const Hello& hello) { return hello.makes_heap != 0; })) {
        offered_.reset();
        return heap_is_claimed();
    }
    all_tell_of_claims_ = some_on_hosts(
        all, [](const Hello& hello) { return hello.has_heap == 0 && hello.waits == 0; });
    look_at_guesses(all);
    return {};
}

template <typename Holds>
bool SharedMemoryWireup::some_on_hosts(const std::vector<Hello>& all, Holds holds) const {
    bool some = false;
    for (Rank rank = 0; all_enable_ && rank < group_.placement.rank_count(); ++rank) {
        some = some ||
               (holds(all[static_cast<std::size_t>(rank)]) && group_.local_ranks(rank).size() > 1);
    }
    return some;
}

/// Did all ranks guess, and rightly? Then the second exchange has taken place. A rank that knows
/// the heaps of the same processes as all others, each rank's own among them, knows the heaps of
/// all ranks.
void SharedMemoryWireup::look_at_guesses(const std::vector<Hello>& all) {
    const std::uint64_t right_options = digest(options());
    const bool right =
        !group_.several_hosts() && all_enable_ &&
        std::all_of(all.begin(), all.end(), [&](const Hello& hello) {
            return hello.guess.end == ShmEnd::made && hello.guessed_options == right_options;
        });
    if (!right) {
        offered_.reset();
        return;
    }
    for (const Hello& hello : all) {
        guesses_.push_back(hello.guess);
        guesses_.back().attached = hello.attached_heaps == all.front().attached_heaps ? 1 : 0;
    }
}

namespace {

/// Returns from which time on a copy by the kernel is slow: half-way from bytes that their owner
/// has had for some time to bytes that it has just written, if these take much longer.
shm::SlowPull slow_pull(const cost::CmaModel& cma) {
    constexpr double kMuchLonger = 1.6;
    return {2 * cma.fixed_ns, std::max((cma.per_byte_ns + cma.written_per_byte_ns) / 2,
                                       kMuchLonger * cma.per_byte_ns)};
}

} // namespace

/// Returns the options, in which all ranks of the group agree, except for the time-out.
transport::ShmOptions SharedMemoryWireup::options() const {
    transport::ShmOptions options;
    options.outstanding_max = engine::kOutstandingMax;
    const cost::MemoryModel& memory = group_.profile.memory;
    options.single_copy_bytes_min = transport::CopyLengths::never();
    if (memory.cma.permitted) {
        for (const MessageUse use : kMessageUses) {
            options.single_copy_bytes_min[use] =
                memory.single_copy_bytes_min(use, group_.ranks_per_cpu);
        }
        options.far_copy_bytes_min = memory.far_copies.cma_bytes_min;
        options.slow_pull = slow_pull(memory.cma);
        options.page_lookups = {memory.cma.lookup_per_byte_ns, cost::kSerialLookupBytesMin};
    }
    options.near_ns = cost::near_read_ns(memory);
    options.cooperative_copy_bytes_min = memory.cooperative.bytes_min;
    options.mapped_copy_bytes_min = memory.mapped_bytes_min(group_.ranks_per_cpu);
    // Where a rank has little address space left, all messages and shares go in shorter pieces.
    const std::uint64_t times_less = std::max(options.ring_bytes / ring_room_, std::uint64_t{1});
    options.slot_bytes_max = static_cast<std::uint32_t>(options.slot_bytes_max / times_less);
    options.flag_slot_bytes_max =
        static_cast<std::uint32_t>(options.flag_slot_bytes_max / times_less);
    options.ring_bytes = std::min(memory.ring_bytes(group_.ranks_per_cpu), ring_room_);
    options.own_processors = group_.ranks_per_cpu <= 1;
    // Slots have pages from the beginning: only groups that may have longer rings have more slots.
    if (options.own_processors && ring_room_ > transport::ShmOptions().ring_bytes) {
        options.flag_slot_depth = transport::flag_slot_depth(memory.flag_slots.depth);
    }
    options.cache_bytes = memory.cache(cost::Cache::l3).capacity_bytes;
    options.staging_bytes = staging_bytes_;
    options.attach_timeout = std::chrono::seconds(config_.timeout_seconds());
    return options;
}

namespace {

/// Has every rank mapped its peers' heaps already? Then nobody has to map any.
bool all_attached(const std::vector<ShmOffer>& offers) {
    return std::all_of(offers.begin(), offers.end(),
                       [](const ShmOffer& offered) { return offered.attached != 0; });
}

bool all_reach_attached(const std::vector<ShmOffer>& offers) {
    return std::all_of(offers.begin(), offers.end(),
                       [](const ShmOffer& offered) { return offered.reaches_attached != 0; });
}

std::vector<ShmEnd> ends_of(const std::vector<ShmOffer>& offers) {
    std::vector<ShmEnd> ends;
    ends.reserve(offers.size());
    for (const ShmOffer& offered : offers) {
        ends.push_back(offered.end);
    }
    return ends;
}

} // namespace

Task<Result<bool>> SharedMemoryWireup::connect() {
    if (!all_enable_) {
        co_return group_.placement.ranks_per_host_max() == 1;
    }
    Status status;
    if (all_tell_of_claims_) {
        status = co_await agree_on_claims();
        if (!status.ok()) {
            co_return status;
        }
    }
    Result<std::vector<ShmOffer>> offers = std::move(guesses_);
    if (offered_ == nullptr) {
        ShmOffer mine;
        offered_ = co_await make(mine, status);
        offers = co_await peers_.allgather(mine);
    }
    if (!offers.ok()) {
        co_return offers.status();
    }
    std::vector<ShmEnd> ends = ends_of(*offers);
    if (!all_made(ends)) {
        offered_.reset();
        co_return step_down(ends, status);
    }
    if (!all_attached(*offers)) {
        mapped_.reset(); // Who maps others for the first time lets go of those that have ended.
    }
    const ShmEnd attached = co_await attach(offered_.get(), *offers, status);
    ends.assign(1, attached);
    const Status agreed = co_await agree_on_ends(*offers, ends);
    if (!agreed.ok()) {
        co_return agreed;
    }
    if (!all_made(ends)) {
        offered_.reset();
        group_.kernel_copies = false;
        memory_.drop_unused(); // UCX may need the address space.
        co_return step_down(ends, status);
    }
    co_return settle(*offers);
}

/// Claims the heap that this rank wished for. Returns false if it cannot. A rank that is alone on
/// its host makes no heap.
bool SharedMemoryWireup::claim() {
    if (wished_ && !claimed_ && group_.local_ranks(peers_.rank()).size() > 1) {
        claimed_ = memory_.claim(heaps_[self()].token);
        return claimed_;
    }
    return true;
}

Task<Status> SharedMemoryWireup::agree_on_claims() {
    const std::uint32_t mine = claim() ? 1 : 0;
    const Result<std::vector<std::uint32_t>> all = co_await peers_.allgather(mine);
    if (!all.ok()) {
        co_return all.status();
    }
    const bool good =
        std::all_of(all->begin(), all->end(), [](std::uint32_t claimed) { return claimed != 0; });
    co_return good ? Status() : heap_is_claimed();
}

/// Gives the group its shared memory, since all ranks have connected. Always true.
bool SharedMemoryWireup::settle(const std::vector<ShmOffer>& offers) {
    if (offered_ != nullptr) {
        offered_->establish();
    }
    given_ = offered_.get();
    group_.shm = std::move(offered_);
    agree_on_staging(offers);
    return true;
}

/// Exchanges how far ranks came. `ends`: this rank's end, and afterwards those of all ranks. Where
/// nobody has to map any heap, all ranks come to the same end; if they have also said that they
/// reach all that they know, or the kernel copies nothing, there is no exchange, and `ends` stays.
Task<Status> SharedMemoryWireup::agree_on_ends(const std::vector<ShmOffer>& offers,
                                               std::vector<ShmEnd>& ends) {
    const bool reaches = reaches_all(ends.front());
    const bool may_copy = may_copy_by_kernel();
    group_.kernel_copies = may_copy && all_reach_attached(offers);
    if (all_attached(offers) && group_.kernel_copies == may_copy) {
        co_return Status();
    }
    const ShmOutcome mine = {ends.front(), reaches ? std::uint32_t{1} : 0};
    const Result<std::vector<ShmOutcome>> connected = co_await peers_.allgather(mine);
    if (!connected.ok()) {
        co_return connected.status();
    }
    ends.clear();
    group_.kernel_copies = may_copy;
    for (const ShmOutcome& outcome : *connected) {
        ends.push_back(outcome.end);
        group_.kernel_copies = group_.kernel_copies && outcome.reaches_all != 0;
    }
    co_return Status();
}

/// A rank that pauses has no deadline: it cannot know when the others go on.
SharedMemoryWireup::Clock::time_point SharedMemoryWireup::deadline() const {
    return waits_ ? Clock::now() + std::chrono::seconds(config_.timeout_seconds())
                  : Clock::time_point::max();
}

/// Returns the node heap that this process has told of. If there was none it is made, together with
/// those of the others on this host that wish for one.
Task<Result<shm::Heap*>> SharedMemoryWireup::heap() {
    const std::unique_ptr<shm::HeapJoin> join = memory_.join(heaps_, self(), deadline());
    if (join == nullptr) {
        co_return memory_.heap_of(heaps_[self()].token);
    }
    std::optional<Result<std::unique_ptr<shm::Heap>>> joined;
    while (!(joined = join->step(patience()))) {
        if (!waits_) {
            co_await peers_.pause();
        }
    }
    co_return memory_.take_joined(std::move(*joined));
}

/// Makes this rank's end of the shared memory; null, with nothing to offer, if it is alone on its
/// host.
Task<std::unique_ptr<transport::ShmTransport>> SharedMemoryWireup::make(ShmOffer& mine,
                                                                        Status& status) {
    const Ranks local_ranks = group_.local_ranks(peers_.rank());
    if (local_ranks.size() == 1) {
        mine.end = ShmEnd::made;
        mine.attached = 1;
        mine.reaches_attached = 1;
        co_return nullptr;
    }
    Result<shm::Heap*> heap = co_await this->heap();
    if (!heap.ok()) {
        status = heap.status();
        mine.end = status.code() == Code::unreachable ? ShmEnd::missing_peer : ShmEnd::failed;
        co_return nullptr;
    }
    Result<std::unique_ptr<Transport>> made =
        Transport::create(**heap, local_ranks, static_cast<Rank>(self()), options());
    if (!made.ok()) {
        status = made.status();
        co_return nullptr;
    }
    if (wished_) { // It is new.
        try_mates(**heap);
    }
    mine = offer_of(**heap, **made);
    mine.attached = knows_all_heaps(**heap) ? 1 : 0;
    mine.reaches_attached = memory_.reaches_attached() ? 1 : 0;
    co_return std::move(*made);
}

/// Tries what the kernel permits with the ranks that made their heaps together with this one. Those
/// heaps are attached from now on, and nobody has to map any; so that has to be known before all
/// ranks tell it one another.
void SharedMemoryWireup::try_mates(shm::Heap& heap) {
    const auto self = static_cast<std::size_t>(group_.placement.index_on_host(peers_.rank()));
    std::vector<shm::AccessTicket> mates;
    for (std::size_t i = 0; i < heaps_.size(); ++i) {
        if (i != self && heap.base_of(heaps_[i].token) != nullptr) {
            mates.push_back(tickets_[i]);
        }
    }
    if (!may_copy_by_kernel() || !transport::reaches_all(heap, mates)) {
        memory_.reaches_not_all();
    }
}

/// Who may not read others has told them nothing of himself.
bool SharedMemoryWireup::may_copy_by_kernel() const {
    return options().single_copy_bytes_min != transport::CopyLengths::never();
}

bool SharedMemoryWireup::knows_all_heaps(const shm::Heap& heap) const {
    return std::all_of(heaps_.begin(), heaps_.end(), [&](const shm::HeapWish& peer) {
        return heap.base_of(peer.token) != nullptr;
    });
}

Task<Status> SharedMemoryWireup::map(std::vector<shm::HeapAddress> heaps) {
    shm::HeapAttach attach(*memory_.heap_at_hand(), heaps, deadline());
    std::optional<Status> mapped;
    while (!(mapped = attach.step(patience()))) {
        if (!waits_) {
            co_await peers_.pause();
        }
    }
    co_return *mapped;
}

/// Maps the heaps of the ranks on this host. A rank that fails says so to those that wait for its
/// heap, which then need not wait for their time-out. One that only misses peers that are gone is
/// waited for by nobody, and further groups may share memory without those.
Task<ShmEnd> SharedMemoryWireup::attach(Transport* mine, const std::vector<ShmOffer>& offers,
                                        Status& status) {
    if (mine == nullptr) {
        co_return ShmEnd::made;
    }
    std::vector<transport::ShmAddress> addresses;
    std::vector<shm::HeapAddress> heaps;
    for (const Rank local : group_.local_ranks(peers_.rank())) {
        addresses.push_back(offers[static_cast<std::size_t>(local)].address);
        heaps.push_back(addresses.back().heap);
    }
    if (!all_attached(offers)) {
        status = co_await map(std::move(heaps));
    }
    if (status.ok()) {
        status = mine->connect(addresses);
    }
    if (status.ok()) {
        co_return ShmEnd::made;
    }
    if (status.code() == Code::unreachable) {
        co_return ShmEnd::missing_peer;
    }
    memory_.give_up();
    co_return ShmEnd::failed;
}

/// Does the kernel let this rank read and write the memory of all others on its host? Yes if it is
/// alone there.
bool SharedMemoryWireup::reaches_all(ShmEnd end) {
    const bool all = offered_ == nullptr || (end == ShmEnd::made && offered_->reaches_all());
    if (!all) {
        memory_.reaches_not_all();
    }
    return all;
}

/// Goes without shared memory: UCX carries everything. The user gets one line, from the first rank
/// that knows a cause. Always false.
bool SharedMemoryWireup::step_down(const std::vector<ShmEnd>& ends, const Status& status) {
    const auto first = std::min_element(ends.begin(), ends.end());
    if (peers_.is_first(static_cast<Rank>(first - ends.begin()), Once::step_down)) {
        log(LogLevel::warn, "{}: rank {} of {} has no shared memory: {}. {}", peers_.process_name(),
            peers_.rank(), peers_.count(), status.message(),
            config_.ucx_enabled()
                ? "All ranks use UCX instead, which is slower; UCG_TLS=ucx silences this"
                : "UCG_TLS allows nothing else");
    }
    return false;
}

/// Finds what each rank has for others of its host to read: the least that any rank of the group
/// has. A rank that is alone on its host has nothing to offer.
void SharedMemoryWireup::agree_on_staging(const std::vector<ShmOffer>& offers) {
    if (group_.placement.ranks_per_host_max() == 1) {
        return;
    }
    group_.staging_bytes = ~std::uint64_t{0};
    group_.flag_slot_bytes = ~std::uint64_t{0};
    group_.buffers_in_heap = true;
    for (Rank rank = 0; rank < group_.placement.rank_count(); ++rank) {
        if (group_.local_ranks(rank).size() > 1) {
            const ShmOffer& offer = offers[static_cast<std::size_t>(rank)];
            group_.staging_bytes = std::min(group_.staging_bytes, offer.address.staging_bytes);
            group_.flag_slot_bytes = std::min<std::uint64_t>(
                group_.flag_slot_bytes, offer.address.flag_slot_shape.slot_bytes);
            group_.buffers_in_heap = group_.buffers_in_heap && offer.serves_malloc != 0;
        }
    }
}

void SharedMemoryWireup::remember_options() {
    if (group_.shm != nullptr && !group_.several_hosts()) {
        latest_.set(peers_.count(), options());
    } else {
        latest_.forget(peers_.count());
    }
}

} // namespace ucg::capi
