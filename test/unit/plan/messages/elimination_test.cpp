// 3-2 eliminations: both ends of every message name each other, and no member waits for more than
// ceil(log2 count) messages in a row.
#include <algorithm>
#include <bit>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/messages/elimination.hpp"

namespace ucg::plan::test {
namespace {

std::vector<Elimination> members(Rank count) {
    std::vector<Elimination> list;
    for (Rank index = 0; index < count; ++index) {
        list.emplace_back(count, index);
    }
    return list;
}

/// When each member has all that it waits for, counted in messages, if all begin at 0.
std::vector<unsigned> finish_times(Rank count) {
    const std::vector<Elimination> list = members(count);
    std::vector<unsigned> now(list.size(), 0);
    std::vector<unsigned> before_last;
    const auto at = [](Rank index) { return static_cast<std::size_t>(index); };
    for (unsigned round = 0; round < list[0].rounds(); ++round) {
        std::vector<unsigned> ready = now;
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (round < list[i].leaves_at() && list[i].taken_from(round) != kNoRank) {
                ready[i] = std::max(now[i], now[at(list[i].taken_from(round))] + 1);
            }
        }
        before_last = ready;
        now = ready;
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (round < list[i].leaves_at()) {
                now[i] = std::max(ready[i], ready[at(list[i].partner(round))] + 1);
            }
        }
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].leaves_at() < list[i].rounds()) {
            for (const bool upper : {false, true}) {
                const Rank teller = list[i].teller(list[i].number(), upper);
                now[i] = std::max(now[i], before_last[at(teller)] + 1);
            }
        }
    }
    return now;
}

} // namespace

TEST_CASE("elimination: partners, takers and tellers name each other", "[elimination]") {
    for (Rank count = 2; count <= 200; ++count) {
        const std::vector<Elimination> list = members(count);
        const auto at = [&](Rank index) { return list[static_cast<std::size_t>(index)]; };
        for (Rank index = 0; index < count; ++index) {
            const Elimination& mine = at(index);
            INFO(index << " of " << count);
            for (unsigned round = 0; round < mine.leaves_at(); ++round) {
                CHECK(at(mine.partner(round)).partner(round) == index);
                CHECK(at(mine.partner(round)).is_upper(round) != mine.is_upper(round));
            }
            if (mine.leaves_at() < mine.rounds()) {
                CHECK(at(mine.taker()).taken_from(mine.leaves_at()) == index);
                CHECK(mine.eliminated_member(mine.number()) == index);
                CHECK(at(mine.teller(mine.number(), false)).first_told() ==
                      mine.number() % mine.tell_stride());
            }
        }
    }
}

TEST_CASE("elimination: takes as many messages in turn as the logarithm says", "[elimination]") {
    for (Rank count = 2; count <= 600; ++count) {
        const std::vector<unsigned> times = finish_times(count);
        INFO(count);
        CHECK(*std::max_element(times.begin(), times.end()) ==
              static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(count - 1))));
    }
}

} // namespace ucg::plan::test
