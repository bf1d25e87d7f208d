// The conditions under which a broadcast on a circulant graph is right: Träff 2024, section 2.
#include <algorithm>
#include <set>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/graph/verify.hpp"
#include "ucg_coll/plan/messages/circulant.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {
namespace {

/// What the member does wrong, given what its partners do; empty if nothing.
std::string complaint_about(Rank count, Rank index) {
    const auto rounds = static_cast<int>(circulant_round_count(count));
    const CirculantPhase own(count, index);
    std::set<int> had; // These came in this phase; `firsts` are sent before they come.
    std::set<int> firsts;
    for (int k = 0; k < rounds; ++k) {
        const CirculantPhase::Round& round = own.rounds()[static_cast<std::size_t>(k)];
        const CirculantPhase to(count, round.to);
        const CirculantPhase::Round& theirs = to.rounds()[static_cast<std::size_t>(k)];
        if (theirs.from != index || (round.to != 0 && theirs.received != round.sent)) {
            return "the ends of a message differ";
        }
        if (index == 0 && round.sent != k) {
            return "the root sends another block than the next";
        }
        if (index != 0 && round.to != 0 && !had.contains(round.sent)) {
            firsts.insert(round.sent);
        }
        had.insert(round.received);
    }
    if (index == 0) {
        return "";
    }
    if (had.size() != static_cast<std::size_t>(rounds)) {
        return "a block comes twice";
    }
    const int base = *had.rbegin();
    const auto current =
        std::count_if(had.begin(), had.end(), [](int number) { return number >= 0; });
    if (current != 1 || had.contains(base - rounds) || *had.begin() < -rounds) {
        return "a phase does not bring all blocks";
    }
    firsts.erase(base - rounds); // This block came in the phase before.
    return firsts.empty() ? "" : "a block is sent before it has come";
}

} // namespace

TEST_CASE("plan: every member of a circulant graph has what it sends", "[plan][circulant]") {
    for (Rank count = 1; count <= 260; ++count) {
        for (Rank index = 0; index < count; ++index) {
            INFO(count << " members, index " << index);
            REQUIRE(complaint_about(count, index) == "");
        }
    }
    for (const Rank count : {1023, 65'536, 1'000'000, 0x7fffffff}) {
        for (Rank i = 0; i < 200; ++i) {
            const Rank index = i < 100 ? i : count - 1 - (i - 100) * (count / 101);
            INFO(count << " members, index " << index);
            REQUIRE(complaint_about(count, index) == "");
        }
    }
}

namespace {

/// Proves the schedules that `build`(builder, team, request) makes for each rank.
template <typename Build>
std::string verdict(const test::Case& sample, Build build) {
    std::vector<graph::Schedule> schedules;
    std::vector<graph::Request> requests;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        requests.push_back(test::request_of(sample, rank));
        graph::Builder builder(requests.back(), rank, "circulant");
        build(builder, Team::whole(sample.rank_count, rank), requests.back());
        schedules.push_back(builder.finish());
    }
    return std::string(graph::verify(schedules, requests).message());
}

} // namespace

TEST_CASE("plan: circulant graphs take any number of phases", "[plan][circulant]") {
    for (Rank count = 1; count <= 20; ++count) {
        for (std::uint64_t phases = 1; phases <= 7; ++phases) {
            const std::uint64_t blocks = circulant_block_count(count, phases);
            for (const std::uint64_t elements : {blocks, 3 * blocks + 1, 50 * blocks - 1}) {
                INFO(count << " ranks, " << phases << " phases, " << elements << " elements");
                const Rank root = count / 3;
                REQUIRE(verdict({graph::Collective::bcast, count, root, elements, 1},
                                [&](graph::Builder& builder, const Team& team,
                                    const graph::Request& request) {
                                    bcast_circulant(builder, team, root,
                                                    bcast_data(builder, request), phases);
                                }) == "");
                const bool in_place = elements % 2 == 0;
                REQUIRE(verdict({graph::Collective::reduce, count, root, 8 * elements, 8, in_place},
                                [&](graph::Builder& builder, const Team& team,
                                    const graph::Request& request) {
                                    reduce_circulant(builder, team, root,
                                                     contribution(builder, request),
                                                     builder.output(0, request.bytes),
                                                     operator_of(request), phases);
                                }) == "");
            }
        }
    }
}

} // namespace ucg::plan
