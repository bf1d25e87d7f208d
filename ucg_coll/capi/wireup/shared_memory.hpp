// The part of a group's wire-up that connects the ranks of one host by shared memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/task.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {

/// In this order: tell(), agree(), connect().
///
/// Between two exchanges other groups of this process may be made, from their beginnings to their
/// ends. What this rank has told stays true nevertheless:
///   - The heap that it has named is there, and not given up, or connect() ends without shared
///     memory at all ranks. From an offer on it is there, since something is leased.
///   - A heap that it wished for is made by nobody else: who waits claims it at once
///     (Context::claim_heap()). Who pauses claims it when all ranks have said hello, since until
///     then another group may have to be made first, and all tell in an exchange whether they
///     could.
///   - What it has said to have mapped stays mapped until connect() (Heap::keep_mapped()).
///   - What it would lease, and by which options, is as it was then; both are of this object.
/// What a rank maps it tries at once, so that Context::reaches_attached() is of all that it has.
class SharedMemoryWireup {
  public:
    /// All must outlive it. `waits`: this rank, for its peers' heaps; else it pauses.
    SharedMemoryWireup(Context& context, Peers& peers, WiredGroup& group, bool waits)
        : context_(context), peers_(peers), group_(group), waits_(waits) {}
    ~SharedMemoryWireup();
    SharedMemoryWireup(const SharedMemoryWireup&) = delete;
    SharedMemoryWireup& operator=(const SharedMemoryWireup&) = delete;

    /// Says what this rank has, or wishes. Programs make communicators of the same ranks again and
    /// again. So it offers at once what it would if this group were as the latest of its size,
    /// which saves an exchange where that holds for all.
    void tell(Hello& mine);

    /// Takes in what all ranks have said. The group has its placement and its profile. Fails with
    /// busy, at all ranks, where one makes its heap for another group, with which it may have
    /// to wait for other ranks of this one.
    Status agree(const std::vector<Hello>& all);

    /// Is everybody's on-host traffic carried by shared memory? Decided alike on all ranks: if it
    /// fails for one, the whole group does without. Fails as agree() does. Collective.
    Task<Result<bool>> connect();

    /// This rank fails, and the others need not know: an exchange may have failed here alone, or
    /// memory ran out. Those that have made the group must not wait for it, and may write where it
    /// said. What was made of the group's WiredGroup must still be there. Takes no memory.
    void break_off();

    /// The next group of this size may be like this one.
    void remember_options();

  private:
    using Transport = transport::ShmTransport;
    using Clock = std::chrono::steady_clock;

    void guess(Hello& mine, shm::Heap& heap);
    /// Does it hold for a rank that shares its host?
    template <typename Holds>
    bool some_on_hosts(const std::vector<Hello>& all, Holds holds) const;
    bool claim();
    Task<Status> agree_on_claims();
    void look_at_guesses(const std::vector<Hello>& all);
    transport::ShmOptions options() const;
    /// Among the ranks of its host.
    std::size_t self() const {
        return static_cast<std::size_t>(group_.placement.index_on_host(peers_.rank()));
    }
    Clock::time_point deadline() const;
    /// Until when a step of what is awaited may wait.
    Clock::time_point patience() const { return waits_ ? Clock::time_point::max() : Clock::now(); }
    Task<Result<shm::Heap*>> heap();
    Task<std::unique_ptr<Transport>> make(ShmOffer& mine, Status& status);
    bool knows_all_heaps(const shm::Heap& heap) const;
    void try_mates(shm::Heap& heap);
    Task<Status> map(std::vector<shm::HeapAddress> heaps);
    Task<ShmEnd> attach(Transport* mine, const std::vector<ShmOffer>& offers, Status& status);
    Task<Status> agree_on_ends(const std::vector<ShmOffer>& offers, std::vector<ShmEnd>& ends);
    bool settle(const std::vector<ShmOffer>& offers);
    bool reaches_all(ShmEnd end);
    bool step_down(const std::vector<ShmEnd>& ends, const Status& status);
    void agree_on_staging(const std::vector<ShmOffer>& offers);

    Context& context_;
    Peers& peers_;
    WiredGroup& group_;
    bool waits_;
    bool wished_ = false;  ///< For a heap,
    bool claimed_ = false; ///< which nobody else makes now.
    bool all_tell_of_claims_ = false;
    bool all_enable_ = true;
    std::uint64_t staging_bytes_ = ~std::uint64_t{0}; ///< The least that a rank would have.
    std::uint64_t ring_room_ = ~std::uint64_t{0}; ///< That each rank has for the buffers of a ring.
    std::vector<shm::HeapWish> heaps_;       ///< Of the ranks on this host, when they said hello.
    std::vector<shm::AccessTicket> tickets_; ///< Likewise, of those that wished for one.
    std::unique_ptr<Transport> offered_;     ///< What the others hear of, until the group has it.
    Transport* given_ = nullptr;             ///< It then: whoever makes a group of it takes it on.
    std::vector<ShmOffer> guesses_;          ///< Of all ranks, if they hold.
    std::shared_ptr<const void> mapped_;     ///< Keeps what is mapped already.
};

} // namespace ucg::capi
