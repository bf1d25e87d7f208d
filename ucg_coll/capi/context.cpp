#include "ucg_coll/capi/context.hpp"

#include <algorithm>
#include <bit>
#include <thread>
#include <unistd.h>
#include <utility>

#include "ucg_coll/capi/awaited.hpp"
#include "ucg_coll/capi/single_copies.hpp"
#include "ucg_coll/capi/ucx_library.hpp"

namespace ucg::capi {
namespace {

/// Returns how many of the host's CPUs this job may use: all that are online, unless a control
/// group grants fewer. The own affinity mask says nothing of the other processes'.
unsigned host_cpus(const Context::ProcessFacts& facts) {
    return std::min(facts.grant.cpus, static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

topo::Place place_at_hand(const std::vector<std::uint32_t>& cpus) {
    const Result<topo::Place> place = topo::place_of_binding(cpus);
    if (!place.ok()) {
        log(LogLevel::info, "{}: the places of ranks within a host are not known",
            place.status().message());
    }
    return place.ok() ? *place : topo::Place{.known = topo::Distance::host};
}

} // namespace

Context::Context(const ucg_context_params_t* params, Config config, LoadedProfile profile,
                 LoadedPhases phases)
    : config_(std::move(config)), common_digests_(config_.common_digests()),
      profile_(std::move(profile)), phases_(std::move(phases)), params_(params),
      remarks_(params_.name, threaded()), host_(params_.progress, params_.progress_arg),
      neighbours_(params_.host_yields), process_facts_{shm::read_host_facts(), topo::usable_cpus(),
                                                       topo::cpu_grant()},
      waiting_makers_(threaded()), maker_(threaded()),
      planners_(config_, phases_, remarks_, threaded()), sleep_(threaded()),
      completions_(threaded()), groups_(sleep_, completions_, threaded()),
      memory_mutex_(threaded()) {
    set_log_level(config_.log_level());
    if (params_.local_processes > 0) {
        host_load_ = {params_.local_processes, host_cpus(process_facts_)};
    }
}

Context::~Context() {
    const shm::NapCounts naps = sleep_.sleeper()->counts();
    log(LogLevel::info, "{}: waits slept {} times, {} of them until a peer rang", name(),
        naps.rung + naps.timed_out + naps.first_timed_out + naps.disturbed, naps.rung);
}

const LoadedTopology& Context::topology() {
    if (!topology_) {
        topology_ = load_topology(config_.topology());
    }
    return *topology_;
}

shm::Heap* Context::heap_at_hand() {
    const std::lock_guard lock(memory_mutex_);
    return heap_.get();
}

Context::HeapOrWish Context::heap_or_wish(bool claims) {
    const std::lock_guard lock(memory_mutex_);
    if (heap_ != nullptr || heap_claimed_) {
        return {.heap = heap_.get(), .wish = {}};
    }
    heap_claimed_ = claims;
    if (!door_.has_value()) {
        if (Result<shm::Door> door = shm::Door::open(); door.ok()) {
            door_ = std::move(*door);
        } else {
            return {.heap = nullptr, .wish = shm::HeapWish()}; // Told when the heap is made.
        }
    }
    const Result<shm::HeapWish> wish = shm::Heap::wish(heap_options(), *door_);
    return {.heap = nullptr,
            .wish = wish.ok() ? *wish : shm::HeapWish{.token = door_->token(), .key = {}}};
}

bool Context::claim_heap(const shm::Token& wish) {
    const std::lock_guard lock(memory_mutex_);
    const shm::Token now = door_.has_value() ? door_->token() : shm::Token();
    if (heap_ != nullptr || heap_claimed_ || now != wish) {
        return false;
    }
    heap_claimed_ = true;
    return true;
}

void Context::release_claim() {
    const std::lock_guard lock(memory_mutex_);
    heap_claimed_ = false;
}

std::unique_ptr<shm::HeapJoin> Context::join_heap(std::span<const shm::HeapWish> wishes,
                                                  std::size_t self,
                                                  std::chrono::steady_clock::time_point deadline) {
    std::vector<shm::HeapWish> members;
    std::size_t place = 0;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        place = i == self ? members.size() : place;
        if (wishes[i].capacity_bytes > 0) {
            members.push_back(wishes[i]);
        }
    }
    if (wishes[self].capacity_bytes == 0 || members.size() == 1) {
        return nullptr;
    }
    const std::lock_guard lock(memory_mutex_);
    UCG_ASSERT(heap_ == nullptr && door_.has_value());
    shm::Door door = std::move(*door_);
    door_.reset();
    return std::make_unique<shm::HeapJoin>(heap_options(), std::move(door), std::move(members),
                                           place, deadline);
}

/// If the join failed, peers that miss this process are told: they then need not wait for their
/// time-out. Where a peer was gone, or gave the join up, later groups try again: none of them waits
/// for that peer, and the heap of this process was never there for others to map.
Result<shm::Heap*> Context::take_joined(Result<std::unique_ptr<shm::Heap>> joined) {
    Result<shm::Heap*> taken = [&] {
        const std::lock_guard lock(memory_mutex_);
        return take_heap(std::move(joined));
    }();
    if (!taken.ok() && taken.status().code() != Code::unreachable) {
        give_up_shm();
    }
    return taken;
}

/// Other groups may have been made, or have failed, since the heap was told of. A heap that was
/// given up may end at any time.
Result<shm::Heap*> Context::heap_of(const shm::Token& token) {
    const std::lock_guard lock(memory_mutex_);
    if (shm_failed_ || (heap_ != nullptr && heap_->address().token != token)) {
        return failure(Code::io_error, "this process has given its shared memory up meanwhile");
    }
    return heap_locked();
}

Result<shm::Heap*> Context::heap_locked() {
    if (heap_ != nullptr) {
        return heap_.get();
    }
    if (!door_.has_value()) {
        return take_heap(shm::Heap::create(heap_options()));
    }
    shm::Door door = std::move(*door_);
    door_.reset();
    return take_heap(shm::Heap::create(heap_options(), std::move(door)));
}

shm::HeapOptions Context::heap_options() const {
    shm::HeapOptions options;
    options.capacity_bytes = config_.heap_bytes();
    // The caller may not have told of the others: one for each CPU is usual.
    options.mappings = std::max(host_load_.ranks, host_cpus(process_facts_));
    options.lessees =
        params_.local_processes > 0 ? params_.local_processes : host_cpus(process_facts_);
    return options;
}

Result<shm::Heap*> Context::take_heap(Result<std::unique_ptr<shm::Heap>> made) {
    if (!made.ok()) {
        return made.status();
    }
    Result<shm::Sleeper*> sleeper = (*made)->sleeper();
    if (!sleeper.ok()) {
        return sleeper.status();
    }
    heap_ = std::move(*made);
    sleep_.sleep_by({heap_, *sleeper});
    return heap_.get();
}

/// Makes the node heap if there is none. Fails with busy if a group that is being made has claimed
/// it.
Status Context::make_heap() {
    {
        const std::lock_guard lock(memory_mutex_);
        if (heap_ != nullptr) {
            return {};
        }
    }
    const std::lock_guard making(waiting_makers_);
    const std::lock_guard lock(memory_mutex_);
    if (heap_claimed_) {
        return Status(Code::busy, "ucg_mem_alloc: the first group, whose ranks are to share "
                                  "memory, is being made; ask again when it is made");
    }
    return heap_locked().status();
}

Result<std::byte*> Context::allocate(std::uint64_t bytes) {
    if (Status status = make_heap(); !status.ok()) {
        return status;
    }
    const std::lock_guard lock(memory_mutex_);
    const Result<shm::Heap*> node_heap = heap_locked();
    if (!node_heap.ok()) {
        return node_heap.status();
    }
    Result<shm::Lease> lease = (*node_heap)->lease(bytes);
    if (!lease.ok()) {
        return lease.status();
    }
    std::byte* data = lease->data();
    memory_.emplace(data, std::move(*lease));
    return data;
}

bool Context::release(const std::byte* data) {
    bool found = false;
    {
        const std::lock_guard lock(memory_mutex_);
        found = memory_.erase(data) == 1;
    }
    drop_unused_heap();
    return found;
}

void Context::give_up_shm() {
    const std::lock_guard lock(memory_mutex_);
    shm_failed_ = true;
    if (heap_ != nullptr) {
        heap_->withdraw();
    }
}

void Context::drop_unused_heap() {
    const std::lock_guard lock(memory_mutex_);
    if (shm_failed_ && heap_ != nullptr && heap_->unused()) {
        sleep_.sleep_alone();
        heap_.reset();
    }
}

/// Takes back memory that peers have let go of, without waiting for a thread that leases memory,
/// which does the same.
void Context::collect_memory() {
    const std::unique_lock lock(memory_mutex_, std::try_to_lock);
    if (lock.owns_lock() && heap_ != nullptr) {
        heap_->collect();
    }
}

Result<transport::Network*> Context::ucx(bool several_hosts) {
    if (!ucx_failure_.ok()) {
        return ucx_failure_;
    }
    if (ucx_ == nullptr) {
        transport::ucx::UcxOptions options;
        options.short_lane = config_.short_lane();
        options.threads = threaded();
        options.estimated_num_eps = params_.estimated_num_eps;
        options.estimated_num_ppn = params_.estimated_num_ppn;
        options.link_bytes_per_second = several_hosts ? link_rate(topology()) : 0;
        options.connect_timeout = std::chrono::seconds(config_.timeout_seconds());
        Result<std::unique_ptr<transport::Network>> made = open_ucx(options);
        if (!made.ok()) {
            ucx_failure_ = made.status();
            return ucx_failure_;
        }
        ucx_ = std::move(*made);
        groups_.drive_network(ucx_.get());
    }
    return ucx_.get();
}

const NamedMachine& Context::machine() {
    if (!machine_) {
        machine_ = load_machine(config_.machine(), params_.local_rank);
    }
    return *machine_;
}

const topo::Place& Context::place() {
    if (!place_.has_value()) {
        const topo::Machine& named = machine().machine;
        place_ = named.core_count() > 0 ? place_of_process(named, *params_.local_rank)
                                        : place_at_hand(process_facts_.cpus);
    }
    return *place_;
}

std::uint64_t Context::single_copy_bytes_min() {
    if (single_copy_bytes_min_ == 0) {
        const SingleCopies found = single_copies(profile_);
        single_copy_bytes_min_ = found.bytes_min;
        log(LogLevel::info, "{}: the kernel copies messages from {} bytes on: {}", name(),
            found.bytes_min, found.origin);
    }
    return single_copy_bytes_min_;
}

std::uint64_t Context::staging_for_group() {
    constexpr std::size_t kGroupsMax = 16;
    return groups_.staging_count() < kGroupsMax ? config_.staging_bytes() : 0;
}

/// Many groups, and small heaps, must do with little: a ring has no more than a 2048th of what is
/// left, so that however many groups there are, further ones share memory, too.
std::uint64_t Context::ring_bytes_for_group() {
    constexpr std::size_t kGroupsMax = 16;
    constexpr std::uint64_t kPartOfHeap = 64;
    constexpr std::uint64_t kPartOfRest = 2048;
    constexpr std::uint64_t kLeast = std::uint64_t{16} << 10;
    const std::uint64_t few = transport::ShmOptions().ring_bytes;
    const bool many = groups_.count() >= kGroupsMax;
    const std::lock_guard lock(memory_mutex_);
    const std::uint64_t heap = heap_ == nullptr ? config_.heap_bytes() : heap_->free_bytes();
    // Rounded, so that what a group takes does not make the next one another kind.
    return many ? std::clamp(std::bit_floor(heap / kPartOfRest), kLeast, few)
                : std::max(few, std::bit_floor(heap / kPartOfHeap));
}

/// Not inlined where collectives start, which it would make longer.
Progress Context::progress(Busy busy) {
    collect_memory();
    const Progress awaited = Awaited::progress();
    const Progress others = groups_.progress(busy);
    return {awaited.events + others.events, awaited.called_operator || others.called_operator};
}

void Context::disconnect() {
    if (ucx_ != nullptr) {
        ucx_->begin_close();
        while (!ucx_->close_progress()) { // Bounded by UcxOptions::close_timeout.
            std::this_thread::yield();    // The peers may need this processor to answer.
        }
    }
}

} // namespace ucg::capi
