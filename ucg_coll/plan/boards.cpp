#include "ucg_coll/plan/boards.hpp"

#include "ucg_coll/plan/shared_pieces.hpp"

namespace ucg::plan {
namespace {

/// What stands before the data: half a line, and what does not fit the other half is elsewhere.
constexpr std::uint64_t kHeadBytes = kCacheLine / 2;

std::uint64_t line_bytes(std::uint64_t bytes) {
    return round_up(kHeadBytes + bytes, kCacheLine);
}

/// Without the time until the first line has come, which a message has as well.
double reading_ns(const Facts& facts, Rank boards, Rank readers, std::uint64_t read_bytes) {
    const cost::MemoryLevel& level = widest_level(facts);
    const std::uint64_t all = static_cast<std::uint64_t>(boards) * line_bytes(read_bytes);
    return cost::contended_read_ns(level, static_cast<std::uint64_t>(readers), all) -
           (readers > 0 ? level.latency_ns : 0);
}

} // namespace

double boards_ns(const Facts& facts, const BoardUse& use) {
    return host_link(facts).message_ns(0) + cost::copy_ns(facts.profile.memory, use.shared_bytes) +
           reading_ns(facts, use.boards, use.readers, use.read_bytes);
}

double boards_work_ns(const Facts& facts, const Work& work, const BoardUse& use) {
    return work.link().message_ns(0) + work.link().copy_ns(use.shared_bytes) +
           reading_ns(facts, use.boards, 1, use.read_bytes);
}

double all_boards_ns(const Facts& facts, const BoardUse& use, double combine_ns) {
    const std::uint64_t touched =
        use.shared_bytes + static_cast<std::uint64_t>(use.boards) * line_bytes(use.read_bytes);
    return crowded_ns(
        facts, host_link(facts), touched, boards_ns(facts, use) + combine_ns,
        [&](const Work& work) { return boards_work_ns(facts, work, use) + combine_ns; });
}

std::vector<graph::Slice> in_rank_order(const graph::Builder& builder, Rank first, Rank last,
                                        std::uint64_t offset, graph::Slice own) {
    std::vector<graph::Slice> slices;
    for (Rank rank = first; rank < last; ++rank) {
        slices.push_back(rank == builder.rank() ? own
                                                : graph::Builder::board(rank, offset, own.length));
    }
    return slices;
}

} // namespace ucg::plan
