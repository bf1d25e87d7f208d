#include "ucg_coll/plan/peer_memory/stages.hpp"

#include <algorithm>

#include "ucg_coll/plan/parts/knomial.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {

using graph::OpId;
using graph::Slice;

void Stages::add_two_stages(const Sockets& sockets) {
    if (sockets.leads()) {
        add(sockets.leaders());
    }
    add(sockets.team());
}

SegmentOps Stages::read(const Segment& segment, Slice roots, Slice own, OpIds last) const {
    const Slice own_segment = segment.of(own);
    SegmentOps ops{graph::kNoOp, std::move(last)};
    bool published = false;
    for (const Team& team : teams_) {
        if (team.index() == 0 && !published) {
            ops.last = {builder_.publish(own_segment, ops.last)};
            ops.first = ops.first == graph::kNoOp ? ops.last.front() : ops.first;
            published = true;
        }
        barrier_release(builder_, team, radix(team), ops.last);
        if (team.index() != 0) {
            const Rank source = team.rank(0);
            const Slice vector =
                source == roots.owner ? roots : at_rank(source, builder_.output(0, roots.length));
            ops.last = {builder_.copy(segment.of(vector), own_segment, ops.last)};
            ops.first = ops.last.front();
        }
    }
    return ops;
}

void Stages::confirm(OpIds& last) const {
    for (auto team = teams_.rbegin(); team != teams_.rend(); ++team) {
        barrier_arrive(builder_, *team, radix(*team), last);
    }
}

Climb::Climb(graph::Builder& builder, const Sockets& sockets, const Segments& segments,
             unsigned radix)
    : builder_(builder), sockets_(sockets), segments_(segments), radix_(radix),
      partials_(builder.shared_scratch(segments.staging_buffer_bytes())) {
    const auto climb = [&](const Team& team, auto child_of) {
        const KnomialNode node(team.size(), 0, team.index(), radix_);
        for (unsigned level = 0; level < node.levels(); ++level) {
            std::vector<Child> group;
            for (const Rank child : node.children(level)) {
                group.push_back({team.rank(child), child_of(child)});
            }
            if (!group.empty()) {
                groups_.push_back(std::move(group));
            }
        }
        parent_ = node.parent() == kNoRank ? kNoRank : team.rank(node.parent());
    };
    climb(sockets.team(), [&](Rank index) { return combines(sockets.own(), index); });
    if (sockets.leads() && sockets.count() > 1) {
        climb(sockets.leaders(),
              [&](Rank socket) { return combines(static_cast<std::size_t>(socket), 0); });
    }
}

/// Returns whether member `index` of `socket` has any children, in its socket or among the leaders.
bool Climb::combines(std::size_t socket, Rank index) const {
    const auto size = static_cast<Rank>(sockets_.members(socket).size());
    const KnomialNode within(size, 0, index, radix_);
    if (index != 0 || !within.children().empty()) {
        return !within.children().empty();
    }
    const KnomialNode among(static_cast<Rank>(sockets_.count()), 0, static_cast<Rank>(socket),
                            radix_);
    return !among.children().empty();
}

SegmentOps Climb::run(const Segment& segment, Slice source, Slice leaves, Slice target) const {
    const Slice partial_place = segment.scratch(partials_, segments_);
    Slice partial = segment.of(source);
    SegmentOps ops{graph::kNoOp, segment.after};
    if (groups_.empty()) {
        ops.first = builder_.publish(partial, segment.after);
        ops.last = {ops.first};
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        OpIds ready = ops.last;
        std::vector<Slice> operands = {partial};
        for (const Child& child : groups_[i]) {
            ready.push_back(builder_.await(child.rank));
            operands.push_back(
                at_rank(child.rank, child.combines ? partial_place : segment.of(leaves)));
        }
        const bool last = is_first() && i + 1 == groups_.size();
        partial = last ? segment.of(target) : partial_place;
        ops.last = {builder_.reduce(operands, partial, ready)};
        ops.first = i == 0 ? ops.last.front() : ops.first;
    }
    if (parent_ != kNoRank) {
        builder_.signal(parent_, ops.last);
    }
    return ops;
}

OpIds Climb::confirm(const Segment& segment, Slice source, const SegmentOps& ops) const {
    for (const std::vector<Child>& group : groups_) {
        for (const Child& child : group) {
            builder_.signal(child.rank, ops.last);
        }
    }
    return parent_ == kNoRank ? OpIds{} : OpIds{builder_.await_read(parent_, segment.of(source))};
}

void climb_by_segments(graph::Builder& builder, const Climb& climb, const Segments& segments,
                       Slice source, Slice leaves, Slice target) {
    for_each_segment(builder, segments, segments.rotation, [&](const Segment& segment) {
        SegmentOps ops = climb.run(segment, source, leaves, target);
        ops.last = climb.confirm(segment, source, ops);
        return ops;
    });
}

void read_by_segments(graph::Builder& builder, const Stages& stages, const Segments& segments,
                      Slice roots, Slice own) {
    for_each_segment(builder, segments, segments.rotation, [&](const Segment& segment) {
        SegmentOps ops = stages.read(segment, roots, own, segment.after);
        stages.confirm(ops.last);
        return ops;
    });
}

double climb_by_segments_ns(const Facts& facts, const Segments& segments) {
    const unsigned radix = climb_radix(facts, segments);
    const Link link = host_link(facts);
    const cost::NodeModel& node = facts.shared.node;
    // The first leader tells one child after the other that it has been read.
    const unsigned children = root_children(static_cast<Rank>(node.cores_per_socket), radix) +
                              root_children(static_cast<Rank>(node.sockets), radix);
    const double ends_ns = link.message_ns(0) + (std::max(children, 1U) - 1) * link.gap_ns(0) +
                           climb_turns_ns(facts, radix);
    const double climb_ns = for_segments_ns(segments, [&](std::uint64_t bytes) {
        return climb_segment_ns(facts, radix, bytes, segments.total_bytes);
    });
    // While one segment is combined, the next one is published.
    const double publish_all_ns = publish_ns(facts, segments.total_bytes);
    return publish_all_ns / static_cast<double>(segments.count()) + ends_ns +
           std::max(climb_ns, publish_all_ns);
}

