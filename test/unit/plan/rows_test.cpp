// Every row of the planner's table is proved for awkward group sizes, roots, lengths and layouts.
// The short form runs with the unit tests; `plan_test "[exhaustive]"` goes through every group size
// up to 64, and for some rows through samples up to 1024 (ucg_coll/plan/README.md says which).
#include <algorithm>
#include <set>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"

namespace ucg::plan::test {
namespace {

struct Length {
    std::uint64_t bytes;
    std::uint64_t element_bytes;
};

/// No bytes; one element; fewer elements than most groups have ranks; odd lengths; several
/// segments.
constexpr Length kLengths[] = {{0, 8}, {8, 8}, {56, 8}, {333, 3}, {1000, 8}};

std::set<Rank> roots(const Algorithm& row, Rank count) {
    if (!graph::rooted(row.collective)) {
        return {0};
    }
    return {0, count / 2, count - 1};
}

std::vector<bool> in_place_choices(const Algorithm& row) {
    return graph::has_in_place(row.collective) ? std::vector<bool>{false, true}
                                               : std::vector<bool>{false};
}

std::vector<bool> commutative_choices(const Algorithm& row) {
    return graph::reduces(row.collective) ? std::vector<bool>{true, false}
                                          : std::vector<bool>{true};
}

/// Proves one group size with all roots, commutative and not, in place and not. Returns how many
/// cases were eligible.
unsigned prove_size(const Facts& facts, const Algorithm& row, Rank count, Length length) {
    unsigned proved = 0;
    for (const Rank root : roots(row, count)) {
        for (const bool in_place : in_place_choices(row)) {
            for (const bool commutative : commutative_choices(row)) {
                const Case sample{row.collective,       count,    root,       length.bytes,
                                  length.element_bytes, in_place, commutative};
                if (!row.eligible(facts, request_of(sample, 0))) {
                    continue;
                }
                const Status status = prove(facts, row.name, sample);
                INFO(status.message());
                REQUIRE(status.ok());
                ++proved;
            }
        }
    }
    return proved;
}

/// The lengths that matter to a row.
std::span<const Length> lengths_for(const Algorithm& row) {
    const std::span<const Length> all = kLengths;
    return row.collective == graph::Collective::barrier ? all.first(1) : all;
}

constexpr std::uint64_t kFlagSlotBytes = 4 << 10;

unsigned prove_layout(const Algorithm& row, RankLayout layout, Prices prices, Rank count) {
    const topo::Placement placement = place(layout, count);
    const cost::Profile profile = profile_for(prices);
    const auto network = network_for(placement);
    const auto loaded = loaded_for(placement, network.get());
    unsigned proved = 0;
    for (const std::uint64_t staging : kStagings) {
        const std::uint64_t flag_slots = staging > 0 ? kFlagSlotBytes : 0;
        const Facts facts{placement,
                          profile,
                          shared_memory(placement, profile, staging, false, flag_slots, true),
                          1,
                          nullptr,
                          network.get(),
                          loaded.get()};
        if (staging > 0 && facts.shared.staging_bytes == 0) {
            continue; // No two ranks are on one host, so nothing is shared.
        }
        for (const Length length : lengths_for(row)) {
            proved += prove_size(facts, row, count, length);
        }
    }
    return proved;
}

} // namespace

namespace {

void prove_counts(std::initializer_list<Rank> counts) {
    for (const Algorithm& row : algorithms()) {
        unsigned proved = 0;
        for (const Rank count : counts) {
            for (const RankLayout layout : kLayouts) {
                const auto prices = kPrices[static_cast<std::size_t>(count) % std::size(kPrices)];
                proved += prove_layout(row, layout, prices, count);
            }
        }
        INFO(graph::name(row.collective) << " " << row.name);
        CHECK(proved > 0);
    }
}

} // namespace

TEST_CASE("plan: every row is proved for four and six ranks", "[plan][proof]") {
    prove_counts({4, 6});
}

TEST_CASE("plan: every row is proved for awkward sizes and roots and layouts",
          "[plan][proof][thorough]") {
    prove_counts({1, 2, 3, 5, 7, 8, 9, 12, 13, 16, 17});
}

TEST_CASE("plan: few elements that are very long are reduced by every row", "[plan][proof]") {
    // As by an operator of the program on a derived datatype: fewer elements than blocks.
    constexpr std::uint64_t kElementBytes = 64 << 10;
    const cost::Profile& profile = cost::default_profile();
    for (const Algorithm& row : algorithms()) {
        if (!graph::reduces(row.collective)) {
            continue;
        }
        for (const Rank count : {3, 8, 16}) {
            for (const RankLayout layout :
                 {RankLayout::single, RankLayout::pairs, RankLayout::one_host}) {
                const topo::Placement placement = place(layout, count);
                const Facts facts{placement, profile,
                                  shared_memory(placement, profile, 1 << 20, false, 0, true)};
                for (const std::uint64_t elements : {1, 2, 3, 4, 6, 8, 13, 20}) {
                    INFO(elements << " elements");
                    prove_size(facts, row, count, {elements * kElementBytes, kElementBytes});
                }
            }
        }
    }
}

TEST_CASE("plan: every row is proved for every size to 64", "[.exhaustive]") {
    for (const Algorithm& row : algorithms()) {
        for (Rank count = 1; count <= 64; ++count) {
            for (const Prices prices : kPrices) {
                const auto layout =
                    kLayouts[static_cast<std::size_t>(count + static_cast<Rank>(prices)) %
                             std::size(kLayouts)];
                prove_layout(row, RankLayout::one_host, prices, count);
                prove_layout(row, layout, prices, count);
            }
        }
    }
}

/// In the linear forms of these collectives every rank exchanges messages with every other one, so
/// the proof takes time and memory in proportion to the square of the group's size.
bool quadratic(const Algorithm& row) {
    using graph::Collective;
    const std::set<Collective> everyone = {
        Collective::alltoall,       Collective::alltoallv,
        Collective::reduce_scatter, Collective::reduce_scatter_block,
        Collective::allgather,      Collective::allgatherv};
    return everyone.contains(row.collective) || row.name == "ring";
}

TEST_CASE("plan: flag slots over the levels of a host are proved for samples to 1024",
          "[.exhaustive]") {
    const cost::Profile profile = profile_for(Prices::usual);
    for (const Algorithm& row : algorithms()) {
        for (const Rank count : {96, 127, 128, 257, 1000, 1024}) {
            if (row.name != "flag_slot_tree" || (quadratic(row) && count > 257)) {
                continue;
            }
            const topo::Placement placement = place(RankLayout::levels, count);
            const Facts facts{placement, profile,
                              shared_memory(placement, profile, 64 << 10, false, 64 << 10)};
            CHECK(prove_size(facts, row, count, {56, 8}) > 0);
        }
    }
}

TEST_CASE("plan: every row is proved for samples to 1024", "[.exhaustive]") {
    for (const Algorithm& row : algorithms()) {
        for (const Rank count : {96, 127, 128, 255, 256, 257, 1000, 1023, 1024}) {
            if (quadratic(row) && count > 257) {
                continue;
            }
            const topo::Placement placement = place(RankLayout::uneven, count);
            const cost::Profile profile = profile_for(Prices::usual);
            prove_size({placement, profile}, row, count, {56, 8});
        }
    }
}

} // namespace ucg::plan::test
