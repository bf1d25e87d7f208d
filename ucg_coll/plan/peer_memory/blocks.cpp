// Collectives of blocks in which each rank reads the blocks that it needs out of the others'
// memory, with a single copy. The motif is that of Li, Hoefler and Snir (HPDC 2013), without an
// operator.
#include <algorithm>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

// While one segment is read, the next one is published.
constexpr std::uint32_t kRotation = 2;

std::uint64_t others(const graph::Request& request) {
    return static_cast<std::uint64_t>(request.rank_count - 1);
}

std::uint64_t all_bytes(const graph::Request& request) {
    return request.bytes * (others(request) + 1);
}

// Allgather(v) and gather: each rank's block in segments. In place, a block stands elsewhere in
// each rank's output, where staging buffers of segments do not fit; it is copied to scratch
// instead.

Segments segments_of(const Facts& facts, const graph::Request& request) {
    Segments segments = segments_for(facts.shared, longest_block(request), 1, kRotation, kRotation);
    if (graph::has_block_vectors(request.collective)) {
        const std::vector<std::uint64_t>& bytes = request.receive.bytes;
        segments.unequal_bytes =
            segments.total_bytes - *std::min_element(bytes.begin(), bytes.end());
    }
    return segments;
}

/// Returns the time per byte in which a rank copies blocks to its output. It reads and writes all
/// blocks, which its cache may hold or not.
double landing_per_byte_ns(const Facts& facts, const graph::Request& request) {
    return rates_for(facts, 2 * all_blocks(request)).copy_per_byte_ns;
}

/// Returns the time in which a rank reads `bytes` of each of the others. Each rank begins with
/// another peer.
double read_from_all_ns(const Facts& facts, std::uint64_t bytes) {
    return read_others_ns(facts, Readers::in_turn, bytes);
}

/// Returns the time of the allgather(v). Each rank begins with another peer, so that each peer has
/// one reader at a time.
double allgather_ns(const Facts& facts, const graph::Request& request) {
    const Segments segments = segments_of(facts, request);
    const std::uint64_t longest = longest_block(request);
    const std::uint64_t total = all_blocks(request);
    const std::uint64_t mean = divide_up(total, others(request) + 1);
    const double span_ns =
        publish_ns(facts, longest) + barrier_ns(facts) +
        cost::copy_ns(facts.profile.memory, longest) +
        for_segments_ns(segments, [&](std::uint64_t bytes) {
            const std::uint64_t each = mean == longest ? bytes : bytes * mean / longest;
            const std::uint64_t all = others(request) * each;
            return barrier_ns(facts) +
                   std::max(read_from_all_ns(facts, each),
                            static_cast<double>(all) * landing_per_byte_ns(facts, request));
        });
    const std::uint64_t touched = total + mean;
    return oversubscribed_ns(facts, host_link(facts), touched, span_ns, [&](const Work& work) {
        return work.publish_to_all_ns(mean) + work.link().copy_ns(mean) +
               work.read_same_ns(others(request) * mean) +
               barriers_work_ns(facts, segments.count());
    });
}

/// Shows peers a segment of this rank's block.
class Shown {
  public:
    Shown(Builder& builder, const graph::Request& request, const Segments& segments)
        : builder_(builder), segments_(segments), in_place_(request.in_place) {
        if (in_place_) {
            scratch_ = builder.shared_scratch(segments.staging_buffer_bytes());
            builder.expose();
        } else {
            builder.staging_buffer(segments.staging_buffer_bytes());
        }
    }

    /// Adds the op after which peers can read the segment of `own`.
    OpId add(const Segment& segment, Slice own) const {
        const Slice part = segment.of_shorter(own);
        return in_place_ ? builder_.copy(part, place(segment, part.length), segment.after)
                         : builder_.publish(part, segment.after);
    }
    /// Returns where `peer` shows the segment of its block of `bytes`.
    Slice at(Rank peer, const Segment& segment, std::uint64_t bytes) const {
        const Slice part = segment.of_shorter({0, bytes, kNoRank, graph::BufferKind::input});
        return at_rank(peer, in_place_ ? place(segment, part.length) : part);
    }

  private:
    Slice place(const Segment& segment, std::uint64_t length) const {
        return part(segment.scratch(scratch_, segments_), 0, length);
    }

    Builder& builder_;
    const Segments& segments_;
    bool in_place_;
    Slice scratch_;
};

