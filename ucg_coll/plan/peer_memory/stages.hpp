// The two halves of a tree in shared memory: vectors are combined up a tree in each socket and one
// over the sockets' leaders; results are read down in one stage or two. Li, Hoefler and Snir (HPDC
// 2013), section 2.2.
#pragma once

#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/pieces.hpp"

namespace ucg::plan {

/// One rank's part in passing on a result: the stages in which it reads or is read.
class Stages {
  public:
    Stages(graph::Builder& builder, const Facts& facts) : builder_(builder), facts_(facts) {}

    /// Members 1, 2, ... of the team read what member 0 has.
    void add(const Team& team) { teams_.push_back(team); }
    /// All in one stage from `root`, or leaders first and then the ranks of their sockets.
    void add_one_stage(Rank rank_count, Rank root) {
        add(Team::rotated(rank_count, builder_.rank(), root));
    }
    void add_two_stages(const Sockets& sockets);

    /// Copies a segment of the root's vector `roots` to `own`, which is the vector at the root.
    /// Ranks that are read publish theirs, the root after `last`.
    SegmentOps read(const Segment& segment, graph::Slice roots, graph::Slice own, OpIds last) const;

    /// Those who were read know that they need not be any longer.
    void confirm(OpIds& last) const;

  private:
    unsigned radix(const Team& team) const {
        return barrier_tree_radix(host_link(facts_), team.size());
    }

    graph::Builder& builder_;
    const Facts& facts_;
    std::vector<Team> teams_;
};

/// One rank's part in combining vectors: n-ary trees, within each socket to its leader and over the
/// leaders to the first one. Partial results lie in scratch.
class Climb {
  public:
    /// `sockets` must outlive this. Takes staging_buffer_bytes() of scratch, the same on all ranks:
    /// no other may be taken before.
    Climb(graph::Builder& builder, const Sockets& sockets, const Segments& segments,
          unsigned radix);

    /// Combines the segment of all ranks' `source`, which at ranks without children is `leaves`, to
    /// the first leader's `target`. In rank order, if sockets are contiguous and led by their first
    /// ranks. After the last op of another rank its parent may read.
    SegmentOps run(const Segment& segment, graph::Slice source, graph::Slice leaves,
                   graph::Slice target) const;

    /// Parents tell their children that they have read what run() left, which comes after `ops`:
    /// the segment of `source`, as there, may be written afterwards. Returns the last ops of those
    /// that were read; nothing at the first leader.
    OpIds confirm(const Segment& segment, graph::Slice source, const SegmentOps& ops) const;

  private:
    bool combines(std::size_t socket, Rank index) const;
    bool is_first() const { return sockets_.own() == 0 && sockets_.leads(); }

    graph::Builder& builder_;
    const Sockets& sockets_;
    const Segments& segments_;
    unsigned radix_;
    graph::Slice partials_;
    struct Child {
        Rank rank = kNoRank;
        bool combines = false; ///< Its partial result is in scratch; else it has published.
    };
    std::vector<std::vector<Child>> groups_; ///< Each combined in one pass, in this order.
    Rank parent_ = kNoRank;
};

// Whole vectors, segment by segment. REQUIRES, of both:
// builder.staging_buffer(segments.staging_buffer_bytes()) was called, on all ranks of the group.

/// Climb::run() of `source`, whose readers know afterwards that they are done.
void climb_by_segments(graph::Builder& builder, const Climb& climb, const Segments& segments,
                       graph::Slice source, graph::Slice leaves, graph::Slice target);
/// Stages::read() of `roots` to `own`; those who were read know it.
void read_by_segments(graph::Builder& builder, const Stages& stages, const Segments& segments,
                      graph::Slice roots, graph::Slice own);

// What these take, with a processor for each rank: of all ranks of the fullest host.

double climb_by_segments_ns(const Facts& facts, const Segments& segments);
/// In one stage or two, whichever takes less.
double read_by_segments_ns(const Facts& facts, const Segments& segments);
/// In one stage; each rank reads for `read_ns`.
double read_once_ns(const Facts& facts, const Segments& segments, double read_ns);
double read_twice_ns(const Facts& facts, const Segments& segments);
/// One segment of vectors of `vector_bytes` that others read in one stage or two, told of it down a
/// tree.
double read_segment_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t vector_bytes);
/// Do two stages take less?
bool read_in_two_stages(const Facts& facts, std::uint64_t bytes);

/// Where ranks take turns, each level of a tree waits for one; and who was read waits for another.
double climb_turns_ns(const Facts& facts, unsigned radix);
/// One segment of vectors of `vector_bytes` up the trees, from when the leaves can be read on.
double climb_segment_ns(const Facts& facts, unsigned radix, std::uint64_t bytes,
                        std::uint64_t vector_bytes);

/// Each rank's work on average: all but those above others publish, and are combined by those
/// above.
double climb_work_ns(const Facts& facts, const Work& work, const graph::Request& request,
                     double segments);

/// Each rank's work in an allreduce by tiles: all vectors are published, each is read once to be
/// combined and once, as a part of the result, by everyone.
double tiled_work_ns(const Work& work, Rank count, std::uint64_t bytes);

/// The radix of these trees that is cheapest.
unsigned climb_radix(const Facts& facts, const Segments& segments);

} // namespace ucg::plan
