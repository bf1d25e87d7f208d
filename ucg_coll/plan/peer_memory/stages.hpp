// The two ways of a tree in shared memory. On the way up, vectors are combined up a tree in each
// socket, and up one over the sockets' leaders; on the way down, results are read in one stage or
// two. Li, Hoefler and Snir (HPDC 2013), section 2.2.
#pragma once

#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/pieces.hpp"

namespace ucg::plan {

/// One rank's part in passing on a result: the stages in which it reads from a rank or is read.
class Stages {
  public:
    Stages(graph::Builder& builder, const Facts& facts) : builder_(builder), facts_(facts) {}

    /// Adds a stage in which members 1, 2, ... of the team read what member 0 has.
    void add(const Team& team) { teams_.push_back(team); }
    /// Adds one stage in which all ranks read from `root`.
    void add_one_stage(Rank rank_count, Rank root) {
        add(Team::rotated(rank_count, builder_.rank(), root));
    }
    /// Adds a stage in which the leaders read from the first leader, and one in which the ranks of
    /// each socket read from their leader.
    void add_two_stages(const Sockets& sockets);

    /// Copies a segment of the root's vector `roots` to `own`, which at the root is that vector.
    /// Ranks that others read publish their `own`. All of this comes after `last`.
    SegmentOps read(const Segment& segment, graph::Slice roots, graph::Slice own, OpIds last) const;

    /// Tells the ranks that others read that all their readers are done.
    void confirm(OpIds& last) const;

  private:
    unsigned radix(const Team& team) const {
        return barrier_tree_radix(host_link(facts_), team.size());
    }

    graph::Builder& builder_;
    const Facts& facts_;
    std::vector<Team> teams_;
};

/// One rank's part in combining vectors up n-ary trees: one within each socket to its leader, and
/// one over the leaders to the first leader. Partial results lie in scratch.
class Climb {
  public:
    /// `builder`, `sockets` and `segments` must outlive this. Takes staging_buffer_bytes() of
    /// scratch at the same place on all ranks, so no other scratch may be taken before.
    Climb(graph::Builder& builder, const Sockets& sockets, const Segments& segments,
          unsigned radix);

    /// Combines the segment of all ranks' `source` to the first leader's `target`. `leaves` is
    /// where the `source` of a rank without children lies. Combines in rank order if sockets are
    /// contiguous and led by their lowest ranks. After the returned last op of any other rank than
    /// the first leader, that rank's parent may read.
    SegmentOps run(const Segment& segment, graph::Slice source, graph::Slice leaves,
                   graph::Slice target) const;

    /// Tells the children of this rank that it has read what they left in run(); this comes after
    /// `ops`, which run() returned. Returns the op after which this rank's parent has read, so that
    /// the segment of `source`, which is that of run(), may be written; nothing at the first
    /// leader, which has no parent.
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
        bool combines = false; ///< Its partial result is in scratch, else it has published.
    };
    std::vector<std::vector<Child>> groups_; ///< Combined in one pass each, in this order.
    Rank parent_ = kNoRank;
};

// Pieces for whole vectors, segment by segment. REQUIRES, for both:
// builder.staging_buffer(segments.staging_buffer_bytes()) was called on all ranks of the group.

/// Does Climb::run() and Climb::confirm() for all segments of `source`: afterwards ranks know that
/// their parents have read them.
void climb_by_segments(graph::Builder& builder, const Climb& climb, const Segments& segments,
                       graph::Slice source, graph::Slice leaves, graph::Slice target);
/// Does Stages::read() and Stages::confirm() for all segments of `roots` and `own`: afterwards the
/// ranks that were read know it.
void read_by_segments(graph::Builder& builder, const Stages& stages, const Segments& segments,
                      graph::Slice roots, graph::Slice own);

// Prices of these pieces and of their parts, for all ranks of the fullest host, with a processor
// for each rank.

double climb_by_segments_ns(const Facts& facts, const Segments& segments);
/// Returns the time of read_by_segments() in one stage or in two, whichever takes less.
double read_by_segments_ns(const Facts& facts, const Segments& segments);
/// Returns the time of read_by_segments() in one stage, in which each rank reads for `read_ns` in
/// all.
double read_once_ns(const Facts& facts, const Segments& segments, double read_ns);
/// Returns the time of read_by_segments() in two stages on `node`, which is a known_node().
double read_twice_ns(const Facts& facts, const cost::NodeModel& node, const Segments& segments);
/// Returns the time of one segment, of `bytes`, of vectors of `vector_bytes`: ranks are told of it
/// down a tree, and read it in one stage or two.
double read_segment_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t vector_bytes);
/// Returns whether two stages take less than one.
bool read_in_two_stages(const Facts& facts, std::uint64_t bytes);

/// Returns the time spent waiting for turns of a processor, where ranks share one: each level of a
/// tree waits for one.
double climb_turns_ns(const Facts& facts, unsigned radix);
/// Returns the time of one segment, of `bytes`, of vectors of `vector_bytes` up the trees, from
/// when the leaves can be read on.
double climb_segment_ns(const Facts& facts, unsigned radix, std::uint64_t bytes,
                        std::uint64_t vector_bytes);

/// Returns each rank's work on average: all ranks but one publish, and their parents read and
/// combine what they publish.
double climb_work_ns(const Facts& facts, const Work& work, const graph::Request& request,
                     double segments);

/// Returns each rank's work in an allreduce by tiles: all vectors are published; each rank reads as
/// much as a vector in order to combine its tile, and as much again for the result.
double tiled_work_ns(const Work& work, Rank count, std::uint64_t bytes);

/// Returns the radix of these trees that is cheapest.
unsigned climb_radix(const Facts& facts, const Segments& segments);

} // namespace ucg::plan
