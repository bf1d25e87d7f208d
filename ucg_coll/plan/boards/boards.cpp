#include "ucg_coll/plan/boards/boards.hpp"

namespace ucg::plan {
namespace {

std::uint64_t lines_of(const BoardUse& use) {
    return static_cast<std::uint64_t>(use.boards) * cost::board_line_bytes(use.read_bytes);
}

/// Without the time until the first line has come, which a message has as well.
double reading_ns(const Facts& facts, const BoardUse& use, Rank readers) {
    return cost::board_lines_ns(widest_level(facts), static_cast<std::uint64_t>(readers),
                                lines_of(use));
}

} // namespace

double boards_ns(const Facts& facts, const BoardUse& use) {
    return host_link(facts).message_ns(0) + cost::copy_ns(facts.profile.memory, use.shared_bytes) +
           reading_ns(facts, use, use.readers);
}

double boards_work_ns(const Facts& facts, const Work& work, const BoardUse& use) {
    return work.link().message_ns(0) + work.link().copy_ns(use.shared_bytes) +
           reading_ns(facts, use, 1);
}

/// Who shares looks in the same step (the engine's `share`), where of messages a rank sends one and
/// takes another.
double all_boards_ns(const Facts& facts, const BoardUse& use, double combine_ns) {
    const std::uint64_t touched = use.shared_bytes + lines_of(use);
    const Link link = host_link(facts);
    return crowded_ns(facts, link, touched, boards_ns(facts, use) - link.take_ns() + combine_ns,
                      [&](const Work& work) {
                          return boards_work_ns(facts, work, use) - work.link().take_ns() +
                                 combine_ns;
                      });
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
