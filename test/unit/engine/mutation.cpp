#include "test/unit/engine/mutation.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "test/unit/engine/draft.hpp"

namespace ucg::test {
namespace {

using graph::Dependency;
using graph::OpKind;
using graph::Repeat;
using graph::Schedule;
using graph::Slice;
using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) {
    return bound == 0 ? 0 : random() % bound;
}

template <typename T, std::size_t n>
T any_of(const std::array<T, n>& values, Random& random) {
    return values[below(random, n)];
}

Repeat* repeat_around(Draft& draft, std::size_t index) {
    for (Repeat& repeat : draft.header.repeats) {
        if (index >= repeat.first_op && index - repeat.first_op < repeat.op_count) {
            return &repeat;
        }
    }
    return nullptr;
}

/// A random step for which `fits` holds; null if there is none.
template <typename Fits>
DraftStep* any_step(Draft& draft, Random& random, Fits&& fits) {
    const std::size_t count = draft.steps.size();
    const std::size_t begin = below(random, count);
    for (std::size_t i = 0; i < count; ++i) {
        DraftStep& step = draft.steps[(begin + i) % count];
        if (fits(step)) {
            return &step;
        }
    }
    return nullptr;
}

Dependency* any_dependency(Draft& draft, Random& random) {
    DraftStep* step = any_step(draft, random, [](const DraftStep& s) { return !s.after.empty(); });
    return step == nullptr ? nullptr : &step->after[below(random, step->after.size())];
}

std::vector<Slice*> slices_of(DraftStep& step) {
    std::vector<Slice*> slices;
    if (graph::has_source(step.op.kind)) {
        slices.push_back(&step.op.source);
    }
    if (graph::has_target(step.op.kind)) {
        slices.push_back(&step.op.target);
    }
    for (Slice& operand : step.operands) {
        slices.push_back(&operand);
    }
    return slices;
}

Slice* any_slice(Draft& draft, Random& random) {
    DraftStep* step = any_step(draft, random, [](DraftStep& s) { return !slices_of(s).empty(); });
    if (step == nullptr) {
        return nullptr;
    }
    const std::vector<Slice*> slices = slices_of(*step);
    return slices[below(random, slices.size())];
}

Rank any_rank(const Draft& draft, Random& random) {
    return static_cast<Rank>(below(random, static_cast<std::size_t>(draft.header.rank_count)));
}

bool drop_dependency(Draft& draft, Random& random) {
    DraftStep* step = any_step(draft, random, [](const DraftStep& s) { return !s.after.empty(); });
    if (step == nullptr) {
        return false;
    }
    const std::size_t index = below(random, step->after.size());
    step->after.erase(step->after.begin() + static_cast<std::ptrdiff_t>(index));
    return true;
}

bool add_dependency(Draft& draft, Random& random) {
    if (draft.steps.empty()) {
        return false;
    }
    const std::size_t index = below(random, draft.steps.size());
    const Repeat* repeat = repeat_around(draft, index);
    if (repeat != nullptr && random() % 2 == 0) {
        draft.steps[index].after.push_back(
            dependency(repeat->first_op + below(random, repeat->op_count), 1 + random() % 15));
    } else {
        draft.steps[index].after.push_back(dependency(below(random, index + 1), 0));
    }
    return true;
}

bool redirect_dependency(Draft& draft, Random& random) {
    Dependency* on = any_dependency(draft, random);
    if (on == nullptr) {
        return false;
    }
    *on = dependency(below(random, draft.steps.size()), on->distance);
    return true;
}

bool change_distance(Draft& draft, Random& random) {
    DraftStep* step = any_step(draft, random, [](const DraftStep& s) {
        return std::any_of(s.after.begin(), s.after.end(),
                           [](Dependency on) { return on.distance > 0; });
    });
    Dependency* on = step == nullptr || random() % 4 == 0
                         ? any_dependency(draft, random)
                         : &step->after[below(random, step->after.size())];
    if (on == nullptr) {
        return false;
    }
    *on = dependency(on->op, random() % 2 == 0 ? on->distance + 1 : random() % 16);
    return true;
}

bool change_peer(Draft& draft, Random& random) {
    DraftStep* step =
        any_step(draft, random, [](const DraftStep& s) { return graph::has_peer(s.op.kind); });
    if (step == nullptr) {
        return false;
    }
    step->op.peer = any_rank(draft, random);
    return true;
}

std::uint64_t shifted(std::uint64_t value, Random& random) {
    constexpr std::array<std::uint64_t, 6> kBy = {1, 4, 8, 16, 64, 128};
    const std::uint64_t by = any_of(kBy, random);
    return random() % 2 == 0 || by > value ? value + by : value - by;
}

bool change_offset(Draft& draft, Random& random) {
    Slice* slice = any_slice(draft, random);
    const Slice* other = any_slice(draft, random);
    if (slice == nullptr) {
        return false;
    }
    slice->offset = random() % 2 == 0 ? other->offset : shifted(slice->offset, random);
    return true;
}

/// Changes the length of one slice, or of all slices of an op.
bool change_length(Draft& draft, Random& random) {
    DraftStep* step = any_step(draft, random, [](DraftStep& s) { return !slices_of(s).empty(); });
    if (step == nullptr) {
        return false;
    }
    const std::vector<Slice*> slices = slices_of(*step);
    const std::uint64_t length = shifted(slices[0]->length, random);
    if (random() % 2 == 0) {
        slices[below(random, slices.size())]->length = length;
    } else {
        for (Slice* slice : slices) {
            slice->length = length;
        }
    }
    return true;
}

bool empty_op(Draft& draft, Random& random) {
    DraftStep* step = any_step(draft, random, [](DraftStep& s) { return !slices_of(s).empty(); });
    if (step == nullptr) {
        return false;
    }
    for (Slice* slice : slices_of(*step)) {
        slice->length = 0;
    }
    return true;
}

bool change_owner(Draft& draft, Random& random) {
    Slice* slice = any_slice(draft, random);
    if (slice == nullptr) {
        return false;
    }
    slice->owner = any_rank(draft, random);
    return true;
}

bool change_buffer(Draft& draft, Random& random) {
    Slice* slice = any_slice(draft, random);
    if (slice == nullptr) {
        return false;
    }
    slice->buffer = any_of(graph::kBufferKinds, random);
    return true;
}

bool change_stride(Draft& draft, Random& random) {
    if (draft.header.repeats.empty()) {
        return false;
    }
    Slice* slice = any_slice(draft, random);
    if (slice == nullptr) {
        return false;
    }
    slice->stride = static_cast<graph::Stride>(random() % 3);
    return true;
}

bool change_kind(Draft& draft, Random& random) {
    constexpr std::array kKinds = {OpKind::send,   OpKind::recv,  OpKind::copy,    OpKind::reduce,
                                   OpKind::signal, OpKind::await, OpKind::publish, OpKind::share};
    DraftStep* step = any_step(draft, random, [](const DraftStep&) { return true; });
    if (step == nullptr) {
        return false;
    }
    step->op.kind = any_of(kKinds, random);
    return true;
}

/// Two neighbouring steps change places. Their dependencies move with them, and those of other
/// steps follow.
bool swap_neighbours(Draft& draft, Random& random) {
    if (draft.steps.size() < 2) {
        return false;
    }
    const std::size_t first = below(random, draft.steps.size() - 1);
    std::swap(draft.steps[first], draft.steps[first + 1]);
    for (DraftStep& step : draft.steps) {
        for (Dependency& on : step.after) {
            if (on.op == first || on.op == first + 1) {
                on = dependency(on.op == first ? first + 1 : first, on.distance);
            }
        }
    }
    return true;
}

/// Any two steps change places; the dependencies stay where they are.
bool swap_ops(Draft& draft, Random& random) {
    if (draft.steps.size() < 2) {
        return false;
    }
    DraftStep& one = draft.steps[below(random, draft.steps.size())];
    DraftStep& other = draft.steps[below(random, draft.steps.size())];
    std::swap(one.op, other.op);
    std::swap(one.operands, other.operands);
    return true;
}

bool drop_op(Draft& draft, Random& random) {
    if (draft.steps.empty()) {
        return false;
    }
    remove(draft, below(random, draft.steps.size()), random() % 2 == 0);
    return true;
}

template <OpKind kind>
bool drop_kind(Draft& draft, Random& random) {
    const DraftStep* step =
        any_step(draft, random, [](const DraftStep& s) { return s.op.kind == kind; });
    if (step == nullptr) {
        return false;
    }
    remove(draft, static_cast<std::size_t>(step - draft.steps.data()), random() % 2 == 0);
    return true;
}

bool duplicate_op(Draft& draft, Random& random) {
    if (draft.steps.empty()) {
        return false;
    }
    const std::size_t index = below(random, draft.steps.size());
    insert_after(draft, index, draft.steps[index]);
    return true;
}

/// Removes all publish ops, so that peers read memory that no op has made readable.
bool publish_nothing(Draft& draft, Random& random) {
    bool changed = false;
    for (std::size_t i = draft.steps.size(); i-- > 0;) {
        if (draft.steps[i].op.kind == OpKind::publish) {
            remove(draft, i, true);
            changed = true;
        }
    }
    draft.header.staging_buffer_bytes = random() % 2 == 0 ? 0 : draft.header.staging_buffer_bytes;
    return changed;
}

DraftStep* any_reduction(Draft& draft, Random& random) {
    return any_step(draft, random, [](const DraftStep& s) {
        return s.op.kind == OpKind::reduce && s.operands.size() > 1;
    });
}

bool swap_operands(Draft& draft, Random& random) {
    DraftStep* step = any_reduction(draft, random);
    if (step == nullptr) {
        return false;
    }
    std::swap(step->operands[below(random, step->operands.size())],
              step->operands[below(random, step->operands.size())]);
    return true;
}

bool drop_operand(Draft& draft, Random& random) {
    DraftStep* step = any_reduction(draft, random);
    if (step == nullptr) {
        return false;
    }
    const auto index = static_cast<std::ptrdiff_t>(below(random, step->operands.size()));
    step->operands.erase(step->operands.begin() + index);
    return true;
}

bool duplicate_operand(Draft& draft, Random& random) {
    DraftStep* step = any_reduction(draft, random);
    if (step == nullptr) {
        return false;
    }
    step->operands.push_back(step->operands[below(random, step->operands.size())]);
    return true;
}

bool change_repeat(Draft& draft, Random& random) {
    std::vector<Repeat>& repeats = draft.header.repeats;
    if (repeats.empty()) {
        return false;
    }
    Repeat& repeat = repeats[below(random, repeats.size())];
    switch (random() % 8) {
    case 0: repeat.iterations += random() % 2 == 0 ? 1 : static_cast<std::uint64_t>(-1); break;
    case 1: repeat.iterations = 2 + random() % 20; break;
    case 2: repeat.rotation = static_cast<std::uint32_t>(random() % 17); break;
    case 3: repeat.segment_bytes = shifted(repeat.segment_bytes, random); break;
    case 4: repeat.last_bytes = shifted(repeat.last_bytes, random); break;
    case 5: repeat.first_op += random() % 2 == 0 ? 1 : 0xffffffffU; break;
    case 6: repeat.op_count += random() % 2 == 0 ? 1 : 0xffffffffU; break;
    default: repeats.erase(repeats.begin() + (&repeat - repeats.data())); break;
    }
    return true;
}

/// An earlier change may have left repeats that make no sense.
bool may_be_written_out(const Draft& draft) {
    std::size_t end = 0;
    for (const Repeat& repeat : draft.header.repeats) {
        const std::size_t size = draft.steps.size();
        if (repeat.first_op < end || repeat.first_op > size || repeat.op_count == 0 ||
            repeat.op_count > size - repeat.first_op || repeat.iterations > 100 ||
            repeat.rotation < 1) {
            return false;
        }
        end = std::size_t{repeat.first_op} + repeat.op_count;
    }
    return std::all_of(draft.steps.begin(), draft.steps.end(), [&](const DraftStep& step) {
        return std::all_of(step.after.begin(), step.after.end(),
                           [&](Dependency on) { return on.op < draft.steps.size(); });
    });
}

/// Writes out one rank's repeats. The schedule still does the same.
bool write_out(Draft& draft, Random& /*random*/) {
    if (draft.header.repeats.empty() || !may_be_written_out(draft)) {
        return false;
    }
    draft = take_apart(graph::unroll(put_together(draft)));
    return true;
}

/// Makes a repeat of ops that were in none.
bool add_repeat(Draft& draft, Random& random) {
    if (draft.steps.empty() || !draft.header.repeats.empty()) {
        return false;
    }
    const std::size_t first = below(random, draft.steps.size());
    const std::size_t count =
        1 + below(random, std::min<std::size_t>(3, draft.steps.size() - first));
    const std::vector<Slice*> slices = slices_of(draft.steps[first]);
    const std::uint64_t segment =
        slices.empty() ? 8 : std::max<std::uint64_t>(1, slices[0]->length);
    draft.header.repeats = {{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count),
                             2 + random() % 10, segment, segment, 1}};
    return true;
}