namespace {

/// Returns the time of signals down a tree and up again.
double down_and_up_ns(const Link& link, Rank count) {
    return barrier_there_and_back_once_ns(link, count, barrier_tree_radix(link, count));
}

/// Returns the time to publish all segments and to read them, which takes a rank `read_ns` in all,
/// with signals down the stages and up again, which take `signals_ns`. Signals of all but one
/// segment go on while data moves.
double by_segments_ns(const Facts& facts, const Segments& segments, double read_ns,
                      double signals_ns) {
    const Link link = host_link(facts);
    const std::uint64_t bytes = segments.total_bytes;
    // One segment has to be there before the first can be read.
    return publish_ns(facts, bytes) / static_cast<double>(segments.count()) + signals_ns +
           std::max({read_ns, link.copy_ns(bytes), publish_ns(facts, bytes)}) +
           static_cast<double>(segments.count() - 1) * link.gap_ns(0);
}

} // namespace

double read_once_ns(const Facts& facts, const Segments& segments, double read_ns) {
    const Link link = host_link(facts);
    return by_segments_ns(facts, segments, read_ns,
                          down_and_up_ns(link, facts.placement.ranks_per_host_max()));
}

double read_twice_ns(const Facts& facts, const cost::NodeModel& node, const Segments& segments) {
    const Link link = host_link(facts);
    const std::uint64_t bytes = segments.total_bytes;
    const Link across(facts, facts.placement.widest_on_host());
    const double signals_ns =
        down_and_up_ns(link.within_group(), static_cast<Rank>(node.cores_per_socket)) +
        down_and_up_ns(across, static_cast<Rank>(node.sockets));
    // Each leader publishes what it has read.
    return by_segments_ns(facts, segments,
                          cost::two_stage_broadcast_ns(node, bytes) + publish_ns(facts, bytes),
                          signals_ns);
}

bool read_in_two_stages(const Facts& facts, std::uint64_t bytes) {
    const cost::NodeModel& node = facts.shared.node;
    return node.sockets > 1 &&
           cost::two_stage_broadcast_ns(node, bytes) < cost::one_stage_broadcast_ns(node, bytes);
}

double read_by_segments_ns(const Facts& facts, const Segments& segments) {
    const std::uint64_t bytes = segments.total_bytes;
    const cost::NodeModel node = known_node(facts);
    return read_in_two_stages(facts, bytes)
               ? read_twice_ns(facts, node, segments)
               : read_once_ns(facts, segments, cost::one_stage_broadcast_ns(node, bytes));
}

double read_segment_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t vector_bytes) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    return barrier_tree_ns(link, count, barrier_tree_radix(link, count)) +
           read_and_copy_ns(facts, cost::broadcast_ns(known_node(facts), bytes), bytes,
                            vector_bytes);
}

namespace {

unsigned climb_levels(const cost::NodeModel& node, unsigned radix) {
    return cost::ceil_log(radix, node.cores_per_socket) + cost::ceil_log(radix, node.sockets);
}

} // namespace

double climb_turns_ns(const Facts& facts, unsigned radix) {
    return climb_levels(facts.shared.node, radix) * turn_ns(facts.profile, facts.ranks_per_cpu);
}

double climb_segment_ns(const Facts& facts, unsigned radix, std::uint64_t bytes,
                        std::uint64_t vector_bytes) {
    const cost::NodeModel node = known_node(facts);
    const Link link = host_link(facts);
    double ns = 0;
    const auto climb = [&](const Link& signals, const cost::MemoryLevel& level, unsigned count) {
        for (std::uint64_t span = 1; span < count; span *= radix) {
            const auto children =
                static_cast<unsigned>(std::min<std::uint64_t>(radix - 1, (count - 1) / span));
            ns += signals.message_ns(0) + (children - 1) * signals.take_overhead_ns() +
                  read_and_combine_ns(facts, children * price::read_ns(level, 1, bytes),
                                      children + 1, bytes, 2 * vector_bytes);
        }
    };
    climb(link.within_group(), node.within, node.cores_per_socket);
    climb(link, node.between, node.sockets);
    return ns;
}

double climb_work_ns(const Facts& facts, const Work& work, const graph::Request& request,
                     double segments) {
    const std::uint64_t bytes = request.bytes;
    return all_but_one(request.rank_count) *
           (work.publish_ns(bytes) + work.read_ns(bytes) + work.combine_ns(bytes) +
            segments * (2 * work.link().message_ns(0) + facts.profile.memory.wake.yield_switch_ns));
}

double tiled_work_ns(const Work& work, Rank count, std::uint64_t bytes) {
    const std::uint64_t tile = bytes / static_cast<std::uint64_t>(count);
    return work.publish_ns(bytes) + work.read_ns(bytes) + work.publish_to_all_ns(tile) +
           work.read_same_ns(bytes);
}

unsigned climb_radix(const Facts& facts, const Segments& segments) {
    const cost::NodeModel& node = facts.shared.node;
    const auto widest = static_cast<Rank>(std::max(node.sockets, node.cores_per_socket));
    return cheapest_radix(widest, [&](unsigned radix) {
        return climb_segment_ns(facts, radix, segments.segment_bytes, segments.total_bytes);
    });
}

} // namespace ucg::plan
