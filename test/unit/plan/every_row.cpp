#include "test/unit/plan/every_row.hpp"

#include <set>

#include "test/support/catch.hpp"

namespace ucg::plan::test {
namespace {

constexpr std::uint64_t kFlagSlotBytes = 4 << 10;

/// Sanitizers check how code uses memory, not what it plans, and take fifty times as long: under
/// them one trial in kOneIn is enough. It is a prime, since the loops below go in steps of two.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kOneIn = 13;
#else
constexpr unsigned kOneIn = 1;
#endif

std::vector<std::uint64_t> lengths_for(const Trials& trials, const Algorithm& row) {
    return row.collective == graph::Collective::barrier ? std::vector<std::uint64_t>{0}
                                                        : trials.bytes;
}

std::set<Rank> roots_for(const Trials& trials, const Algorithm& row, Rank count) {
    return trials.roots && graph::rooted(row.collective) ? std::set<Rank>{0, count - 1}
                                                         : std::set<Rank>{0};
}

/// Tries all requests of one placement that the row serves, and adds their number to `served`.
void try_requests(const Trials& trials, const Algorithm& row, const Facts& facts,
                  const std::function<void(const Trial&)>& visit, unsigned& served) {
    const Rank count = facts.placement.rank_count();
    for (const std::uint64_t bytes : lengths_for(trials, row)) {
        for (const Rank root : roots_for(trials, row, count)) {
            for (const bool in_place : {false, true}) {
                for (const bool commutative : {true, false}) {
                    const Case sample{row.collective, count, root, bytes, 8, in_place, commutative};
                    const bool varies =
                        (!in_place || (trials.in_place && graph::has_in_place(row.collective))) &&
                        (commutative || graph::reduces(row.collective));
                    if (varies && row.eligible(facts, request_of(sample, 0)) &&
                        served++ % kOneIn == 0) {
                        visit({row, facts, sample});
                    }
                }
            }
        }
    }
}

unsigned try_row(const Trials& trials, const Algorithm& row,
                 const std::function<void(const Trial&)>& visit) {
    unsigned served = 0;
    for (const Rank count : trials.counts) {
        const cost::Profile profile =
            profile_for(kPrices[static_cast<std::size_t>(count) % std::size(kPrices)]);
        for (const RankLayout layout : kLayouts) {
            const topo::Placement placement = place(layout, count);
            const auto network = network_for(placement);
            const auto loaded = loaded_for(placement, network.get());
            for (const std::uint64_t staging : trials.stagings) {
                const Facts facts{placement,
                                  profile,
                                  shared_memory(placement, profile, staging, false,
                                                staging > 0 ? kFlagSlotBytes : 0, true),
                                  trials.ranks_per_cpu,
                                  nullptr,
                                  network.get(),
                                  loaded.get()};
                // Where no two ranks are on a host, nothing is shared.
                if (staging == 0 || facts.shared.staging_bytes > 0) {
                    try_requests(trials, row, facts, visit, served);
                }
            }
        }
    }
    return served;
}

} // namespace

std::string Trial::describe() const {
    return fmt::format("{} {}: {}, {} hosts, staging {}, flag slots {}",
                       graph::name(row.collective), row.name, test::describe(sample),
                       facts.placement.host_count(), facts.shared.staging_bytes,
                       facts.shared.flag_slot_bytes);
}

std::vector<graph::Schedule> Trial::schedules() const {
    std::vector<graph::Schedule> result;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        Result<graph::Schedule> schedule = plan(facts, request_of(sample, rank), rank, row.name);
        INFO(describe() << ": " << schedule.status().message());
        REQUIRE(schedule.ok());
        result.push_back(std::move(*schedule));
    }
    return result;
}

void for_every_row(const Trials& trials, const std::function<void(const Trial&)>& visit) {
    for (const Algorithm& row : algorithms()) {
        if (try_row(trials, row, visit) == 0) {
            FAIL_CHECK("nothing here serves " << graph::name(row.collective) << ' ' << row.name);
        }
    }
}

} // namespace ucg::plan::test