bool change_header(Draft& draft, Random& random) {
    Schedule& header = draft.header;
    switch (random() % 11) {
    case 0: header.exposed = !header.exposed; break;
    case 1: header.flag_slots = !header.flag_slots; break;
    case 2: header.flag_slot_bytes = shifted(header.flag_slot_bytes, random); break;
    case 3:
        header.staging_buffer_bytes =
            random() % 2 == 0 ? 0 : shifted(header.staging_buffer_bytes, random);
        break;
    case 4: header.scratch_bytes = shifted(header.scratch_bytes, random); break;
    case 5: header.element_bytes = shifted(header.element_bytes, random); break;
    case 6: header.in_place = !header.in_place; break;
    case 7: header.output_bytes = shifted(header.output_bytes, random); break;
    case 8: header.own_scratch_bytes = shifted(header.own_scratch_bytes, random); break;
    case 9: header.helped = !header.helped; break;
    default: header.input_bytes = shifted(header.input_bytes, random); break;
    }
    return true;
}

struct OfOneRank {
    std::string_view name;
    bool (*apply)(Draft& draft, Random& random);
};
constexpr std::array kOfOneRank = {
    OfOneRank{"drop a dependency", drop_dependency},
    OfOneRank{"add a dependency", add_dependency},
    OfOneRank{"redirect a dependency", redirect_dependency},
    OfOneRank{"change a distance", change_distance},
    OfOneRank{"change a peer", change_peer},
    OfOneRank{"change an offset", change_offset},
    OfOneRank{"change a length", change_length},
    OfOneRank{"empty an op", empty_op},
    OfOneRank{"change an owner", change_owner},
    OfOneRank{"change a buffer", change_buffer},
    OfOneRank{"change a stride", change_stride},
    OfOneRank{"change a kind", change_kind},
    OfOneRank{"swap neighbours", swap_neighbours},
    OfOneRank{"swap ops", swap_ops},
    OfOneRank{"drop an op", drop_op},
    OfOneRank{"drop an await", drop_kind<OpKind::await>},
    OfOneRank{"drop a signal", drop_kind<OpKind::signal>},
    OfOneRank{"drop a publish", drop_kind<OpKind::publish>},
    OfOneRank{"drop a share", drop_kind<OpKind::share>},
    OfOneRank{"publish nothing", publish_nothing},
    OfOneRank{"duplicate an op", duplicate_op},
    OfOneRank{"swap operands", swap_operands},
    OfOneRank{"drop an operand", drop_operand},
    OfOneRank{"duplicate an operand", duplicate_operand},
    OfOneRank{"change a repeat", change_repeat},
    OfOneRank{"write repeats out", write_out},
    OfOneRank{"add a repeat", add_repeat},
    OfOneRank{"change the header", change_header},
};

