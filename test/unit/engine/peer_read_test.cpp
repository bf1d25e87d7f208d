// Collectives in which ranks read one another's memory or flag slots, several outstanding at once,
// on random sockets and with random lengths. For each buffer of each rank it is drawn at random
// whether peers read it in place or by way of staging buffers. Message-based collectives run in
// between.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <span>

#include "test/support/catch.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace ucg {
namespace {

using graph::Collective;
using graph::Request;
using Random = std::mt19937_64;

/// An element: x -> factor x + term modulo 2^32. Composition is associative and does not commute;
/// with factors of 1 it is a sum.
struct Affine {
    std::uint32_t factor = 1;
    std::uint32_t term = 0;
    bool operator==(const Affine&) const = default;
};

Affine compose(const Affine& f, const Affine& g) {
    return {f.factor * g.factor, f.factor * g.term + f.term};
}

void combine(void* /*context*/, const std::byte* const* operands, std::size_t operand_count,
             std::byte* target, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(Affine)) {
        Affine total;
        for (std::size_t i = 0; i < operand_count; ++i) {
            Affine next;
            std::memcpy(&next, operands[i] + at, sizeof(next));
            total = compose(total, next);
        }
        std::memcpy(target + at, &total, sizeof(total));
    }
}

using Vector = std::vector<Affine>;

std::size_t elements(std::uint64_t bytes) {
    return static_cast<std::size_t>(bytes / sizeof(Affine));
}

/// One collective: what each rank asks for, puts in and expects.
struct Call {
    const plan::Algorithm* row = nullptr;
    std::vector<Request> requests;
    std::vector<Vector> inputs;
    std::vector<Vector> outputs;
    std::vector<Vector> expected; ///< What `outputs` must hold; empty where nothing is defined.
};

bool at_root(const Request& request, Rank rank) {
    return !graph::rooted(request.collective) || rank == request.root;
}

/// How many blocks of `bytes` a rank contributes, and how many it has in the end.
struct BlockCounts {
    std::size_t contributed = 1;
    std::size_t received = 1;
};

BlockCounts block_counts(const Request& request, Rank rank) {
    const auto all = static_cast<std::size_t>(request.rank_count);
    const bool root = at_root(request, rank);
    switch (request.collective) {
    case Collective::barrier: return {0, 0};
    case Collective::exscan: return {1, rank > 0 ? 1U : 0U};
    case Collective::bcast: return {root ? 1U : 0U, root ? 0U : 1U};
    case Collective::reduce: return {1, root ? 1U : 0U};
    case Collective::gather: return {1, root ? all : 0};
    case Collective::scatter: return {root ? all : 0, 1};
    case Collective::allgather: return {1, all};
    case Collective::alltoall: return {all, all};
    case Collective::reduce_scatter_block: return {all, 1};
    default: return {1, 1};
    }
}

Vector random_vector(Random& random, std::size_t count, bool commutative) {
    Vector vector(count);
    for (Affine& element : vector) {
        element.term = static_cast<std::uint32_t>(random());
        element.factor = commutative ? 1 : static_cast<std::uint32_t>(random());
    }
    return vector;
}

