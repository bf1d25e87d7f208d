// Planning one rank takes memory for its own steps only: less than 64 KiB in a group of a million.
// This is a program of its own, since it replaces operator new.
#include <cstdlib>
#include <new>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace {

std::size_t allocated_now = 0;
std::size_t allocated_peak = 0;

/// The length of each block is stored before it; the header is as long as the strictest alignment
/// of operator new.
constexpr std::size_t kHeader = alignof(std::max_align_t);

} // namespace

// std::stable_sort uses this form; without it the sanitizers' library would serve it.
void* operator new(std::size_t size, const std::nothrow_t& /*nothrow*/) noexcept {
    auto* block = static_cast<unsigned char*>(std::malloc(size + kHeader));
    if (block == nullptr) {
        return nullptr;
    }
    *reinterpret_cast<std::size_t*>(block) = size;
    allocated_now += size;
    allocated_peak = allocated_now > allocated_peak ? allocated_now : allocated_peak;
    return block + kHeader;
}

void* operator new(std::size_t size) {
    void* memory = operator new(size, std::nothrow);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

void operator delete(void* pointer) noexcept {
    if (pointer != nullptr) {
        auto* block = static_cast<unsigned char*>(pointer) - kHeader;
        allocated_now -= *reinterpret_cast<std::size_t*>(block);
        std::free(block);
    }
}

void operator delete(void* pointer, std::size_t) noexcept {
    operator delete(pointer);
}

namespace ucg::plan {
namespace {

/// The peak of what `action` has allocated at one time.
template <typename Action>
std::size_t peak_of(Action action) {
    const std::size_t before = allocated_now;
    allocated_peak = before;
    action();
    return allocated_peak - before;
}

graph::Request request_for(const Algorithm& row, Rank count) {
    graph::Request request;
    request.collective = row.collective;
    request.rank_count = count;
    request.root = count / 3;
    request.bytes = row.collective == graph::Collective::barrier ? 0 : 64;
    request.element_bytes = 8;
    return request;
}

constexpr Rank kMillion = 1'000'000;
constexpr std::size_t kLimit = 64 * 1024;

/// Ranks at both ends, around the root, in the fold, and among the others.
constexpr Rank kRanks[] = {0, 1, 2, kMillion / 3, kMillion / 3 + 1, 524'288, kMillion - 1};

} // namespace

TEST_CASE("plan: one rank of a million is planned in 64 KiB", "[plan][memory]") {
    const topo::Placement placement = topo::Placement::regular(kMillion / 8, 8);
    const Facts facts{placement, cost::default_profile()};
    const Algorithm* const rows[] = {
        &kBarrierDissemination,
        &kBarrierNWayDissemination,
        &kBarrierKaryTree,
        &kBarrierTwoLevel,
        &kBcastKnomial,
        &kBcastChain,
        &kBcastTwoLevel,
        &kReduceKnomial,
        &kReduceChain,
        &kReduceRabenseifner,
        &kReduceTwoLevel,
        &kAllreduceTwoLevel,
        &kAllreduceRecursiveDoubling,
        &kAllreduceRecursiveMultiplying,
        &kAllreduceElimination,
        &kAllreduceRabenseifner,
        &kScanRecursiveDoubling,
        &kScanChain,
        &kExscanRecursiveDoubling,
        &kExscanChain,
    };
    for (const Algorithm* row : rows) {
        for (const Rank rank : kRanks) {
            const graph::Request request = request_for(*row, kMillion);
            const std::size_t peak = peak_of([&] {
                const graph::Schedule schedule = row->build(facts, request, rank);
                UCG_ASSERT(schedule.rank == rank);
            });
            INFO(graph::name(row->collective) << " " << row->name << " rank " << rank);
            CHECK(peak <= kLimit);
        }
    }
}

TEST_CASE("plan: a placement takes twelve bytes a rank", "[plan][memory]") {
    const Rank ranks_per_host = GENERATE(1, 8, 125);
    const Rank hosts = kMillion / ranks_per_host;
    const std::size_t peak =
        peak_of([&] { static_cast<void>(topo::Placement::regular(hosts, ranks_per_host)); });
    // The lists of hosts grow by doubling.
    CHECK(peak <=
          std::size_t{12} * kMillion + std::size_t{24} * static_cast<std::size_t>(hosts) + kLimit);
}

TEST_CASE("plan: choosing allocates no more than what a search looks up", "[plan][memory]") {
    const topo::Placement placement = topo::Placement::regular(125, 8);
    const Facts facts{placement, cost::default_profile()};
    static_cast<void>(algorithms()); // The table is made on first use, which must not be counted.
    for (const Algorithm& row : algorithms()) {
        if (graph::has_block_vectors(row.collective)) {
            continue;
        }
        const graph::Request request = request_for(row, 1000);
        const std::size_t peak = peak_of([&] { static_cast<void>(choose(facts, request)); });
        INFO(graph::name(row.collective));
        const bool searches = row.collective == graph::Collective::allreduce;
        CHECK(peak <= (searches ? 16 * 1024U : 0U));
    }
}

} // namespace ucg::plan
