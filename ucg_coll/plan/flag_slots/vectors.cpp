// Gatherv and scatterv by flag slots. Only the root knows all lengths, but both ends of a block
// know its length, and by that alone decide whether the block goes by a flag slot or by a message.
// A call may have blocks of both kinds. Empty blocks go nowhere.
#include <algorithm>
#include <optional>

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

constexpr std::array kNeeds = {kOneHost, kFlagSlots};

/// The rows for equal blocks by flag slots and by messages. Their prices decide how the blocks of a
/// gatherv or scatterv go.
struct EqualRows {
    const Algorithm& flag_slots;
    const Algorithm& messages;
};
constexpr EqualRows kGathers = {kGatherFlagSlots, kGatherLinear};
constexpr EqualRows kScatters = {kScatterFlagSlots, kScatterLinear};

graph::Request of_equal_blocks(const EqualRows& rows, const graph::Request& request,
                               std::uint64_t bytes) {
    graph::Request equal;
    equal.collective = rows.flag_slots.collective;
    equal.rank_count = request.rank_count;
    equal.root = request.root;
    equal.bytes = bytes;
    return equal;
}

/// Returns whether all blocks would go by flag slots if all had `bytes`.
bool prefers_flag_slots(const Facts& facts, const EqualRows& rows, const graph::Request& request,
                        std::uint64_t bytes) {
    const graph::Request equal = of_equal_blocks(rows, request, bytes);
    return rows.flag_slots.cost_ns(facts, equal) <= rows.messages.cost_ns(facts, equal);
}

double gatherv_ns(const Facts& facts, const graph::Request& request) {
    return kGatherFlagSlots.cost_ns(facts,
                                    of_equal_blocks(kGathers, request, uniform_bytes(request)));
}

double scatterv_ns(const Facts& facts, const graph::Request& request) {
    return kScatterFlagSlots.cost_ns(facts,
                                     of_equal_blocks(kScatters, request, uniform_bytes(request)));
}

bool gathered_by_flag_slot(const Facts& facts, const graph::Request& request, std::uint64_t bytes) {
    return bytes > 0 && bytes <= facts.shared.flag_slot_bytes &&
           prefers_flag_slots(facts, kGathers, request, bytes);
}

graph::Schedule build_gatherv(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kGathervFlagSlots.name);
    builder.flag_slots();
    const Team team = Team::whole(request.rank_count, rank);
    const BlockMap target =
        rank == request.root ? output_blocks(builder, request) : BlockMap::of({});
    const Slice own = gather_contribution(builder, request, target);
    if (rank != request.root) {
        if (gathered_by_flag_slot(facts, request, own.length)) {
            builder.share(own);
        } else {
            builder.send(request.root, own);
        }
        return builder.finish();
    }
    MessageWindow under_way(kWindow);
    std::vector<Rank> sharers;
    for (Rank distance = 1; distance < request.rank_count; ++distance) {
        const Rank from = neighbour_index(team, distance);
        if (gathered_by_flag_slot(facts, request, target.bytes(from))) {
            sharers.push_back(from);
        } else {
            under_way.push({builder.recv(from, target.block(from), under_way.after())});
        }
    }
    builder.copy(own, target.block(rank));
    for (const Rank from : sharers) {
        builder.copy(Builder::flag_slot(from, 0, target.bytes(from)), target.block(from));
    }
    return builder.finish();
}

/// The places of blocks on the root's flag slot, each of which depends only on the reader and the
/// length of its own block. For each doubling of the length there is a place for each reader, so
/// that short blocks lie close together and no two overlap. A single reader has the flag slot to
/// itself.
class FlagSlotPlaces {
  public:
    FlagSlotPlaces(const Facts& facts, const graph::Request& request)
        : readers_(static_cast<std::uint64_t>(request.rank_count) - 1), root_(request.root),
          flag_slot_bytes_(facts.shared.flag_slot_bytes) {}

