#include "perf/perftest/breakdown/lower.hpp"

#include <algorithm>

#include "perf/perftest/breakdown/lines.hpp"
#include "perf/perftest/breakdown/sockets.hpp"
#include "perf/perftest/breakdown/uct.hpp"

namespace ucg::perftest::breakdown {

namespace {

constexpr const char* kHeadLine = "FIFO head's line, within LLP_post";
constexpr const char* kPollPhase = "Poll phase";
constexpr const char* kAboveSend = "LLP_post above send()";

struct Listed {
    const char* name;
    Category category;
    const char* note;
};

constexpr Listed kListed[] = {
    {part::kOverhead, Category::misc, "of a wrapped call; subtracted from all below"},
    {part::kPutPost, Category::llp, "64 in a row"},
    {part::kPutAlone, Category::llp, "with nothing beside it"},
    {part::kCall, Category::llp, "of an empty function through a pointer"},
    {part::kCopy, Category::llp, "to memory of one's own"},
    {part::kAmPost, Category::llp, "its lines are this processor's"},
    {Lines::kOwnClaim, Category::llp, "as a place in a FIFO is claimed"},
    {part::kAmPostToPeer, Category::llp, "with what it waits for lines of the peer"},
    {part::kAmPostStream, Category::llp, "one post after another"},
    {part::kAmUntimed, Category::llp, "one post and an update after another"},
    {part::kAmPostWindow, Category::llp, "64 in a row"},
    {part::kProgress, Category::llp, "its lines are this processor's"},
    {part::kProgressOfPeer, Category::llp, "which lies there already"},
    {part::kEmptyProgress, Category::llp, "64 in a row"},
    {part::kBusyPost, Category::misc, "refused with UCS_ERR_NO_RESOURCE, 64 in a row"},
    {part::kUpdate, Category::misc, "64 in a row"},
    {Lines::kOneLine, Category::network, "one writes while the other looks"},
    {Lines::kTwoLines, Category::network, "between two looks what put_lat does"},
    {Lines::kFifo, Category::network, "the lines that an active message needs, without UCX"},
    {Lines::kRead, Category::network, "at rest with the peer"},
    {Lines::kClaim, Category::network, "at rest with both"},
    {PlainSockets::kSend, Category::io, "of 13 bytes"},
    {PlainSockets::kPath, Category::network, "mean of both directions"},
};

/// Returns the part of a poll that passes before a message is noticed: on average half an empty
/// progress.
Component poll_phase(const Rounds& rounds) {
    Component phase =
        rounds.component(part::kEmptyProgress, Category::llp, "half an empty progress");
    phase.name = kPollPhase;
    phase.ns /= 2;
    phase.deviation_ns /= 2;
    return phase;
}

Comparison put_injection(const Rounds& rounds) {
    const Component post = rounds.component(part::kPutPost, Category::llp);
    const Component update = rounds.component(part::kUpdate, Category::misc);
    InjectionParts parts;
    parts.post = {post};
    parts.messages_per_completion =
        0; // A store into the peer's memory is complete once it is made.
    parts.misc = {{update}};
    Comparison comparison = {injection_model("Injection, put_bw", parts),
                             rounds.component(part::kPutBandwidth, Category::llp)};
    // An update reads the clock without fences, so that the next post overlaps it.
    const Component both = rounds.component(part::kPutAndUpdate, Category::llp);
    Component overlap = update;
    overlap.name = "overlap of post and update";
    overlap.note = "their sum less a post and an update that are timed together";
    overlap.ns = std::min(0.0, both.ns - post.ns - update.ns);
    comparison.missing = {{overlap}};
    return comparison;
}

Comparison am_injection(const Rounds& rounds) {
    InjectionParts parts;
    parts.post = {rounds.component(part::kAmPostStream, Category::llp)};
    parts.messages_per_completion = 0; // The call returns once the bytes are copied.
    parts.misc = {{rounds.component(part::kUpdate, Category::misc)}};
    if (rounds.has(part::kBusyPost) && rounds.has(part::kBusyPerMessage)) {
        parts.misc.push_back({rounds.component(part::kBusyPost, Category::misc),
                              rounds.component(part::kBusyPerMessage, Category::misc).ns});
    }
    return {injection_model("Injection, am_bw", parts),
            rounds.component(part::kAmBandwidth, Category::llp)};
}

Comparison put_latency(const Rounds& rounds) {
    LatencyParts parts;
    parts.post = {rounds.component(part::kPutPost, Category::llp)};
    parts.path = {{rounds.component(Lines::kTwoLines, Category::network)}};
    // Posts in a row overlap; in a ping-pong each waits for the one before.
    return {.model = latency_model("Latency, put_lat", parts),
            .observed = rounds.component(part::kPutLatency, Category::llp),
            .missing = {{rounds.difference(part::kPutAlone, part::kPutPost,
                                           "a put alone, beyond one in a row", Category::llp)}}};
}

Comparison am_latency(const LowerKind& kind, const Rounds& rounds) {
    return {latency_model("Latency, am_lat", message_parts(kind, rounds)),
            rounds.component(part::kAmLatency, Category::llp)};
}

std::vector<std::string> notes_of(const LowerKind& kind, const Rounds& rounds) {
    std::vector<std::string> notes;
    if (kind.shares_memory) {
        notes.emplace_back(
            "within LLP_post the call, the copy and the claim of a place in the FIFO are told "
            "apart by measuring the like; the store that sets the owner's flag (the doorbell), "
            "branches and checks are not told apart from outside of UCX; x86 needs no store fence");
        const double put = rounds.component(part::kPutLatency, Category::llp).ns;
        const double am = rounds.component(part::kAmLatency, Category::llp).ns;
        notes.push_back(fmt::format("8 bytes are there sooner by {}: put {:.1f} ns, active message "
                                    "{:.1f} ns",
                                    put < am ? "put" : "active message", put, am));
    }
    if (!kind.shares_memory && !kind.over_sockets) {
        notes.emplace_back("the path between the two ends is not measured on this transport: that "
                           "takes an analyser on the adapter's bus");
    }
    if (!rounds.has(part::kBusyPost)) {
        notes.emplace_back("no post was refused for want of room, so no busy post is timed");
    }
    return notes;
}

} // namespace

LatencyParts message_parts(const LowerKind& kind, const Rounds& rounds) {
    LatencyParts parts;
    if (kind.shares_memory) {
        parts.post = {rounds.component(part::kAmPost, Category::llp)};
        parts.path = {
            {rounds.difference(part::kAmPostToPeer, part::kAmPost, kHeadLine, Category::network,
                               "the peer has read it since the last post")},
            {rounds.component(Lines::kRead, Category::network)},
            {poll_phase(rounds)}};
        parts.progress = {rounds.component(part::kProgress, Category::llp)};
    } else if (kind.over_sockets) {
        parts.post = {
            rounds.difference(part::kAmPostToPeer, PlainSockets::kSend, kAboveSend, Category::llp)};
        parts.path = {{rounds.component(PlainSockets::kPath, Category::network)}};
        parts.progress = {rounds.component(part::kProgressOfPeer, Category::llp)};
    } else {
        parts.post = {rounds.component(part::kAmPostToPeer, Category::llp)};
        parts.progress = {rounds.component(part::kProgressOfPeer, Category::llp)};
    }
    return parts;
}

Section lower_section(const LowerKind& kind, const Rounds& rounds) {
    Section section{.title = "UCT over " + kind.transport, .components = {}};
    for (const Listed& listed : kListed) {
        const bool is_line = std::string_view(listed.name).find("ine ") != std::string_view::npos;
        if (rounds.has(listed.name) && (kind.shares_memory || !is_line)) {
            section.components.push_back(
                rounds.component(listed.name, listed.category, listed.note));
        }
    }
    if (kind.shares_memory) {
        section.comparisons = {put_injection(rounds), put_latency(rounds)};
    } else {
        section.comparisons = {am_injection(rounds)};
    }
    section.comparisons.push_back(am_latency(kind, rounds));
    section.notes = notes_of(kind, rounds);
    return section;
}

} // namespace ucg::perftest::breakdown
