// The peers of a worker, which this owns. A peer is made when a group first names its process, or
// when a process that no group has named says good-bye; it is kept while a group has it or UCX
// holds something of which the end will lead to it. As long as it is kept, so is its address, which
// later groups need not be told again. Of a process that has left, the id is kept for ever, so that
// nobody connects to it again.
//
// Invariant: a peer is not moved. What a peer contains is changed by the parts of the worker whose
// state it is: peer.hpp says which. Nothing here calls UCX.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/ucx/address.hpp"
#include "ucg_coll/transport/ucx/peer.hpp"

namespace ucg::transport::ucx {

/// Why messages to and from a process fail that has said good-bye.
Status closed_by_peer();

class PeerProcesses {
  public:
    /// Returns null if there is no such peer.
    Peer* find(std::uint64_t process) const;

    /// Returns the peer whose whole address is known. Null if there is no such peer.
    Peer* find_introduced(std::uint64_t process) const;

    /// Returns the peer of the address's process, which it makes if there is none. One of a process
    /// that has left is made as failed. Unless the peer is introduced, the address becomes its.
    Peer& intern(ProcessAddress address);
    /// The same for an address that is whole.
    Peer& introduce(ProcessAddress address);

    std::size_t size() const { return by_process_.size(); }

    /// Calls `visit` for each peer, which it may erase.
    template <typename Visit>
    void visit(Visit visit) const {
        for (auto next = by_process_.begin(); next != by_process_.end();) {
            visit(*(next++)->second);
        }
    }

    /// To be called where the peer may have become one that visit_departed() visits, or would visit
    /// if no group had it.
    void note_departed(const Peer& peer);
    /// Has a peer been noted since visit_departed() was last called?
    bool have_departed() const { return have_departed_; }
    /// Calls `visit` for each peer that has left and that no group has. `visit` may erase it.
    template <typename Visit>
    void visit_departed(Visit visit_peer) {
        have_departed_ = false;
        visit([&](Peer& peer) {
            if (peer.groups == 0 && peer.left) {
                visit_peer(peer);
            }
        });
    }
    /// Keeps in mind that the peer's process has left. Returns false if memory runs out.
    bool remember(const Peer& peer);

    /// Destroys the peer. REQUIRES: nothing names it any more.
    void erase(const Peer& peer);

    /// Destroys all peers.
    void clear() { by_process_.clear(); }

  private:
    std::unordered_map<std::uint64_t, std::unique_ptr<Peer>> by_process_;
    std::unordered_set<std::uint64_t> departed_; ///< Processes that have left and were forgotten.
    bool have_departed_ = false;
};

} // namespace ucg::transport::ucx
