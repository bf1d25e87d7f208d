#include "test/unit/plan/blocks.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"

namespace ucg::plan::test {
namespace {

using graph::Blocks;
using graph::Collective;
using graph::Request;

using Lengths = std::vector<std::uint64_t>;

/// All sizes of groups up to one more than a power of two, and some large groups. They are smaller
/// under sanitizers, which take fifty times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr Rank kRanksMax = 9;
constexpr Rank kLargeGroups[] = {16};
#else
constexpr Rank kRanksMax = 33;
constexpr Rank kLargeGroups[] = {48, 64};
#endif

/// A third of the lengths is zero, a few are the longest, and the rest is anything between.
Lengths random_lengths(const BlockCase& sample, std::mt19937& random) {
    Lengths lengths;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        const auto draw = random() % 12;
        const std::uint64_t elements = draw < 4    ? 0
                                       : draw == 4 ? sample.longest
                                                   : random() % (sample.longest + 1);
        lengths.push_back(elements * sample.element_bytes);
    }
    return lengths;
}

/// Places for the blocks: in rank order or in random order, with gaps here and there.
Blocks placed(const Lengths& lengths, std::mt19937& random) {
    std::vector<std::size_t> order(lengths.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    if (random() % 2 == 0) {
        std::shuffle(order.begin(), order.end(), random);
    }
    Blocks blocks{lengths, Lengths(lengths.size())};
    std::uint64_t offset = 0;
    for (const std::size_t i : order) {
        offset += random() % 3 == 0 ? random() % 5 : 0;
        blocks.offsets[i] = offset;
        offset += lengths[i];
    }
    return blocks;
}

std::vector<Request> requests_without_blocks(const BlockCase& sample) {
    Request request;
    request.collective = sample.collective;
    request.rank_count = sample.rank_count;
    request.root = sample.root;
    request.element_bytes = sample.element_bytes;
    request.commutative = sample.commutative;
    std::vector<Request> requests(static_cast<std::size_t>(sample.rank_count), request);
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        requests[static_cast<std::size_t>(rank)].in_place =
            sample.in_place && (!graph::rooted(sample.collective) || rank == sample.root);
    }
    return requests;
}

void add_alltoallv_blocks(std::vector<Request>& requests, const BlockCase& sample,
                          std::mt19937& random) {
    const std::size_t count = requests.size();
    std::vector<Lengths> sent; // The index is source, then target.
    for (std::size_t i = 0; i < count; ++i) {
        sent.push_back(random_lengths(sample, random));
    }
    for (std::size_t i = 0; i < count; ++i) {
        Lengths received;
        for (std::size_t j = 0; j < count; ++j) {
            if (sample.in_place) { // In place, the lengths must be symmetric.
                sent[i][j] = sent[std::min(i, j)][std::max(i, j)];
                received.push_back(sent[i][j]);
            } else {
                received.push_back(sent[j][i]);
            }
        }
        requests[i].receive = placed(received, random);
        if (!sample.in_place) {
            requests[i].send = placed(sent[i], random);
        }
    }
}

} // namespace

std::vector<Request> random_requests(const BlockCase& sample) {
    std::mt19937 random(sample.seed);
    std::vector<Request> requests = requests_without_blocks(sample);
    if (sample.collective == Collective::alltoallv) {
        add_alltoallv_blocks(requests, sample, random);
        return requests;
    }
    const Lengths lengths = random_lengths(sample, random);
    Request& root = requests[static_cast<std::size_t>(sample.root)];
    for (std::size_t i = 0; i < requests.size(); ++i) {
        switch (sample.collective) {
        case Collective::allgatherv: requests[i].receive = placed(lengths, random); break;
        case Collective::reduce_scatter: requests[i].receive.bytes = lengths; break;
        default: requests[i].bytes = lengths[i];
        }
    }
    if (sample.collective == Collective::gatherv) {
        root.receive = placed(lengths, random);
    } else if (sample.collective == Collective::scatterv) {
        root.send = placed(lengths, random);
    }
    return requests;
}

Status prove(const Facts& facts, std::string_view algorithm, const std::vector<Request>& requests) {
    std::vector<graph::Schedule> schedules;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        Result<graph::Schedule> schedule =
            plan(facts, requests[i], static_cast<Rank>(i), algorithm);
        if (!schedule.ok()) {
            return schedule.status();
        }
        schedules.push_back(std::move(*schedule));
    }
    const auto same_host = [](Rank a, Rank b, const void* placement) {
        return static_cast<const topo::Placement*>(placement)->same_host(a, b);
    };
    const std::optional<graph::SwitchTree> links =
        links_to_prove(facts, schedules.front().algorithm);
    return graph::verify(schedules, requests, same_host, &facts.placement,
                         links ? &*links : nullptr);
}