template <const Algorithm& row>
graph::Schedule build_allgather(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, row.name);
    const Team team = Team::whole(request.rank_count, rank);
    const Segments segments = segments_of(facts, request);
    const BlockMap target = output_blocks(builder, request);
    const Slice own = own_contribution(builder, request);
    const Shown shown(builder, request, segments);
    OpIds last = for_each_segment(builder, segments, 1, [&](const Segment& segment) {
        const OpId first = shown.add(segment, own);
        OpIds known = first == graph::kNoOp ? segment.after : OpIds{first};
        barrier(builder, facts, team, known);
        OpIds copies = known;
        builder.copy(segment.of_shorter(own), segment.of_shorter(target.block(rank)));
        for (const Rank peer : reading_order(team, true)) {
            if (peer != rank) {
                const Slice block = target.block(peer);
                copies.push_back(builder.copy(shown.at(peer, segment, block.length),
                                              segment.of_shorter(block), known));
            }
        }
        return SegmentOps{first, std::move(copies)};
    });
    barrier(builder, facts, team, last);
    return builder.finish();
}

double gather_ns(const Facts& facts, const graph::Request& request) {
    const Link link = host_link(facts);
    const Segments segments = segments_of(facts, request);
    const double segments_ns = for_segments_ns(segments, [&](std::uint64_t bytes) {
        const double landing_ns =
            static_cast<double>(others(request) * bytes) * landing_per_byte_ns(facts, request);
        return std::max(root_reads_others_ns(facts, request.root, bytes), landing_ns) +
               2 * static_cast<double>(others(request)) * link.take_overhead_ns();
    });
    // The others publish while the root copies its own block, and segments while it reads others.
    const double own_ns = cost::copy_ns(facts.profile.memory, request.bytes);
    const double publish_all_ns = publish_ns(facts, request.bytes);
    const double first_ns = publish_all_ns / static_cast<double>(segments.count());
    return std::max(first_ns + link.message_ns(0), own_ns) + link.message_ns(0) -
           2 * link.take_overhead_ns() + std::max(segments_ns, publish_all_ns - first_ns);
}

graph::Schedule build_gather(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kGatherPeerRead.name);
    const Team team = Team::whole(request.rank_count, rank);
    const Segments segments = segments_of(facts, request);
    const Slice block = builder.input(0, request.bytes);
    builder.staging_buffer(segments.staging_buffer_bytes());
    if (rank != request.root) {
        for_each_segment(builder, segments, kRotation, [&](const Segment& segment) {
            const OpId published = builder.publish(segment.of(block), segment.after);
            builder.signal(request.root, std::array{published});
            return SegmentOps{published, {builder.await(request.root)}}; // It has been read.
        });
        return builder.finish();
    }
    const BlockMap target = output_blocks(builder, request);
    builder.copy(gather_contribution(builder, request, target), target.block(rank));
    for_each_segment(builder, segments, kRotation, [&](const Segment& segment) {
        for (const Rank peer : reading_order(team, true)) {
            if (peer != rank) {
                const OpId ready = builder.await(peer, segment.after);
                const OpId copied = builder.copy(at_rank(peer, segment.of(block)),
                                                 segment.of(target.block(peer)), std::array{ready});
                builder.signal(peer, std::array{copied});
            }
        }
        return SegmentOps{};
    });
    return builder.finish();
}

// Scatter, alltoall and reduce_scatter(_block): blocks for all ranks are published at once, which
// the staging buffer must hold.

/// Returns the time to copy all blocks, of `bytes`, to where peers read them. That memory and
/// `touched_bytes` of other memory pass through the caches, which may hold them or not.
double copy_all_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t touched_bytes) {
    return static_cast<double>(bytes) *
           staging_overwrite_per_byte_ns(facts, oversubscribed_rates(facts, bytes + touched_bytes));
}

/// Returns the time to publish all blocks: that of copying them to a staging buffer, or 0 where
/// peers reach buffers in place.
double publish_all_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t touched_bytes) {
    return facts.shared.buffers_mapped ? 0 : copy_all_ns(facts, bytes, touched_bytes);
}

