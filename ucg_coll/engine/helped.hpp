// Collectives whose ranks help one another (graph/helped.hpp): this rank does units of whatever
// part names it, its own or another's, until all of them are over.
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

/// What a rank needs of all ranks' schedules: made once, with its program.
struct HelpedProgram {
    transport::Help* help = nullptr; ///< Null: the schedule runs as it stands. Not owned.
    Rank rank = kNoRank;
    bool contributes_output = false;           ///< MPI_IN_PLACE: where others look for the input.
    std::vector<graph::Schedule> schedules;    ///< Of ranks with parts that name this one.
    std::vector<transport::HelpedPart> parts;  ///< These, the own ones first,
    std::vector<const graph::Schedule*> whose; ///< whose each is,
    std::vector<const graph::Repeat*> repeats; ///< and its ops. Into `schedules`.
    std::uint64_t scratch_bytes = 0;           ///< The most that one has,
    std::uint64_t unit_bytes = 0;              ///< the longest slice of a unit,
    std::uint32_t operands_max = 1;            ///< and the most operands of a reduction; a copy
                                               ///< between others' unmapped memory needs room, too.

    HelpedProgram() = default;
    HelpedProgram(HelpedProgram&&) = default;
    HelpedProgram& operator=(HelpedProgram&&) = default;
};

/// `schedules`: of all ranks, in rank order, as `rank` knows them. REQUIRES: as verify says of
/// helped schedules.
HelpedProgram helped_program(std::span<const graph::Schedule> schedules, Rank rank,
                             transport::Help& help);

/// One run of it. Once it is made it allocates for buffers alone that peers do not reach.
class HelpedRun {
  public:
    explicit HelpedRun(const HelpedProgram& program);

    /// What a collective works on.
    struct Call {
        std::uint32_t sequence = 0;
        std::uint16_t plan = 0;
        std::byte* input = nullptr;
        std::uint64_t input_bytes = 0;
        std::byte* output = nullptr;
        std::uint64_t output_bytes = 0;
        Reduction reduction;
    };
    void begin(const Call& call);

    enum class Outcome : std::uint8_t { waits, did_unit, over, failed };
    /// Does a unit, at most, of what is to be done.
    Outcome advance();

  private:
    /// What peers are given in the place of a buffer that they do not reach.
    struct StandIn {
        std::byte* buffer = nullptr;
        std::unique_ptr<std::byte[]> bytes;
    };

    void move_within_reach();
    bool stand_in(StandIn& place, std::byte*& buffer, std::uint64_t bytes) const;
    /// A unit that this rank has taken, and how far it is.
    struct Unit {
        std::size_t part = 0;
        std::uint64_t number = 0;
        std::uint32_t op = 0;      ///< Of its ops.
        std::uint32_t fetched = 0; ///< Of that one's operands.
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
    std::vector<bool> over_; ///< By part.
    std::size_t left_ = 0;   ///< Of them.
    std::optional<Unit> unit_;
    std::vector<const std::byte*> pointers_;
    std::unique_ptr<std::byte[]> room_;
    std::byte* scratch_ = nullptr; ///< In `room_`; of whoever's part this rank is at.
    StandIn input_;
    StandIn output_;
    std::byte* operands_ = nullptr; ///< Behind it: what was read of peers' memory.
};

} // namespace ucg::engine