namespace {

constexpr std::uint64_t kStagingBytes = 64 << 10;
constexpr std::uint64_t kFlagSlotBytes = 8 << 10;

void require_rows(const std::vector<Request>& requests, const Facts& facts, Names& proved) {
    const Request& first = requests.front();
    for (const Algorithm& row : algorithms()) {
        if (row.collective != first.collective || !row.eligible(facts, first)) {
            continue;
        }
        INFO(graph::name(row.collective)
             << " " << row.name << ", " << first.rank_count << " ranks, staging "
             << facts.shared.staging_bytes << ", root " << first.root << ", in place "
             << requests[static_cast<std::size_t>(first.root)].in_place << ", commutative "
             << first.commutative);
        const Status status = prove(facts, row.name, requests);
        INFO(status.message());
        REQUIRE(status.ok());
        proved.insert(row.name);
    }
}

/// Proves the rows with the memory that ranks of one host share, and without it. Returns their
/// names.
Names require_rows(const std::vector<Request>& requests, RankLayout layout) {
    const topo::Placement placement = place(layout, requests.front().rank_count);
    const cost::Profile& profile = cost::default_profile();
    Names proved;
    require_rows(requests, {placement, profile}, proved);
    const auto network = network_for(placement);
    const auto loaded = loaded_for(placement, network.get());
    require_rows(requests, {placement, profile, {}, 1, nullptr, network.get(), loaded.get()},
                 proved);
    const Facts shared{
        placement, profile,
        shared_memory(placement, profile, kStagingBytes, false, kFlagSlotBytes, true)};
    if (shared.shared.staging_bytes > 0) {
        require_rows(requests, shared, proved);
    }
    return proved;
}

void require_all_rows(Collective collective, const Names& proved) {
    for (const Algorithm& row : algorithms()) {
        INFO(graph::name(collective) << " " << row.name << " serves none of the requests");
        CHECK((row.collective != collective || proved.contains(row.name)));
    }
}

} // namespace

Names require_proofs(const BlockCase& sample) {
    INFO("seed " << sample.seed << ", up to " << sample.longest << " elements");
    const auto layout = kLayouts[static_cast<std::size_t>(sample.rank_count) % std::size(kLayouts)];
    return require_rows(random_requests(sample), layout);
}

Names require_equal_blocks(Collective collective, Rank rank_count, std::uint64_t bytes,
                           std::uint64_t element_bytes) {
    Names proved;
    const std::set<Rank> roots = graph::rooted(collective)
                                     ? std::set<Rank>{0, rank_count / 2, rank_count - 1}
                                     : std::set<Rank>{0};
    INFO(bytes << " bytes");
    for (const Rank root : roots) {
        for (const bool in_place : {false, true}) {
            for (const bool commutative : {true, false}) {
                if (!commutative && !graph::reduces(collective)) {
                    continue;
                }
                const BlockCase sample{collective, rank_count, root,        element_bytes,
                                       0,          in_place,   commutative, 0};
                std::vector<Request> requests = requests_without_blocks(sample);
                for (Request& request : requests) {
                    request.bytes = bytes;
                }
                const auto at = static_cast<std::size_t>(rank_count);
                const auto turn = static_cast<std::size_t>(root);
                proved.merge(require_rows(requests, kLayouts[(at + turn) % std::size(kLayouts)]));
            }
        }
    }
    return proved;
}

void require_equal_blocks_everywhere(Collective collective) {
    constexpr std::uint64_t kBytes[] = {0, 1, 7, 8, 4096};
    Names proved;
    for (Rank count = 1; count <= kRanksMax; ++count) {
        const auto at = static_cast<std::size_t>(count);
        proved.merge(require_equal_blocks(collective, count, kBytes[at % std::size(kBytes)]));
    }
    for (const std::uint64_t bytes : kBytes) {
        for (const Rank count : {2, 5, 8, 11}) {
            proved.merge(require_equal_blocks(collective, count, bytes));
        }
    }
    for (const Rank count : kLargeGroups) {
        proved.merge(require_equal_blocks(collective, count, 8));
    }
    require_all_rows(collective, proved);
}

void require_any_blocks(Collective collective) {
    Names proved;
    for (Rank count = 1; count <= kRanksMax; ++count) {
        for (const bool in_place : {false, true}) {
            BlockCase sample;
            sample.collective = collective;
            sample.rank_count = count;
            sample.longest = 9;
            sample.in_place = in_place;
            sample.seed = static_cast<std::uint32_t>(count);
            for (const Rank root : {0, count / 2, count - 1}) {
                sample.root = graph::rooted(collective) ? root : 0;
                proved.merge(require_proofs(sample));
                sample.seed += 1000;
            }
        }
    }
    require_all_rows(collective, proved);
}

std::size_t count_ops(Collective collective, std::string_view algorithm, Rank rank_count, Rank rank,
                      graph::OpKind kind) {
    const topo::Placement placement = topo::Placement::one_host(rank_count);
    Request request;
    request.collective = collective;
    request.rank_count = rank_count;
    request.bytes = 8;
    request.element_bytes = graph::reduces(collective) ? 8 : 1;
    const Result<graph::Schedule> schedule =
        plan({placement, cost::default_profile()}, request, rank, algorithm);
    INFO(schedule.status().message());
    REQUIRE(schedule.ok());
    const auto& ops = schedule->ops;
    return static_cast<std::size_t>(std::count_if(
        ops.begin(), ops.end(), [&](const graph::Op& op) { return op.kind == kind; }));
}

} // namespace ucg::plan::test