/// The root publishes while the others wait.
double scatter_ns(const Facts& facts, const graph::Request& request) {
    const Link link = host_link(facts);
    const double read_ns =
        barrier_there_and_back_once_ns(link, request.rank_count,
                                       barrier_tree_radix(link, request.rank_count)) +
        cost::one_stage_broadcast_ns(known_node(facts, request.root), request.bytes);
    return publish_all_ns(facts, all_bytes(request), all_bytes(request)) +
           oversubscribed_ns(facts, host_link(facts), 2 * all_bytes(request), read_ns,
                             [&](const Work& work) {
                                 return work.read_ns(others(request) * request.bytes) /
                                        static_cast<double>(request.rank_count);
                             });
}

graph::Schedule build_scatter(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kScatterPeerRead.name);
    builder.staging_buffer(all_bytes(request));
    const Team team = Team::rotated(request.rank_count, rank, request.root);
    const unsigned radix = barrier_tree_radix(host_link(facts), team.size());
    const BlockMap source =
        BlockMap::equal(builder.input(0, all_bytes(request)), request.rank_count, request.bytes);
    OpIds last;
    if (rank == request.root) {
        last = {builder.publish(builder.input(0, all_bytes(request)))};
    }
    barrier_release(builder, team, radix, last);
    const Slice own = scatter_result(builder, request);
    if (own.length > 0) {
        const OpId copied = builder.copy(at_rank(request.root, source.block(rank)), own, last);
        last.push_back(copied);
    }
    barrier_arrive(builder, team, radix, last); // The root's vector has been read.
    return builder.finish();
}

double alltoall_ns(const Facts& facts, const graph::Request& request) {
    const double published_ns = publish_all_ns(facts, all_bytes(request), 2 * all_bytes(request));
    const double span_ns = published_ns + 2 * barrier_ns(facts) +
                           cost::copy_ns(facts.profile.memory, request.bytes) +
                           read_from_all_ns(facts, request.bytes);
    return oversubscribed_ns(facts, host_link(facts), 3 * all_bytes(request), span_ns,
                             [&](const Work& work) {
                                 return published_ns + work.link().copy_ns(request.bytes) +
                                        work.read_ns(others(request) * request.bytes);
                             });
}

graph::Schedule build_alltoall(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAlltoallPeerRead.name);
    builder.staging_buffer(all_bytes(request));
    const Team team = Team::whole(request.rank_count, rank);
    const BlockMap source = input_blocks(builder, request);
    const BlockMap target = output_blocks(builder, request);
    OpIds known = {builder.publish(builder.input(0, all_bytes(request)))};
    builder.copy(source.block(rank), target.block(rank));
    barrier(builder, facts, team, known);
    OpIds last = known;
    for (const Rank peer : reading_order(team, true)) {
        if (peer != rank) {
            last.push_back(
                builder.copy(at_rank(peer, source.block(rank)), target.block(peer), known));
        }
    }
    barrier(builder, facts, team, last);
    return builder.finish();
}

/// Does each rank copy its vector to scratch in which peers read it? In a reduce_scatter some ranks
/// may be in place and others not, so that nobody knows in which buffer others' vectors are.
bool copies_to_scratch(const graph::Request& request) {
    return request.collective == graph::Collective::reduce_scatter;
}

double reduce_scatter_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t total = all_blocks(request);
    const std::uint64_t longest = longest_block(request);
    const double published_ns =
        copies_to_scratch(request) ? copy_all_ns(facts, total, 0) : publish_all_ns(facts, total, 0);
    const double span_ns =
        published_ns + 2 * barrier_ns(facts) +
        read_and_combine_ns(facts, read_others_ns(facts, Readers::at_once, longest),
                            static_cast<unsigned>(request.rank_count), longest, total);
    return oversubscribed_ns(facts, host_link(facts), 2 * total, span_ns,
                             [&](const Work& work) { return published_ns + work.read_ns(total); });
}

/// Shows peers this rank's vector. Returns the vector as each rank names it in its own memory.
Slice show_vector(Builder& builder, const graph::Request& request, OpIds& last) {
    const std::uint64_t total = all_blocks(request);
    if (!copies_to_scratch(request)) {
        builder.staging_buffer(total);
        last = {builder.publish(builder.input(0, total))};
        return builder.input(0, total);
    }
    const Slice scratch = builder.shared_scratch(total);
    builder.expose();
    last = {builder.copy(request.in_place ? builder.output(0, total) : builder.input(0, total),
                         scratch)};
    return scratch;
}

