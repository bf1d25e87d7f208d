// verify on schedules of many ranks that are generated with the Builder: the classic algorithms.
#include <chrono>

#include <fmt/format.h>

#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

using test::request;

std::vector<Schedule> build_all(const Request& request, void (*build)(Builder&, const Request&)) {
    std::vector<Schedule> schedules;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        Builder builder(request, rank, "test");
        build(builder, request);
        schedules.push_back(builder.finish());
    }
    return schedules;
}

std::string prove(const Request& request, void (*build)(Builder&, const Request&)) {
    const std::vector<Schedule> schedules = build_all(request, build);
    const auto start = std::chrono::steady_clock::now();
    const Status status = verify(schedules, std::span(&request, 1));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fmt::print("{} among {} ranks: {:.2f} s\n", name(request.collective), request.rank_count,
               seconds.count());
    return std::string(status.message());
}

/// The number of ranks must be a power of two.
void recursive_doubling(Builder& b, const Request& request) {
    const std::uint64_t bytes = request.bytes;
    Slice value = b.input(0, bytes);
    for (Rank distance = 1; distance < request.rank_count; distance *= 2) {
        const Rank peer = b.rank() ^ distance;
        const bool last = 2 * distance == request.rank_count;
        const Slice theirs = b.scratch(bytes);
        const Slice next = last ? b.output(0, bytes) : b.scratch(bytes);
        b.send(peer, value);
        b.recv(peer, theirs);
        const std::array operands = {peer < b.rank() ? theirs : value,
                                     peer < b.rank() ? value : theirs};
        b.reduce(operands, next);
        value = next;
    }
}

void ring(Builder& b, const Request& request) {
    const auto ranks = static_cast<std::uint64_t>(request.rank_count);
    const std::uint64_t block = request.bytes / ranks;
    const auto index = [&](Rank rank) {
        return static_cast<std::uint64_t>((rank + 2 * request.rank_count) % request.rank_count);
    };
    const Rank to = (b.rank() + 1) % request.rank_count;
    const auto from = static_cast<Rank>(index(b.rank() - 1));
    Slice value = b.input(index(b.rank()) * block, block);
    for (Rank step = 1; step < request.rank_count; ++step) {
        const std::uint64_t at = index(b.rank() - step) * block;
        const Slice theirs = b.scratch(block);
        const Slice next = step + 1 == request.rank_count ? b.output(at, block) : b.scratch(block);
        b.send(to, value);
        b.recv(from, theirs);
        const std::array operands = {theirs, b.input(at, block)};
        b.reduce(operands, next);
        value = next;
    }
    for (Rank step = 1; step < request.rank_count; ++step) {
        const Slice next = b.output(index(b.rank() + 1 - step) * block, block);
        b.send(to, value);
        b.recv(from, next);
        value = next;
    }
}

void linear_alltoall(Builder& b, const Request& request) {
    const auto at = [&](Rank rank) { return static_cast<std::uint64_t>(rank) * request.bytes; };
    b.copy(b.input(at(b.rank()), request.bytes), b.output(at(b.rank()), request.bytes));
    for (Rank step = 1; step < request.rank_count; ++step) {
        const Rank to = (b.rank() + step) % request.rank_count;
        const Rank from = (b.rank() - step + request.rank_count) % request.rank_count;
        b.recv(from, b.output(at(from), request.bytes));
        b.send(to, b.input(at(to), request.bytes));
    }
}

void dissemination(Builder& b, const Request& request) {
    std::vector<OpId> heard;
    for (Rank distance = 1; distance < request.rank_count; distance *= 2) {
        b.signal((b.rank() + distance) % request.rank_count, heard);
        heard.push_back(b.await((b.rank() - distance + request.rank_count) % request.rank_count));
    }
}

/// A dissemination in which a signal passes on only what the step before brought.
void forgetful_dissemination(Builder& b, const Request& request) {
    OpId heard = kNoOp;
    for (Rank distance = 1; distance < request.rank_count; distance *= 2) {
        b.signal((b.rank() + distance) % request.rank_count, {&heard, 1});
        heard = b.await((b.rank() - distance + request.rank_count) % request.rank_count);
    }
}

TEST_CASE("graph: every small change to recursive doubling is noticed", "[graph][verify][broken]") {
    const Request r = request(Collective::allreduce, 8, 16);
    std::vector<Schedule> schedules = build_all(r, recursive_doubling);
    const auto accepted = [&] { return verify(schedules, std::span(&r, 1)).ok(); };
    REQUIRE(accepted());
    const auto shift = [&](Slice& slice) {
        const Slice before = slice;
        slice.offset += 1;
        CHECK_FALSE(accepted());
        slice.offset -= 1;
        slice.length -= 1;
        CHECK_FALSE(accepted());
        slice = before;
    };
    for (Schedule& schedule : schedules) {
        for (Op& op : schedule.ops) {
            if (op.kind == OpKind::send) {
                shift(op.source);
            } else {
                shift(op.target);
            }
        }
        for (std::size_t i = 0; i < schedule.operands.size(); ++i) {
            shift(schedule.operands[i]);
            std::swap(schedule.operands[i], schedule.operands[i ^ 1U]);
            CHECK_FALSE(accepted());
            std::swap(schedule.operands[i], schedule.operands[i ^ 1U]);
        }
        // No dependency is redundant, so each one that is removed must be missed.
        for (std::size_t d = 0; d < schedule.dependencies.size(); ++d) {
            const Schedule whole = schedule;
            schedule.dependencies.erase(schedule.dependencies.begin() +
                                        static_cast<std::ptrdiff_t>(d));
            for (Op& op : schedule.ops) {
                op.first_dependency -= op.first_dependency > d ? 1 : 0;
            }
            CHECK_FALSE(accepted());
            schedule = whole;
        }
    }
    CHECK(accepted());
}

TEST_CASE("graph: verify proves many ranks in a time that it prints", "[graph][verify][scale]") {
    CHECK(prove(request(Collective::allreduce, 1024, 4096), recursive_doubling).empty());
    CHECK(prove(request(Collective::allreduce, 128, 128 * 64), ring).empty());
    CHECK(prove(request(Collective::alltoall, 256, 8), linear_alltoall).empty());
    CHECK(prove(request(Collective::barrier, 1024, 0), dissemination).empty());
    CHECK(prove(request(Collective::barrier, 8, 0), forgetful_dissemination) ==
          "rank 0: no op waits until rank 3 has entered the barrier");
}

TEST_CASE("graph: verify proves a ring among 256 ranks", "[.slow][graph][verify][scale]") {
    CHECK(prove(request(Collective::allreduce, 256, 256 * 64), ring).empty());
}

} // namespace
} // namespace ucg::graph
