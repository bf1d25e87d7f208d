// Allreduce by dissemination in shared memory: in each step two partners exchange, and each
// combines its partial result with that of the other, which it reads where it lies. Partners are
// first ranks of one socket and then colleagues in different ones, so that only the last steps
// cross sockets. Ranks of a socket, and sockets, beyond a power of two hand in their values and
// fetch the result. Li, Hoefler and Snir (HPDC 2013), section 2.3, but for its rounds in one
// direction: by exchanges all ranks combine in rank order and come to the same bits.
#include <algorithm>
#include <bit>

#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/pieces.hpp"
#include "ucg_coll/plan/peer_memory/sockets.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

// The signal of a partner in one segment says that it has read the segment before.
constexpr std::uint32_t kRotation = 2;

unsigned steps_of(Rank count) {
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(count))) - 1;
}

/// Returns how many places in staging memory it takes: for two staging buffers and for the partial
/// result before each step. There is at most one step for each doubling of the ranks, and one more
/// where sockets hand in.
std::uint32_t places(const Facts& facts, Rank count) {
    const unsigned hand_in = std::has_single_bit(facts.shared.node.sockets) ? 0 : 1;
    return kRotation * (2 + steps_of(count) + hand_in);
}

Segments segments_of(const Facts& facts, const graph::Request& request) {
    return segments_for(facts.shared, request.bytes, request.element_bytes, kRotation,
                        places(facts, request.rank_count));
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Segments segments = segments_of(facts, request);
    const unsigned rounds = tree_depth(request.rank_count, 2);
    const double turns_ns = 2 * rounds * turn_ns(facts.profile, facts.ranks_per_cpu);
    const cost::NodeModel node = known_node(facts);
    const Link link = host_link(facts);
    const auto acting = static_cast<Rank>(floor_power_of_two(node.cores_min));
    // A rank beyond the power of two hands in, and fetches the result.
    const Rank block = (static_cast<Rank>(node.cores_per_socket) + acting - 1) / acting;
    const bool folds = block > 1;
    const unsigned near_steps = tree_depth(acting, 2) + (folds ? 2 : 0);
    const unsigned steps = near_steps + tree_depth(static_cast<Rank>(node.sockets), 2);
    const double rounds_ns = for_segments_ns(segments, [&](std::uint64_t bytes) {
        const auto step_ns = [&](unsigned step, const Link& signals, double read_ns,
                                 Rank operands) {
            // Vectors pass through the caches in the first step and the last.
            const std::uint64_t own_bytes =
                (step == 0 ? request.bytes : bytes) + (step + 1 == steps ? request.bytes : bytes);
            return signals.message_ns(0) + read_and_combine_ns(facts, read_ns,
                                                               static_cast<unsigned>(operands),
                                                               bytes, own_bytes);
        };
        const Link near = link.within_group();
        const double near_ns = price::read_ns(node.within, 1, bytes);
        double ns = turns_ns;
        for (unsigned step = 0; step < steps; ++step) {
            ns += step >= near_steps
                      ? step_ns(step, link, price::read_ns(node.between, acting, bytes), 2)
                  : folds && step == 0 ? step_ns(step, near, (block - 1) * near_ns, block)
                  : folds && step == 1
                      ? step_ns(step, near, price::read_ns(node.within, block - 1, bytes), 2)
                      : step_ns(step, near, near_ns, 2);
        }
        return ns;
    });
    const double span_ns = publish_ns(facts, request.bytes) + barrier_ns(facts) + rounds_ns;
    return oversubscribed_ns(
        facts, host_link(facts), 2 * request.bytes, span_ns, [&](const Work& work) {
            return work.publish_ns(request.bytes) +
                   rounds * (work.read_ns(request.bytes) + work.link().reduce_ns(1, request.bytes));
        });
}

/// `count` ranks or sockets in a row, cut into `blocks`, a power of two, as evenly as possible. The
/// first of each block acts for it.
struct Cut {
    Rank count = 1;
    Rank blocks = 1;

    Rank first(Rank block) const { return static_cast<Rank>(std::int64_t{count} * block / blocks); }
    Rank size(Rank block) const { return first(block + 1) - first(block); }
    Rank block_of(Rank index) const {
        return static_cast<Rank>(((std::int64_t{index} + 1) * blocks - 1) / count);
    }
};

