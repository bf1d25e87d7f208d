// A node as Li, Hoefler and Snir (HPDC 2013) model it, and equation 4 there: what a broadcast costs
// when the ranks read one another's memory. s sockets of q cores each; alpha is the level within a
// socket, beta the level between sockets, m the vector's bytes. What the planner's algorithms cost
// otherwise is in plan/peer_memory.
//
// Three things are said more exactly than in print, each where it matters:
//  * A part that has nobody to do it costs nothing: broadcasts between sockets when s = 1, within
//    them when q = 1. The paper has s, q > 1.
//  * Sockets may differ in size. A rank reads the vectors of all others, so those in the smallest
//    socket read most over the links.
//  * Contended terms are max(a + b m, a + B d m), as in equation 1: d readers are never faster than
//    one. With B d >= b, which the paper assumes of congestion, that is a + B d m.
#pragma once

#include <algorithm>
#include <cstdint>

#include "topo/topo.hpp"
#include "ucg_coll/cost/memory_model.hpp"

namespace ucg::cost {

/// The cores of a node that take part in a collective, as the paper models them.
struct NodeModel {
    unsigned sockets = 1;          ///< s: groups of cores that are closer than the widest distance.
    unsigned cores_per_socket = 1; ///< q: the cores of the largest socket.
    unsigned cores_min = 1;        ///< The cores of the smallest socket.
    unsigned cores_of_root = 1;    ///< The cores of the root's socket, itself among them.
    unsigned cores = 1;            ///< p: all cores.
    MemoryLevel within;            ///< alpha
    MemoryLevel between;           ///< beta; unused if s = 1.

    /// Returns how many cores of one socket, at most, read what a socket of `size` cores has.
    unsigned far_readers(unsigned size) const { return std::min(cores_per_socket, cores - size); }
};

/// Returns the model of the ranks of one host of a placement, of which the first is the root. Its
/// sockets are the groups of ranks that lie closer together than the host's widest distance; where
/// no ranks do, as when they are not bound, all are one socket. Takes time in proportion to the
/// ranks times the sockets of the host, so callers should keep the result.
/// REQUIRES: host < placement.host_count().
NodeModel node_model(const MemoryModel& model, const topo::Placement& placement,
                     std::uint32_t host);

/// Returns the smallest h with radix^h >= count: ceil(log_radix count).
/// REQUIRES: radix >= 2, count >= 1.
unsigned ceil_log(unsigned radix, unsigned count);

// Broadcast (section 2.2).

/// Second operand of (4)'s minimum: all cores read the root's vector; the q of a socket share its
/// link.
double one_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes);
/// First operand of (4)'s minimum: one core of each socket reads the root's vector, then the other
/// q - 1 cores of the socket read that core's copy.
double two_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes);
/// (4) T = min(two stages, one stage).
double broadcast_ns(const NodeModel& node, std::uint64_t bytes);

} // namespace ucg::cost