/// The two ends of a message or event: the k-th of that kind between two ranks, outside repeats.
struct Ends {
    Draft* from = nullptr;
    Draft* to = nullptr;
    std::size_t out = 0;
    std::size_t in = 0;
};

Ends any_ends(std::vector<Draft>& drafts, Random& random) {
    Draft& from = drafts[below(random, drafts.size())];
    const DraftStep* out = any_step(from, random, [](const DraftStep& s) {
        return s.op.kind == OpKind::send || s.op.kind == OpKind::signal;
    });
    if (out == nullptr || !from.header.repeats.empty()) {
        return {};
    }
    const auto same = [&](const DraftStep& step, OpKind kind, Rank peer) {
        return step.op.kind == kind && step.op.peer == peer;
    };
    const auto index = static_cast<std::size_t>(out - from.steps.data());
    auto number =
        std::count_if(from.steps.begin(), from.steps.begin() + (out - from.steps.data()),
                      [&](const DraftStep& s) { return same(s, out->op.kind, out->op.peer); });
    const OpKind other = out->op.kind == OpKind::send ? OpKind::recv : OpKind::await;
    Draft& to = drafts[static_cast<std::size_t>(out->op.peer) % drafts.size()];
    for (std::size_t i = 0; i < to.steps.size() && to.header.repeats.empty(); ++i) {
        if (same(to.steps[i], other, from.header.rank) && number-- == 0) {
            return {&from, &to, index, i};
        }
    }
    return {};
}

