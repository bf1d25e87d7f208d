// The part of a group's wire-up that connects the ranks of one host by shared memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/latest_options.hpp"
#include "ucg_coll/capi/node_memory.hpp"
#include "ucg_coll/capi/task.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {

/// To be called in this order: tell(), agree(), connect().
///
/// Between two exchanges other groups of this process may be made, from their beginnings to their
/// ends. What this rank has told stays true nevertheless:
///   - The heap that it has named is there, and not given up, or connect() ends without shared
///     memory at all ranks. Once an offer is made the heap stays, since something is leased in it.
///   - A heap that it wished for is made by nobody else. A rank that waits claims it at once
///     (NodeMemory::claim()). A rank that pauses claims it when all ranks have said hello, since
///     until then another group may have to be made first; all ranks then tell in an exchange
///     whether they could.
///   - What it has said to have mapped stays mapped until connect() (Heap::keep_mapped()).
///   - What it would lease, and by which options, stays as it was; both are kept in this object.
/// A rank tries at once whether the kernel copies to and from what it maps, so that
/// NodeMemory::reaches_attached() speaks of all heaps that are mapped.
class SharedMemoryWireup {
  public:
    /// All arguments must outlive it. `waits`: this rank waits for its peers' heaps; else it
    /// pauses.
    SharedMemoryWireup(NodeMemory& memory, LatestOptions& latest, const Config& config,
                       Peers& peers, WiredGroup& group, bool waits)
        : memory_(memory), latest_(latest), config_(config), peers_(peers), group_(group),
          waits_(waits) {}
    ~SharedMemoryWireup();
    SharedMemoryWireup(const SharedMemoryWireup&) = delete;
    SharedMemoryWireup& operator=(const SharedMemoryWireup&) = delete;

    /// Says in `mine` what this rank has, or wishes for. Programs make communicators of the same
    /// ranks again and again; so it offers at once what it would offer if this group were like the
    /// latest one of its size, which saves an exchange where that holds for all.
    void tell(Hello& mine);

    /// Takes in what all ranks have said. The group must have its placement and its profile. Fails
    /// with busy, at all ranks, where one makes its heap for another group: that may have to wait
    /// for other ranks of this group.
    Status agree(const std::vector<Hello>& all);

    /// Connects the ranks. Returns whether shared memory carries the traffic on all hosts. Decided
    /// alike on all ranks: if it fails for one, the whole group does without. Fails as agree()
    /// does. Collective.
    Task<Result<bool>> connect();

    /// To be called when this rank fails and the others need not know: an exchange may have failed
    /// here alone, or memory ran out. Ranks that have made the group must not wait for this one for
    /// ever, so they learn of it and fail; they may still write where this rank said. What was made
    /// of the group's WiredGroup must still be there. Takes no memory.
    void break_off();

    /// Keeps the options: the next group of this size may be like this one.
    void remember_options();

  private:
    using Transport = transport::ShmTransport;
    using Clock = std::chrono::steady_clock;

    void guess(Hello& mine, shm::Heap& heap);
    /// Does it hold for a rank that shares its host with others?
    template <typename Holds>
    bool some_on_hosts(const std::vector<Hello>& all, Holds holds) const;
    bool claim();
    Task<Status> agree_on_claims();
    void look_at_guesses(const std::vector<Hello>& all);
    transport::ShmOptions options() const;
    /// Returns this rank's index among the ranks of its host.
    std::size_t self() const {
        return static_cast<std::size_t>(group_.placement.index_on_host(peers_.rank()));
    }
    Clock::time_point deadline() const;
    /// Returns until when one step of something that is waited for may wait.
    Clock::time_point patience() const { return waits_ ? Clock::time_point::max() : Clock::now(); }
    Task<Result<shm::Heap*>> heap();
    Task<std::unique_ptr<Transport>> make(ShmOffer& mine, Status& status);
    bool knows_all_heaps(const shm::Heap& heap) const;
    bool may_copy_by_kernel() const;
    void try_mates(shm::Heap& heap);
    Task<Status> map(std::vector<shm::HeapAddress> heaps);
    Task<ShmEnd> attach(Transport* mine, const std::vector<ShmOffer>& offers, Status& status);
    Task<Status> agree_on_ends(const std::vector<ShmOffer>& offers, std::vector<ShmEnd>& ends);
    bool settle(const std::vector<ShmOffer>& offers);
    bool reaches_all(ShmEnd end);
    bool step_down(const std::vector<ShmEnd>& ends, const Status& status);
    void agree_on_staging(const std::vector<ShmOffer>& offers);

    NodeMemory& memory_;
    LatestOptions& latest_;
    const Config& config_;
    Peers& peers_;
    WiredGroup& group_;
    bool waits_;
    bool wished_ = false;  ///< This rank wished for a heap.
    bool claimed_ = false; ///< Nobody else makes that heap now.
    bool all_tell_of_claims_ = false;
    bool all_enable_ = true;
    std::uint64_t staging_bytes_ = ~std::uint64_t{0}; ///< The least that any rank would have.
    std::uint64_t ring_room_ = ~std::uint64_t{0}; ///< What every rank has for buffers of a ring.
    std::vector<shm::HeapWish> heaps_;            ///< What the ranks on this host said of theirs.
    std::vector<shm::AccessTicket> tickets_;      ///< Those of the ranks that wished for a heap.
    std::unique_ptr<Transport> offered_; ///< What the others hear of, until the group has it.
    Transport* given_ = nullptr;         ///< The same, once the group has it.
    std::vector<ShmOffer> guesses_;      ///< Offers of all ranks, if they guessed right.
    std::shared_ptr<const void> mapped_; ///< Keeps what is mapped already.
};

} // namespace ucg::capi
