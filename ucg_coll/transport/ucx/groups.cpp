// Groups come and go on a worker.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <thread>

#include "ucg_coll/transport/ucx/core.hpp"

namespace ucg::transport::ucx {

Status Core::attach(Group& group, const std::vector<PeerAddress>& peers) {
    if (!broken_.ok()) {
        return broken_;
    }
    if (groups_.contains(group.id)) {
        return failure(Code::invalid_argument, "ucx: group {} exists already in this process",
                       group.id);
    }
    group.peers.assign(peers.size(), nullptr);
    group.links.resize(peers.size());
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
        if (peers[rank].empty() || static_cast<Rank>(rank) == group.self) {
            continue;
        }
        Result<ProcessAddress> address = unpack(peers[rank]);
        if (!address) {
            return address.status();
        }
        Peer& peer = meet(std::move(*address));
        group.peers[rank] = &peer;
        ++peer.groups;
    }
    groups_.emplace(group.id, &group);
    last_group_ = &group;
    adopt_orphans(group);
    return {};
}

void Core::release_peers(Group& group) {
    for (Peer* peer : group.peers) {
        if (peer != nullptr) {
            --peer->groups;
            peers_.note_departed(*peer);
            forget_if_unused(*peer);
        }
    }
    group.peers.clear();
}

/// Keeps the peers of a group that ends after it was abandoned: what comes for it is answered for
/// as long as there may be peers that have not heard of its end.
void Core::keep_peers(Group& group) {
    if (const auto found = abandoned_.find(group.id); found != abandoned_.end()) {
        found->second.self = group.self;
        found->second.ids = std::move(group.ids);
        found->second.peers = std::move(group.peers);
    }
}

void Core::adopt_orphans(Group& group) {
    const auto found = orphans_.find(group.id);
    if (found == orphans_.end()) {
        return;
    }
    Fifo<Early> refused;
    while (Early* early = found->second.pop()) {
        if (Link* from = receiver_of(group, early->envelope)) {
            from->acknowledge(early->envelope.released);
            adopt(*from, *early);
        } else {
            refused.push(*early);
        }
    }
    orphans_.erase(found);
    early_.discard(refused);
}

void Core::adopt(Link& from, Early& early) {
    if (early.envelope.kind != Kind::ready_to_receive) {
        from.early.push(early);
        return;
    }
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, early.data().data(), sizeof(bytes));
    from.note_ready(key_of(early), bytes);
    early_.release(&early);
}

Link& Core::link(Group& group, Rank rank) {
    std::unique_ptr<Link>& slot = group.links[static_cast<std::size_t>(rank)];
    if (!slot) {
        Peer* peer = group.peers[static_cast<std::size_t>(rank)];
        UCG_ASSERT(peer != nullptr);
        auto made =
            std::make_unique<Link>(group, rank, group.ids[static_cast<std::size_t>(rank)], *peer);
        peer->links.push_back(made.get());
        slot = std::move(made);
    }
    return *slot;
}

namespace {

/// Ends the messages that wait in these lists of the group's links.
void end_waiting(Group& group, std::initializer_list<Fifo<Message> Link::*> lists,
                 const Status& why) {
    for (const std::unique_ptr<Link>& link : group.links) {
        for (Fifo<Message> Link::*list : lists) {
            while (Message* message = link ? (*link.*list).pop() : nullptr) {
                group.complete(*message, why);
            }
        }
    }
}

} // namespace

/// Waits, in bounded time, until UCX holds no message of the group. Returns whether it holds none.
bool Core::let_go(const Group& group, std::unique_lock<OptionalMutex>& lock) {
    const Clock::time_point deadline = Clock::now() + setup_.options.close_timeout;
    progress(); // Afterwards no list of deferred work names the group.
    while (group.in_flight > 0 && Clock::now() < deadline) {
        lock.unlock(); // Other groups' threads need the worker as well.
        std::this_thread::yield();
        lock.lock();
        progress();
    }
    return group.in_flight == 0;
}

void Core::give_up(const Group& group, const char* what) {
    static_cast<void>(suffices([&] {
        log(LogLevel::warn,
            "ucx: group {} {} with {} messages that UCX still holds; their buffers must outlive "
            "the worker",
            group.id, what, group.in_flight);
    }));
    operations_.give_up_if([&](const Link& link) { return &link.group == &group; });
}

/// Throws nothing: it is called by a destructor, also when memory has run out.
void Core::detach(Group& group) {
    std::unique_lock lock(mutex_);
    const Status ended = described([] { return Status(Code::io_error, "the group has ended"); });
    end_waiting(group, {&Link::posted}, ended);
    if (!let_go(group, lock)) {
        give_up(group, "ends");
    }
    end_waiting(group, {&Link::unsent, &Link::held}, ended);
    for (const std::unique_ptr<Link>& link : group.links) {
        if (link) {
            early_.discard(link->early);
            std::erase(link->peer.links, link.get());
        }
    }
    if (const auto found = groups_.find(group.id);
        found != groups_.end() && found->second == &group) {
        groups_.erase(found);
    }
    last_group_ = nullptr;
    if (group.abandoned) {
        keep_peers(group);
    } else {
        release_peers(group);
    }
}

/// Declines the requests to send that have arrived: their senders wait for an answer.
void Core::decline_early(const Group& group) {
    for (const std::unique_ptr<Link>& link : group.links) {
        for (const Early* early = link ? link->early.front() : nullptr; early != nullptr;
             early = early->next) {
            decline(group, early->envelope);
        }
    }
}

/// Gives up all messages of a group. When this returns nothing is written to the buffers of the
/// group's messages any more, nor read from them; README.md says where that cannot be had. What a
/// peer has under way ends soon, unless the peer is busy elsewhere. Rendezvous that wait here for
/// their receives are released, and requests to send declined, so that the messages of their
/// senders end; so are those that come later. Throws nothing: it is called when memory has run out.
void Core::abandon(Group& group) {
    std::unique_lock lock(mutex_);
    if (group.abandoned) {
        return;
    }
    run_deferred(); // Afterwards no list of deferred work names the group, nor will one.
    if (group.status.ok()) {
        group.status = described([] {
            return Status(Code::io_error, "the group was given up: another transport failed");
        });
    }
    group.abandoned = true;
    end_waiting(group, {&Link::posted, &Link::unsent, &Link::held}, group.status);
    state_.attempt([&] {
        abandoned_.try_emplace(group.id);
        decline_early(group);
    });
    for (const std::unique_ptr<Link>& link : group.links) {
        if (link) {
            early_.discard(link->early);
        }
    }
    bool over = let_go(group, lock);
    if (!over) {
        state_.attempt([&] { over = connections_.drop_holders(group) && let_go(group, lock); });
    }
    if (!over) {
        give_up(group, "is given up");
    }
}

} // namespace ucg::transport::ucx
