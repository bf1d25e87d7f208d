// What the algorithms share in which each rank writes a board that its peers read: one write and,
// for each peer, a look, where messages cost a send and a receive for each. Li, Hoefler, Snir (HPDC
// 2013), section 2.6, pad the flags of a barrier so; here a line carries data and flag.
//
// Rows by boards serve groups of one host, the pieces (pieces.hpp) the ranks of each host, and what
// is short enough for a board, where all ranks know all lengths: a reader does not see that the
// writer gave another one, as messages do.
#pragma once

#include <array>

#include "ucg_coll/plan/boards/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"
#include "ucg_coll/plan/parts/needs.hpp"

namespace ucg::plan {

/// Have ranks boards for their host, which take so many bytes?
inline bool boards_take(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.board_bytes >= std::max<std::uint64_t>(bytes, 1);
}
inline constexpr Need kBoards = {
    "several ranks that have boards",
    [](const Facts& facts, const graph::Request&) { return facts.shared.board_bytes > 0; }};
inline constexpr std::string_view kTaken = "parts that a board takes";
/// Does a board take that, if there are boards?
inline bool board_takes(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.board_bytes == 0 || bytes <= facts.shared.board_bytes;
}
/// That a board takes the vector,
inline constexpr Need kVectorTaken = {kTaken,
                                      [](const Facts& facts, const graph::Request& request) {
                                          return board_takes(facts, request.bytes);
                                      }};
/// or a block for each rank.
inline constexpr Need kBlocksTaken = {
    kTaken, [](const Facts& facts, const graph::Request& request) {
        const auto count = static_cast<std::uint64_t>(request.rank_count);
        return facts.shared.board_bytes == 0 || request.bytes <= facts.shared.board_bytes / count;
    }};
inline constexpr std::array kVectorNeeds = {kOneHost, kBoards, kVectorTaken};
inline constexpr std::array kBlocksNeeds = {kOneHost, kBoards, kBlocksTaken};

/// What a rank does with boards.
struct BoardUse {
    Rank boards = 0;                ///< How many it reads.
    Rank readers = 0;               ///< How many ranks read at a time.
    std::uint64_t shared_bytes = 0; ///< On a board.
    std::uint64_t read_bytes = 0;   ///< Of each board.
    bool prefix = false;            ///< Each rank reads those of the ranks before it.
};

/// From the first share to the end of the last rank's reading. Who reads knows where to look, and
/// matches and takes no message.
double boards_ns(const Facts& facts, const BoardUse& use);
/// What a processor does of it for one rank that shares and reads.
double boards_work_ns(const Facts& facts, const Work& work, const BoardUse& use);
/// Both, where all ranks share and read alike and combine for `combine_ns` each, as the time of
/// the last.
double all_boards_ns(const Facts& facts, const BoardUse& use, double combine_ns);

/// Copying a block of each board to its place, and the own one while others are on their way.
double landing_ns(const Facts& facts, Rank count, std::uint64_t block_bytes);

/// What combining the boards of all but one of the operands, where they lie, adds to reading them.
double combining_boards_ns(const Facts& facts, Rank operands, std::uint64_t bytes);

/// The same bytes of all boards in the order of ranks `first` .. `last` - 1, `own` in the place of
/// the rank's own.
std::vector<graph::Slice> in_rank_order(const graph::Builder& builder, Rank first, Rank last,
                                        std::uint64_t offset, graph::Slice own);

} // namespace ucg::plan