bool drop_ends(const Ends& ends, Random& random) {
    remove(*ends.from, ends.out, random() % 2 == 0);
    remove(*ends.to, ends.in, random() % 2 == 0);
    return true;
}

/// Sends one message in two parts, which is right, or only one of the parts, which is not.
bool split_ends(const Ends& ends, Random& random) {
    Slice& source = ends.from->steps[ends.out].op.source;
    Slice& target = ends.to->steps[ends.in].op.target;
    if (source.length < 2 || source.length != target.length) {
        return false;
    }
    const std::uint64_t cut = 1 + below(random, source.length - 1);
    DraftStep more_out = ends.from->steps[ends.out];
    DraftStep more_in = ends.to->steps[ends.in];
    more_out.op.source = graph::part(source, cut, source.length - cut);
    more_in.op.target = graph::part(target, cut, target.length - cut);
    source.length = cut;
    target.length = cut;
    if (random() % 4 == 0) {
        return true;
    }
    // Steps that waited for the whole message wait for both parts.
    for (DraftStep& step : ends.to->steps) {
        const bool waits = std::any_of(step.after.begin(), step.after.end(),
                                       [&](Dependency on) { return on.op == ends.in; });
        if (waits) {
            step.after.push_back(dependency(ends.in, 0));
        }
    }
    insert_after(*ends.from, ends.out, more_out);
    insert_after(*ends.to, ends.in, more_in);
    for (DraftStep& step : ends.to->steps) {
        const auto twice = std::count_if(step.after.begin(), step.after.end(),
                                         [&](Dependency on) { return on.op == ends.in; });
        if (twice > 1) {
            step.after.back() = dependency(ends.in + 1, 0);
        }
    }
    return true;
}

