// The part of a group's wire-up that connects the ranks of one host by shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {

/// In this order: guess(), agree(), connect().
class SharedMemoryWireup {
  public:
    /// All must outlive it.
    SharedMemoryWireup(Context& context, Peers& peers, WiredGroup& group)
        : context_(context), peers_(peers), group_(group) {}

    /// Programs make communicators of the same ranks again and again. So this rank offers at once
    /// what it would if this group were as the latest of its size, which saves an exchange where
    /// that holds for all.
    void guess(Hello& mine);

    /// Takes in what all ranks have said. The group has its placement and its profile.
    void agree(const std::vector<Hello>& all);

    /// Is everybody's on-host traffic carried by shared memory? Decided alike on all ranks: if it
    /// fails for one, the whole group does without. Collective.
    Result<bool> connect();

    /// This rank fails, and the others need not know: an exchange may have failed here alone, or
    /// memory ran out. Those that have made the group must not wait for it, and may write where it
    /// said. Takes no memory.
    void break_off();

    /// The next group of this size may be like this one.
    void remember_options();

  private:
    using Transport = transport::ShmTransport;

    void look_at_guesses(const std::vector<Hello>& all);
    transport::ShmOptions options() const;
    std::unique_ptr<Transport> make(ShmOffer& mine, Status& status);
    bool knows_all_heaps(const shm::Heap& heap) const;
    ShmEnd attach(Transport* mine, const std::vector<ShmOffer>& offers, Status& status);
    Status agree_on_ends(const std::vector<ShmOffer>& offers, std::vector<ShmEnd>& ends);
    bool reaches_all(ShmEnd end);
    bool step_down(const std::vector<ShmEnd>& ends, const Status& status);
    void agree_on_staging(const std::vector<ShmOffer>& offers);

    Context& context_;
    Peers& peers_;
    WiredGroup& group_;
    bool all_enable_ = true;
    std::uint64_t staging_bytes_ = ~std::uint64_t{0}; ///< The least that a rank would have.
    std::uint64_t ring_room_ = ~std::uint64_t{0}; ///< That each rank has for the buffers of a ring.
    std::vector<shm::HeapWish> heaps_;   ///< Of the ranks on this host, when they said hello.
    std::unique_ptr<Transport> offered_; ///< What the others hear of, until the group has it.
    std::vector<ShmOffer> guesses_;      ///< Of all ranks, if they hold.
};

} // namespace ucg::capi