Vector block_of(const Vector& vector, std::size_t index, std::size_t count) {
    const auto begin = vector.begin() + static_cast<std::ptrdiff_t>(index * count);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// Block `index` of these contributions, combined in rank order.
Vector combined(std::span<const Vector> contributions, std::size_t index, std::size_t count) {
    Vector total(count);
    for (const Vector& contribution : contributions) {
        for (std::size_t i = 0; i < count; ++i) {
            total[i] = compose(total[i], contribution[index * count + i]);
        }
    }
    return total;
}

Vector expectation(const Request& request, Rank rank, const std::vector<Vector>& contributions) {
    const std::size_t count = elements(request.bytes);
    const auto self = static_cast<std::size_t>(rank);
    const Vector& roots = contributions[static_cast<std::size_t>(request.root)];
    if (block_counts(request, rank).received == 0) {
        return {};
    }
    switch (request.collective) {
    case Collective::bcast: return roots;
    case Collective::reduce:
    case Collective::allreduce: return combined(contributions, 0, count);
    case Collective::reduce_scatter_block: return combined(contributions, self, count);
    case Collective::scatter: return block_of(roots, self, count);
    case Collective::scan: return combined(std::span(contributions).first(self + 1), 0, count);
    case Collective::exscan: return combined(std::span(contributions).first(self), 0, count);
    default: break;
    }
    Vector result;
    for (const Vector& contribution : contributions) {
        const std::size_t index = request.collective == Collective::alltoall ? self : 0;
        const Vector block = block_of(contribution, index, count);
        result.insert(result.end(), block.begin(), block.end());
    }
    return result;
}

/// Puts a contribution where the request says that it lies.
void place(Call& call, Rank rank, const Vector& contribution) {
    const auto self = static_cast<std::size_t>(rank);
    const Request& request = call.requests[self];
    const graph::BufferSizes sizes = graph::buffer_sizes(request, rank);
    call.inputs[self].resize(elements(sizes.input));
    call.outputs[self].resize(elements(sizes.output));
    const bool own_block =
        request.collective == Collective::allgather || request.collective == Collective::gather;
    Vector& buffer = request.in_place && request.collective != Collective::scatter
                         ? call.outputs[self]
                         : call.inputs[self];
    const std::size_t offset = request.in_place && own_block ? self * contribution.size() : 0;
    std::copy(contribution.begin(), contribution.end(),
              buffer.begin() + static_cast<std::ptrdiff_t>(offset));
    if (request.in_place && request.collective == Collective::scatter) {
        call.expected[self].clear();
    }
}

Call make_call(const plan::Algorithm& row, const Request& request, Random& random) {
    const auto count = static_cast<std::size_t>(request.rank_count);
    Call call{&row, {}, std::vector<Vector>(count), std::vector<Vector>(count), {}};
    std::vector<Vector> contributions;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        call.requests.push_back(request);
        call.requests.back().in_place = request.in_place && at_root(request, rank);
        const std::size_t blocks = block_counts(request, rank).contributed;
        contributions.push_back(
            random_vector(random, blocks * elements(request.bytes), request.commutative));
    }
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        call.expected.push_back(expectation(request, rank, contributions));
    }
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        place(call, rank, contributions[static_cast<std::size_t>(rank)]);
    }
    return call;
}

topo::Placement random_placement(Random& random, Rank count) {
    const std::uint64_t sockets = 1 + random() % 4;
    const bool contiguous = random() % 2 == 0;
    std::vector<topo::Place> places;
    for (Rank rank = 0; rank < count; ++rank) {
        const auto at = static_cast<std::uint64_t>(rank);
        topo::Place place;
        place.package = static_cast<std::uint32_t>(
            contiguous ? at * sockets / static_cast<std::uint64_t>(count) : random() % sockets);
        place.core = static_cast<std::uint32_t>(rank);
        places.push_back(place);
    }
    return topo::Placement(places);
}

/// A request that is served by some row that reads peers' memory; one in four is served by any row.
Call random_call(const plan::Facts& facts, const plan::Facts& without, Random& random) {
    for (;;) {
        const auto rows = plan::algorithms();
        const plan::Algorithm& row = rows[random() % rows.size()];
        if (graph::has_block_vectors(row.collective)) {
            continue;
        }
        Request request;
        request.collective = row.collective;
        request.rank_count = facts.placement.rank_count();
        request.root =
            static_cast<Rank>(graph::rooted(row.collective)
                                  ? random() % static_cast<std::uint64_t>(request.rank_count)
                                  : 0);
        request.bytes = sizeof(Affine) * (1 + random() % (random() % 2 == 0 ? 12 : 700));
        if (row.collective == Collective::barrier) {
            request.bytes = 0;
        }
        request.element_bytes = sizeof(Affine);
        request.in_place = graph::has_in_place(row.collective) && random() % 2 == 0;
        request.commutative = random() % 2 == 0;
        const bool reads = !row.eligible(without, request);
        if (row.eligible(facts, request) && (reads || random() % 4 == 0)) {
            return make_call(row, request, random);
        }
    }
}

/// One rank's engine and the collectives that it runs.
struct Side {
    std::vector<transport::Transport*> routes;
    std::vector<engine::Program> programs;
    std::deque<engine::Execution> executions; // Executions must not move in memory.
    std::unique_ptr<engine::Engine> engine;
    std::size_t started = 0;
};

