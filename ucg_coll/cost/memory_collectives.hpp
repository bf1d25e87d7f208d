// Equations 1 to 11 of Li, Hoefler and Snir (HPDC 2013): what collectives of a node cost when the
// ranks read one another's memory. s sockets of q cores each; alpha is the level within a socket,
// beta the level between sockets, m the vector's bytes.
//
// Three things are said more exactly than in print, each where it matters:
//  * A part that has nobody to do it costs nothing: broadcasts between sockets when s = 1, within
//    them when q = 1, the excess cores of equation 7 when there are none. The paper has s, q > 1.
//  * Equation 1 sums over i = 0 .. h with h = ceil(log_n q): one term more than there are levels.
//    The text before it and the example in section 3.4 (q = 6, three steps) have h terms, as here.
//  * Contended terms are max(a + b m, a + B d m) everywhere, as in equation 1: d readers are never
//    faster than one. With B d >= b, which the paper assumes of congestion, that is a + B d m.
#pragma once

#include <cstdint>

#include "topo/topo.hpp"
#include "ucg_coll/cost/memory_model.hpp"

namespace ucg::cost {

/// The cores of a node that take part in a collective, as the paper models them.
struct NodeModel {
    unsigned sockets = 1;          ///< s: groups of cores that are closer than the widest distance.
    unsigned cores_per_socket = 1; ///< q: the cores of the largest socket.
    MemoryLevel within;            ///< alpha
    MemoryLevel between;           ///< beta; unused if s = 1.

    unsigned cores() const { return sockets * cores_per_socket; } ///< p
};

/// Returns the model of the ranks of one host of a placement. Its sockets are the groups of ranks
/// that lie closer together than the host's widest distance; where no ranks do, as when they are
/// not bound, all are one socket. Takes time in proportion to the ranks times the sockets of the
/// host, so callers should keep the result. REQUIRES: host < placement.host_count().
NodeModel node_model(const MemoryModel& model, const topo::Placement& placement,
                     std::uint32_t host);

/// Returns the smallest h with radix^h >= count: ceil(log_radix count).
/// REQUIRES: radix >= 2, count >= 1.
unsigned ceil_log(unsigned radix, unsigned count);

// Reduce and broadcast by trees (section 2.2). REQUIRES: radix >= 2.

/// (1) T = (n - 1) sum max(a + b m, a + B n^i m), i = 0 .. ceil(log_n q) - 1: n-ary trees, one
/// within each socket.
double tree_reduce_within_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes);
/// (2) T = (n - 1) (a + b m) ceil(log_n s), level beta: one tree over the sockets.
double tree_reduce_between_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes);
/// (3) T = (1) + (2).
double tree_reduce_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes);

/// Second operand of (4)'s minimum: all cores read the root's vector; the q of a socket share its
/// link.
double one_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes);
/// First operand of (4)'s minimum: one core of each socket reads the root's vector, then the other
/// q - 1 cores of the socket read that core's copy.
double two_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes);
/// (4) T = min(two stages, one stage).
double broadcast_ns(const NodeModel& node, std::uint64_t bytes);

/// (5) T = (3) + (4): allreduce by a tree.
double tree_allreduce_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes);
/// Barrier: tree_allreduce_ns() without bytes, as flags go up the tree and down again (section
/// 2.6).
double barrier_ns(const NodeModel& node, unsigned radix);

// Dissemination (section 2.3): allreduce.

/// (6) where p is a power of two, (7) else. REQUIRES: at least one core.
double dissemination_ns(const NodeModel& node, std::uint64_t bytes);
/// (6) T = (a + B q m) ceil(log_2 q), level alpha, + (a + B q m) ceil(log_2 s), level beta.
double dissemination_power_of_two_ns(const NodeModel& node, std::uint64_t bytes);
/// (7) T = (6) with q' = 2^floor(log_2 q) cores of each socket, + 2 (a + B r m), level alpha, for
/// the r = q - q' others, which hand in their vector before and fetch the result after.
double dissemination_any_ns(const NodeModel& node, std::uint64_t bytes);

// Tiled reduction (section 2.4): each core reduces one tile of all vectors.

/// (8) T = (a + B q m/q) q, level alpha: the cores of each socket reduce the socket's vectors.
double tiled_reduce_within_ns(const NodeModel& node, std::uint64_t bytes);
/// (9) T = (a + B (m/q) q) ceil(log_2 s), level beta: trees over the sockets, one for each tile.
double tiled_reduce_between_ns(const NodeModel& node, std::uint64_t bytes);
/// (10) T = (8) + (9): the hierarchical tiled reduction.
double tiled_reduce_ns(const NodeModel& node, std::uint64_t bytes);
/// (11) T = (10) + (4): allreduce.
double tiled_allreduce_ns(const NodeModel& node, std::uint64_t bytes);

// The two tiled reductions that figure 13 compares with the hierarchical one, for which the paper
// gives no equation. In the manner of (8): p steps, in each of which every core reads m/p bytes.

/// All p cores read the same vector in the same step: p - q readers share the link of the socket
/// that has it, the q of that socket share its cache. T = p max((a + B q m/p) alpha, (a + B (p - q)
/// m/p) beta).
double tiled_reduce_naive_ns(const NodeModel& node, std::uint64_t bytes);
/// Core j starts with vector j, so that each vector has one reader, and links have q at most.
/// T = q (a + B q m/p) alpha + (p - q) (a + B q m/p) beta.
double tiled_reduce_cyclic_ns(const NodeModel& node, std::uint64_t bytes);

} // namespace ucg::cost
