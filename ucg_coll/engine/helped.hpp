// Collectives whose ranks help one another (graph/helped.hpp): this rank does units of any part
// that names it, whether the part is its own or another rank's, until all these parts are over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/engine/reduction.hpp"
#include "ucg_coll/graph/helped.hpp"
#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::engine {

/// The parts of all ranks' schedules that name this rank. It is made once, with the rank's program.
struct HelpedProgram {
    transport::Help* help = nullptr; ///< Null: the schedule runs as it stands. Not owned.
    Rank rank = kNoRank;
    bool contributes_output = false;          ///< MPI_IN_PLACE: peers read the input in the output.
    std::vector<graph::Schedule> schedules;   ///< Of all ranks, in rank order.
    std::vector<transport::HelpedPart> parts; ///< Those that name this rank, its own first.
    std::vector<const graph::Schedule*> whose; ///< By part: its schedule, in `schedules`.
    std::vector<const graph::Repeat*> repeats; ///< By part: its ops, in `schedules`.
    std::uint64_t scratch_bytes = 0;           ///< The most scratch of any part's schedule.
    std::uint64_t unit_bytes = 0;              ///< Bytes of the longest slice of any unit.
    std::uint32_t operands_max = 1; ///< The most operands of any reduction. At least 1, since a
                                    ///< copy between buffers of peers that are not mapped needs
                                    ///< room for one slice.

    /// Returns how many bytes a run needs for scratch and for the operands of a unit.
    std::uint64_t run_bytes() const {
        return round_up(scratch_bytes, kCacheLine) + operands_max * unit_bytes;
    }

    HelpedProgram() = default;
    HelpedProgram(HelpedProgram&&) = default;
    HelpedProgram& operator=(HelpedProgram&&) = default;
};

/// Returns the helped program of `rank`. `schedules` are those of all ranks, in rank order, as
/// `rank` knows them. `help` must outlive the program. REQUIRES: graph::verify accepts the
/// schedules as helped ones.
HelpedProgram helped_program(std::span<const graph::Schedule> schedules, Rank rank,
                             transport::Help& help);

/// One run of a helped program, which must outlive it. Once it is made, it allocates only to
/// replace buffers that peers do not reach.
class HelpedRun {
  public:
    explicit HelpedRun(const HelpedProgram& program);

    /// One call of the collective: its number, plan, buffers and operator.
    struct Call {
        std::uint32_t sequence = 0;
        std::uint16_t plan = 0;
        std::byte* input = nullptr;
        std::uint64_t input_bytes = 0;
        std::byte* output = nullptr;
        std::uint64_t output_bytes = 0;
        Reduction reduction;
    };
    /// Tells the peers that this rank has begun the collective, and where its buffers are.
    void begin(const Call& call);

    enum class Outcome : std::uint8_t { waits, did_unit, over, failed };
    /// Does at most one unit of any part that names this rank.
    Outcome advance();

    /// Returns a number that changes with every unit that this rank does and every part that ends.
    std::uint64_t how_far() const { return events_; }

  private:
    /// Memory that peers are given in place of a buffer of the caller that they do not reach.
    struct StandIn {
        std::byte* buffer = nullptr;        ///< The caller's buffer.
        std::unique_ptr<std::byte[]> bytes; ///< What peers are given; null: the buffer itself.
    };

    void move_within_reach();
    bool stand_in(StandIn& place, std::byte*& buffer, std::uint64_t bytes) const;
    /// A unit that this rank has taken, and how much of it is done.
    struct Unit {
        std::size_t part = 0;      ///< Index into HelpedProgram::parts.
        std::uint64_t number = 0;  ///< The iteration of the part's repeat.
        std::uint32_t op = 0;      ///< Index, within the repeat, of the op that is next.
        std::uint32_t fetched = 0; ///< How many operands of that op have been fetched.
    };

    Outcome end();
    Outcome go_on();
    transport::Help::Copied do_unit();
    std::byte* own(const graph::Slice& slice) const;
    std::byte* find(const graph::Slice& slice) const;
    std::byte* operand_room(std::uint32_t index) const {
        return operands_ + index * program_.unit_bytes;
    }
    transport::Help::Copied fetch(const graph::Slice& slice, std::byte* room);
    transport::Help::Copied copy(const graph::Slice& source, const graph::Slice& target);
    transport::Help::Copied reduce(const graph::Schedule& schedule, const graph::Repeat& repeat,
                                   const graph::Op& op);

    const HelpedProgram& program_;
    Call call_;
    std::vector<bool> over_;                 ///< By part: whether it is over.
    std::size_t left_ = 0;                   ///< How many parts are not over.
    std::uint64_t events_ = 0;               ///< Units that this rank has done, and ended parts.
    std::optional<Unit> unit_;               ///< The unit that this rank does, if any.
    std::vector<const std::byte*> pointers_; ///< Where the operands of the unit's op are.
    std::unique_ptr<std::byte[]> room_;
    std::byte* scratch_ = nullptr; ///< In `room_`: the scratch of the unit, whoever's part it is.
    StandIn input_;
    StandIn output_;
    std::byte* operands_ = nullptr; ///< In `room_`, behind the scratch: copies of peers' operands.
};

} // namespace ucg::engine