/// Returns the placement that sockets are taken from. Where sockets are not contiguous, ranks that
/// combine in order take no notice of them.
topo::Placement placement_for(const Facts& facts, const graph::Request& request) {
    return request.commutative || facts.shared.sockets_are_contiguous
               ? facts.placement
               : topo::Placement::one_host(request.rank_count);
}

/// One rank's part, one segment after the other. Partial results lie in slots: step i reads the one
/// in slot i, and the last step makes the result.
class Dissemination {
  public:
    Dissemination(Builder& builder, const Facts& facts, const graph::Request& request)
        : builder_(builder), request_(request),
          sockets_(placement_for(facts, request), builder.rank(), member_order(request)),
          positions_(Rank{1} << steps_of(sockets_.smallest())),
          over_{static_cast<Rank>(sockets_.count()),
                Rank{1} << steps_of(static_cast<Rank>(sockets_.count()))},
          socket_(static_cast<Rank>(sockets_.own())),
          position_(within(socket_).block_of(sockets_.index())),
          segments_(segments_of(facts, request)), fold_slot_(steps_of(positions_) + 1),
          steps_(steps_of(positions_) + steps_of(over_.blocks) + (sockets_fold() ? 1 : 0)) {
        for (unsigned slot = 0; slot < steps_; ++slot) {
            slots_.push_back(builder.shared_scratch(segments_.staging_buffer_bytes()));
        }
    }

    void run(const Facts& facts) {
        builder_.staging_buffer(segments_.staging_buffer_bytes());
        const bool acts = within(socket_).first(position_) == sockets_.index();
        OpIds last = for_each_segment(builder_, segments_, 1, [&](const Segment& segment) {
            return acts ? act(segment) : hand_in_and_fetch(segment);
        });
        barrier(builder_, facts, Team::whole(request_.rank_count, builder_.rank()), last);
    }

  private:
    SegmentOps hand_in_and_fetch(const Segment& segment) {
        const OpId published = builder_.publish(source(segment), segment.after);
        OpIds last = {published};
        hand_over(segment, actor(socket_, position_), last);
        return {published, std::move(last)};
    }

    /// Lets `other` read this rank's partial result, and reads the result there.
    void hand_over(const Segment& segment, Rank other, OpIds& last) {
        builder_.signal(other, last);
        const OpId ready = builder_.await(other);
        last = {builder_.copy(at_rank(other, target(segment)), target(segment), std::array{ready})};
    }

    SegmentOps act(const Segment& segment) {
        SegmentOps ops{begin(segment), {}};
        ops.last = {ops.first};
        unsigned slot = 0;
        for (Rank distance = 1; distance < positions_; distance *= 2) {
            exchange(segment, socket_, position_ ^ distance, slot++, ops.last);
        }
        const Rank block = over_.block_of(socket_);
        const bool over = over_.first(block) == socket_;
        if (!over) {
            hand_over(segment, actor(over_.first(block), position_), ops.last);
        } else if (sockets_fold()) {
            take_in_sockets(segment, block, slot++, ops.last);
        }
        for (Rank distance = 1; over && distance < over_.blocks; distance *= 2) {
            exchange(segment, over_.first(block ^ distance), position_, slot++, ops.last);
        }
        pass_on(segment, over ? block : kNoRank, ops.last);
        return ops;
    }

    /// Makes what the first step reads. In a request in place that is in scratch, since the result
    /// will lie where the contribution was.
    OpId begin(const Segment& segment) {
        const Slice own = source(segment);
        if (within(socket_).size(position_) == 1) {
            return request_.in_place ? builder_.copy(own, slot_of(segment, 0), segment.after)
                                     : builder_.publish(own, segment.after);
        }
        OpIds ready = segment.after;
        std::vector<Slice> operands = {own};
        for (const Rank other : handing_in()) {
            ready.push_back(builder_.await(other, segment.after));
            operands.push_back(at_rank(other, own));
        }
        return builder_.reduce(operands, slot_of(segment, 0), ready);
    }