class Run {
  public:
    Run(std::uint64_t seed, transport::Delivery delivery)
        : random_(seed), count_(static_cast<Rank>(2 + random_() % 8)),
          placement_(random_placement(random_, count_)), facts_{placement_, profile_,
                                                                plan::shared_memory(
                                                                    placement_, profile_,
                                                                    kStagings[random_() % 3], false,
                                                                    kFlagSlots[random_() % 3])},
          without_{placement_, profile_}, fabric_(count_, delivery, seed) {
        fabric_.map_buffers([this](Rank) { return random_() % 2 == 0; });
        for (int i = 0; i < kCalls; ++i) {
            calls_.push_back(random_call(facts_, without_, random_));
        }
        for (Rank rank = 0; rank < count_; ++rank) {
            sides_.push_back(make_side(rank));
        }
    }

    void go() {
        constexpr int kRoundsMax = 200'000; // Some hundreds of rounds are enough.
        for (int round = 0; round < kRoundsMax && !over(); ++round) {
            Side& side = sides_[random_() % sides_.size()];
            if (side.started < calls_.size() && random_() % 3 == 0) {
                start_next(side);
            }
            side.engine->progress();
        }
        REQUIRE(over());
    }

    void check() {
        for (std::size_t i = 0; i < calls_.size(); ++i) {
            for (std::size_t rank = 0; rank < sides_.size(); ++rank) {
                const Vector& expected = calls_[i].expected[rank];
                Vector found = calls_[i].outputs[rank];
                found.resize(std::min(found.size(), expected.size()));
                INFO("call " << i << " of " << calls_.size() << ", rank " << rank << " of "
                             << count_ << ": " << graph::name(calls_[i].row->collective) << " by "
                             << calls_[i].row->name << ", " << calls_[i].requests[rank].bytes
                             << " bytes, root " << calls_[i].requests[rank].root
                             << (calls_[i].requests[rank].in_place ? ", in place" : ""));
                // The extra parentheses keep Catch from printing the vectors.
                REQUIRE((found == expected));
            }
        }
        CHECK(fabric_.quiet());
    }

  private:
    static constexpr int kCalls = 8;
    static constexpr std::uint64_t kStagings[] = {2 << 10, 8 << 10, 256 << 10};
    static constexpr std::uint64_t kFlagSlots[] = {0, 1 << 10, 4 << 10};

    Side make_side(Rank rank) {
        Side side;
        side.routes = fabric_.routes(rank);
        for (const Call& call : calls_) {
            const auto& request = call.requests[static_cast<std::size_t>(rank)];
            const graph::Schedule schedule = call.row->build(facts_, request, rank);
            side.programs.push_back(engine::lower(schedule, side.routes).value());
        }
        for (const engine::Program& program : side.programs) {
            side.executions.emplace_back(program);
        }
        side.engine = std::make_unique<engine::Engine>(
            std::vector<transport::Transport*>{&fabric_.transport(rank)});
        return side;
    }

    void start_next(Side& side) {
        const auto rank = static_cast<std::size_t>(&side - sides_.data());
        Call& call = calls_[side.started];
        side.engine->start(side.executions[side.started],
                           {reinterpret_cast<std::byte*>(call.inputs[rank].data()),
                            reinterpret_cast<std::byte*>(call.outputs[rank].data()),
                            {combine, nullptr}});
        ++side.started;
    }

    bool over() const {
        return std::all_of(sides_.begin(), sides_.end(), [&](const Side& side) {
            return side.started == calls_.size() && side.engine->idle();
        });
    }

    Random random_;
    Rank count_;
    topo::Placement placement_;
    cost::Profile profile_ = cost::default_profile();
    plan::Facts facts_;
    plan::Facts without_;
    transport::LoopbackFabric fabric_;
    std::vector<Call> calls_;
    std::vector<Side> sides_;
};

} // namespace

TEST_CASE("engine: whatever is read of peers, in place or not, results are right",
          "[engine][peer][random]") {
    using transport::Delivery;
    constexpr std::uint64_t kSeeds = 60;
    for (const Delivery delivery :
         {Delivery::immediate, Delivery::reordered, Delivery::synchronous}) {
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
            INFO("seed " << seed << ", delivery " << static_cast<int>(delivery));
            Run run(seed, delivery);
            run.go();
            run.check();
        }
    }
}

} // namespace ucg