/// Adds a signal and the wait for it, which is one more than needed.
bool add_event(const Ends& ends, Random& random) {
    DraftStep signal;
    signal.op.kind = OpKind::signal;
    signal.op.peer = ends.to->header.rank;
    DraftStep await;
    await.op.kind = OpKind::await;
    await.op.peer = ends.from->header.rank;
    insert_after(*ends.from, below(random, ends.from->steps.size()), signal);
    insert_after(*ends.to, below(random, ends.to->steps.size()), await);
    return true;
}

struct OfEnds {
    std::string_view name;
    bool (*apply)(const Ends& ends, Random& random);
};
constexpr std::array kOfEnds = {
    OfEnds{"drop both ends", drop_ends},
    OfEnds{"split a message", split_ends},
    OfEnds{"add an event", add_event},
};

} // namespace

std::string mutate(std::vector<Schedule>& schedules, Random& random) {
    std::vector<Draft> drafts;
    for (const Schedule& schedule : schedules) {
        drafts.push_back(take_apart(schedule));
    }
    std::string what;
    if (random() % 6 == 0) {
        const OfEnds mutation = any_of(kOfEnds, random);
        const Ends ends = any_ends(drafts, random);
        if (ends.from != nullptr && ends.from != ends.to && mutation.apply(ends, random)) {
            what = fmt::format("{}, rank {} op {} to rank {} op {}", mutation.name,
                               ends.from->header.rank, ends.out, ends.to->header.rank, ends.in);
        }
    } else {
        const OfOneRank mutation = any_of(kOfOneRank, random);
        const bool everywhere = random() % 4 == 0;
        const std::size_t one = below(random, drafts.size());
        const std::uint64_t seed = random();
        for (std::size_t rank = 0; rank < drafts.size(); ++rank) {
            // With one seed the change is the same on all ranks, as far as their schedules are
            // alike.
            Random alike(seed);
            if ((everywhere || rank == one) && mutation.apply(drafts[rank], alike)) {
                what = fmt::format("{} at {}", mutation.name,
                                   everywhere ? "all ranks" : fmt::format("rank {}", rank));
            }
        }
    }
    for (std::size_t rank = 0; rank < drafts.size(); ++rank) {
        schedules[rank] = put_together(drafts[rank]);
    }
    return what;
}

} // namespace ucg::test