template <const Algorithm& row>
graph::Schedule build_reduce_scatter(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, row.name);
    const Team team = Team::whole(request.rank_count, rank);
    OpIds last;
    const Slice shown = show_vector(builder, request, last);
    const Slice block = reduce_scatter_source(builder, request).block(rank);
    const Slice own = part(shown, block.offset, block.length);
    barrier(builder, facts, team, last);
    std::vector<Slice> operands;
    for (const Rank peer : reading_order(team, request.commutative)) {
        operands.push_back(at_rank(peer, own));
    }
    last.push_back(builder.reduce(operands, reduce_scatter_target(builder, request), last));
    barrier(builder, facts, team, last);
    return builder.finish();
}

constexpr Need kBlocksFit = {
    "staging memory that holds all blocks", [](const Facts& facts, const graph::Request& request) {
        const std::uint64_t bytes = uniform_bytes(request);
        const std::uint64_t blocks =
            graph::has_block_vectors(request.collective) ? 1 : others(request) + 1;
        return facts.shared.staging_bytes == 0 || bytes == 0 ||
               facts.shared.staging_bytes / bytes >= blocks;
    }};
/// Segments that not all blocks have as a whole are ops of their own, and some ranks idle in them.
constexpr Need kBlocksAlike = {"blocks whose lengths differ by two segments at most",
                               [](const Facts& facts, const graph::Request& request) {
                                   if (facts.shared.staging_bytes == 0) {
                                       return true;
                                   }
                                   const Segments segments = segments_of(facts, request);
                                   return segments.unequal_bytes <= 2 * segments.segment_bytes;
                               }};
constexpr auto kSegmentsNeeds = peer_needs(kSegmentsFit<kRotation>);
constexpr auto kUnequalSegmentsNeeds = peer_needs(kSegmentsFit<kRotation>, kBlocksAlike);
constexpr auto kWholeNeeds = peer_needs(kBlocksFit);
constexpr auto kWholeNotInPlaceNeeds = peer_needs(kBlocksFit, kNotInPlace);

} // namespace

const Algorithm kAllgatherPeerRead = {
    .name = "peer_read",
    .collective = graph::Collective::allgather,
    .summary = "every rank reads the others' blocks in shared memory",
    .cost_ns = allgather_ns,
    .build = build_allgather<kAllgatherPeerRead>,
    .needs = kSegmentsNeeds,
};

const Algorithm kAllgathervPeerRead = {
    .name = "peer_read",
    .collective = graph::Collective::allgatherv,
    .summary = "every rank reads the others' blocks in shared memory",
    .cost_ns = allgather_ns,
    .build = build_allgather<kAllgathervPeerRead>,
    .needs = kUnequalSegmentsNeeds,
};

const Algorithm kGatherPeerRead = {
    .name = "peer_read",
    .collective = graph::Collective::gather,
    .summary = "the root reads the others' blocks in shared memory",
    .cost_ns = gather_ns,
    .build = build_gather,
    .needs = kSegmentsNeeds,
};

const Algorithm kScatterPeerRead = {
    .name = "peer_read",
    .collective = graph::Collective::scatter,
    .summary = "every rank reads its block in the root's shared memory",
    .cost_ns = scatter_ns,
    .build = build_scatter,
    .needs = kWholeNeeds,
};

const Algorithm kAlltoallPeerRead = {
    .name = "peer_read",
    .collective = graph::Collective::alltoall,
    .summary = "every rank reads its blocks in the others' shared memory",
    .cost_ns = alltoall_ns,
    .build = build_alltoall,
    .needs = kWholeNotInPlaceNeeds,
};

const Algorithm kReduceScatterBlockPeerRead = {
    .name = "peer_read",
    .collective = graph::Collective::reduce_scatter_block,
    .summary = "every rank combines its block of all vectors in shared memory",
    .cost_ns = reduce_scatter_ns,
    .build = build_reduce_scatter<kReduceScatterBlockPeerRead>,
    .needs = kWholeNotInPlaceNeeds,
};

const Algorithm kReduceScatterPeerRead = {
    .name = "peer_read",
    .collective = graph::Collective::reduce_scatter,
    .summary = "every rank combines its block of all vectors in shared memory",
    .cost_ns = reduce_scatter_ns,
    .build = build_reduce_scatter<kReduceScatterPeerRead>,
    .needs = kWholeNeeds,
};

} // namespace ucg::plan