    /// Returns where the block of a reader begins; nothing if the block is too long.
    std::optional<std::uint64_t> offset(Rank reader, std::uint64_t bytes) const {
        if (readers_ == 1) {
            return bytes <= flag_slot_bytes_ ? std::optional<std::uint64_t>(0) : std::nullopt;
        }
        std::uint64_t place = kShortestPlace;
        std::uint64_t first = 0;
        for (; place < bytes && place <= flag_slot_bytes_; place *= 2) {
            first += readers_ * place;
        }
        if (first + readers_ * place > flag_slot_bytes_) {
            return std::nullopt;
        }
        return first + index(reader) * place;
    }

  private:
    static constexpr std::uint64_t kShortestPlace = sizeof(double);

    /// Returns the index of a reader among all readers, counted from the root on.
    std::uint64_t index(Rank reader) const {
        return reader > root_ ? static_cast<std::uint64_t>(reader) - root_ - 1
                              : static_cast<std::uint64_t>(reader) + readers_ - root_;
    }

    std::uint64_t readers_;
    Rank root_;
    std::uint64_t flag_slot_bytes_;
};

std::optional<std::uint64_t> place_on_flag_slot(const Facts& facts, const graph::Request& request,
                                                Rank reader, std::uint64_t bytes) {
    return bytes > 0 && prefers_flag_slots(facts, kScatters, request, bytes)
               ? FlagSlotPlaces(facts, request).offset(reader, bytes)
               : std::nullopt;
}

/// A block on the root's flag slot.
struct Placed {
    std::uint64_t offset = 0;
    Slice block;
};

/// Shares the blocks: in place if they lie in the input as on the flag slot, else by way of
/// scratch. Nobody reads the gaps between them.
void share_placed(Builder& builder, std::vector<Placed> placed) {
    if (placed.empty()) {
        return;
    }
    std::sort(placed.begin(), placed.end(),
              [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    std::vector<Slice> runs;
    std::uint64_t end = 0;
    bool has_gaps = false;
    for (const Placed& one : placed) {
        has_gaps = has_gaps || one.offset != end;
        end = one.offset + one.block.length;
        append_slice(runs, one.block);
    }
    if (!has_gaps) {
        builder.share(packed(builder, runs));
        return;
    }
    const Slice flag_slot = builder.scratch(end);
    for (const Placed& one : placed) {
        builder.copy(one.block, part(flag_slot, one.offset, one.block.length));
    }
    builder.share(flag_slot);
}

graph::Schedule build_scatterv(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kScattervFlagSlots.name);
    builder.flag_slots();
    const Slice own = scatter_result(builder, request);
    if (rank != request.root) {
        if (const auto offset = place_on_flag_slot(facts, request, rank, own.length)) {
            builder.copy(Builder::flag_slot(request.root, *offset, own.length), own);
        } else {
            builder.recv(request.root, own);
        }
        return builder.finish();
    }
    const Team team = Team::whole(request.rank_count, rank);
    const BlockMap source = input_blocks(builder, request);
    std::vector<Placed> placed;
    std::vector<Rank> receivers;
    for (Rank distance = 1; distance < request.rank_count; ++distance) {
        const Rank to = neighbour_index(team, distance);
        if (const auto offset = place_on_flag_slot(facts, request, to, source.bytes(to))) {
            placed.push_back({*offset, source.block(to)});
        } else {
            receivers.push_back(to);
        }
    }
    share_placed(builder, std::move(placed));
    MessageWindow under_way(kWindow);
    for (const Rank to : receivers) {
        under_way.push({builder.send(to, source.block(to), under_way.after())});
    }
    if (own.length > 0) {
        builder.copy(source.block(rank), own);
    }
    return builder.finish();
}

} // namespace

const Algorithm kGathervFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::gatherv,
    .summary = "short blocks are written once, where the root reads them; long ones are sent",
    .cost_ns = gatherv_ns,
    .build = build_gatherv,
    .needs = kNeeds,
};

const Algorithm kScattervFlagSlots = {
    .name = "flag_slots",
    .collective = graph::Collective::scatterv,
    .summary = "the root writes short blocks at once, each at a place of its own, and sends others",
    .cost_ns = scatterv_ns,
    .build = build_scatterv,
    .needs = kNeeds,
};

} // namespace ucg::plan
