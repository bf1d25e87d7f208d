// Groups that ranks make and use in random orders, with one thread for all ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/ranks/capi_creation.hpp"

namespace ucg::test {

using Outcomes = std::vector<ucg_status_t>;

/// A sum of all ranks of one group, as one of them runs it.
struct Sum {
    std::vector<std::int64_t> in;
    std::vector<std::int64_t> out;
    ucg_coll_h coll = nullptr;
    ucg_status_t status = UCG_ERR_INTERNAL;

    void start(ucg_group_h group, std::size_t rank, std::size_t count) {
        in.assign(count, static_cast<std::int64_t>(rank) + 1);
        out.resize(count);
        const ucg_coll_params_t params = sum_of_ranks(in, out);
        status = ucg_coll_init(group, &params, &coll);
        if (status == UCG_OK) {
            status = ucg_coll_start(coll);
        }
    }
    bool test() {
        if (status == UCG_INPROGRESS) {
            status = ucg_coll_test(coll);
        }
        return status != UCG_INPROGRESS;
    }
    bool right(std::size_t size) const {
        const auto ranks = static_cast<std::int64_t>(size);
        return status == UCG_OK &&
               out == std::vector<std::int64_t>(in.size(), ranks * (ranks + 1) / 2);
    }
};

/// One rank of one group; each rank works on its groups in an order of its own.
struct Seat {
    std::size_t group;
    std::size_t rank; ///< The rank in the group.
};

inline std::vector<std::vector<Seat>>
seats_of(const JobContexts& job, const std::vector<Members>& groups, std::mt19937& random) {
    std::vector<std::vector<Seat>> seats(job.size());
    for (std::size_t group = 0; group < groups.size(); ++group) {
        for (std::size_t rank = 0; rank < groups[group].ranks.size(); ++rank) {
            seats[groups[group].ranks[rank]].push_back({group, rank});
        }
    }
    for (std::vector<Seat>& each : seats) {
        std::shuffle(each.begin(), each.end(), random);
    }
    return seats;
}

/// Lets all ranks make all groups, each in its own order; returns what went wrong.
inline std::string make_all(const JobContexts& job, std::vector<Members>& groups,
                            std::mt19937& random) {
    std::vector<std::vector<Seat>> to_start = seats_of(job, groups, random);
    std::vector<std::vector<Seat>> started(job.size());
    constexpr int kTurns = 100000;
    for (int turn = 0; turn < kTurns; ++turn) {
        const std::size_t rank = random() % job.size();
        if (!to_start[rank].empty() && random() % 4 == 0) {
            const Seat seat = to_start[rank].back();
            to_start[rank].pop_back();
            started[rank].push_back(seat);
            if (groups[seat.group].creations[seat.rank]->start(job.context(rank)) != UCG_OK) {
                return "not started";
            }
        } else if (!started[rank].empty()) {
            const std::size_t index = random() % started[rank].size();
            const Seat seat = started[rank][index];
            if (groups[seat.group].creations[seat.rank]->test()) {
                started[rank].erase(started[rank].begin() + static_cast<std::ptrdiff_t>(index));
            }
        }
    }
    for (const Members& members : groups) {
        for (const auto& creation : members.creations) {
            if (creation->group == nullptr) {
                return ucg_status_string(creation->outcome());
            }
        }
    }
    return "";
}

/// Runs all sums at once; returns what went wrong.
inline std::string add_up(const JobContexts& job, const std::vector<Members>& groups,
                          std::mt19937& random) {
    std::vector<std::vector<Sum>> sums;
    for (const Members& members : groups) {
        sums.emplace_back(members.ranks.size());
    }
    for (const std::vector<Seat>& seats : seats_of(job, groups, random)) {
        for (const Seat& seat : seats) {
            const std::size_t count = seat.group % 2 == 0 ? 1 : 20000;
            sums[seat.group][seat.rank].start(groups[seat.group].creations[seat.rank]->group,
                                              seat.rank, count);
        }
    }
    constexpr int kRounds = 1000000;
    bool all = false;
    for (int round = 0; round < kRounds && !all; ++round) {
        all = true;
        for (std::vector<Sum>& of_group : sums) {
            for (Sum& sum : of_group) {
                all = sum.test() && all;
            }
        }
    }
    std::string complaint;
    for (std::vector<Sum>& of_group : sums) {
        for (const Sum& sum : of_group) {
            if (!sum.right(of_group.size())) {
                complaint = std::string("wrong sum: ") + ucg_status_string(sum.status);
            }
            ucg_coll_free(sum.coll);
        }
    }
    return complaint;
}

/// Groups whose exchanges never end. Their memory must stay valid until the process ends.
inline Members& never_ended(const std::vector<std::size_t>& ranks) {
    static auto& outstanding = *new std::vector<std::unique_ptr<Members>>;
    outstanding.push_back(std::make_unique<Members>(ranks));
    return *outstanding.back();
}

inline std::vector<Members> overlapping_groups() {
    std::vector<Members> groups;
    for (const std::vector<std::size_t>& ranks : std::vector<std::vector<std::size_t>>{
             {0, 1, 2, 3}, {1, 0}, {3, 1, 2}, {0, 1, 2, 3}, {3, 0}, {2, 3}, {0, 1}, {2}}) {
        groups.emplace_back(ranks);
    }
    return groups;
}

} // namespace ucg::test