    void exchange(const Segment& segment, Rank socket, Rank position, unsigned slot, OpIds& last) {
        const Rank peer = actor(socket, position);
        builder_.signal(peer, last);
        const OpId ready = builder_.await(peer);
        const Slice mine = held(segment, socket_, position_, slot);
        const Slice theirs = at_rank(peer, held(segment, socket, position, slot));
        const bool lower = socket_ < socket || (socket_ == socket && position_ < position);
        last.push_back(ready);
        last = {builder_.reduce(std::array{lower ? mine : theirs, lower ? theirs : mine},
                                slot + 1 == steps_ ? target(segment) : slot_of(segment, slot + 1),
                                last)};
    }

    void take_in_sockets(const Segment& segment, Rank block, unsigned slot, OpIds& last) {
        std::vector<Slice> operands = {held(segment, socket_, position_, slot)};
        for (Rank i = 1; i < over_.size(block); ++i) {
            const Rank other = actor(socket_ + i, position_);
            last.push_back(builder_.await(other));
            operands.push_back(at_rank(other, held(segment, socket_ + i, position_, slot)));
        }
        if (operands.size() > 1) {
            last = {builder_.reduce(operands, slot_of(segment, slot + 1), last)};
        }
    }

    /// Lets the ranks for which this one acts read the result. `block` is the block of sockets for
    /// which it acts, or kNoRank.
    void pass_on(const Segment& segment, Rank block, OpIds& last) {
        std::vector<Rank> others = handing_in();
        for (Rank i = 1; block != kNoRank && i < over_.size(block); ++i) {
            others.push_back(actor(socket_ + i, position_));
        }
        if (others.empty()) {
            return;
        }
        const OpIds ready = {builder_.publish(target(segment), last)};
        last.clear();
        for (const Rank other : others) {
            last.push_back(builder_.signal(other, ready));
        }
    }

    /// Returns the other ranks of this rank's block.
    std::vector<Rank> handing_in() const {
        const auto block = sockets_.members(sockets_.own())
                               .subspan(static_cast<std::size_t>(within(socket_).first(position_)),
                                        static_cast<std::size_t>(within(socket_).size(position_)));
        return {block.begin() + 1, block.end()};
    }

    Cut within(Rank socket) const {
        return {static_cast<Rank>(sockets_.members(static_cast<std::size_t>(socket)).size()),
                positions_};
    }
    Rank actor(Rank socket, Rank position) const {
        const Rank index = within(socket).first(position);
        return sockets_.members(static_cast<std::size_t>(socket))[static_cast<std::size_t>(index)];
    }
    bool sockets_fold() const { return over_.count != over_.blocks; }

    /// Returns where the rank that acts for `position` of `socket` has what step `slot` reads.
    Slice held(const Segment& segment, Rank socket, Rank position, unsigned slot) const {
        if (slot == 0) {
            const bool made = request_.in_place || within(socket).size(position) > 1;
            return made ? slot_of(segment, 0) : source(segment);
        }
        const bool took_in = over_.size(over_.block_of(socket)) > 1;
        return sockets_fold() && slot == fold_slot_ && !took_in
                   ? held(segment, socket, position, slot - 1)
                   : slot_of(segment, slot);
    }
    Slice slot_of(const Segment& segment, unsigned slot) const {
        return segment.scratch(slots_[slot], segments_);
    }
    Slice source(const Segment& segment) const {
        return segment.of(contribution(builder_, request_));
    }
    Slice target(const Segment& segment) const {
        return segment.of(builder_.output(0, request_.bytes));
    }

    Builder& builder_;
    const graph::Request& request_;
    Sockets sockets_;
    Rank positions_; ///< How many ranks of each socket act.
    Cut over_;       ///< The sockets, in blocks.
    Rank socket_;
    Rank position_;
    Segments segments_;
    unsigned fold_slot_; ///< Slot of what a socket makes of its value and those handed in.
    unsigned steps_;
    std::vector<Slice> slots_;
};

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceNumaDissemination.name);
    Dissemination(builder, facts, request).run(facts);
    return builder.finish();
}

constexpr auto kNeeds =
    peer_needs(Need{kSegmentsFit<1>.what, [](const Facts& facts, const graph::Request& request) {
                        return segments_fit(facts, request, places(facts, request.rank_count));
                    }});

} // namespace

const Algorithm kAllreduceNumaDissemination = {
    .name = "numa_dissemination",
    .collective = graph::Collective::allreduce,
    .summary =
        "partners at growing distances read each other, sockets first (Li, Hoefler, Snir 2013)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
