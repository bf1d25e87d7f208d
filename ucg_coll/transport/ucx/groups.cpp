// Groups come and go on a worker.
#include <cstring>
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
        Peer& peer = intern_peer(std::move(*address));
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
            forget_if_unused(*peer);
        }
    }
    group.peers.clear();
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
    discard(refused);
}

void Core::adopt(Link& from, Early& early) {
    if (early.envelope.kind != Kind::ready_to_receive) {
        from.early.push(early);
        return;
    }
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, early.data().data(), sizeof(bytes));
    from.note_ready(key_of(early), bytes);
    early_pool_.release(&early);
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

void Core::detach(Group& group) {
    std::unique_lock lock(mutex_);
    for (std::unique_ptr<Link>& link : group.links) {
        while (Message* message = link ? link->posted.pop() : nullptr) {
            end(*message, Status(Code::io_error, "the group has ended"));
        }
    }
    const Clock::time_point deadline = Clock::now() + options_.close_timeout;
    progress(); // Afterwards no list of deferred work names the group.
    while (group.in_flight > 0 && Clock::now() < deadline) {
        lock.unlock(); // Other groups' threads need the worker as well.
        std::this_thread::yield();
        lock.lock();
        progress();
    }
    if (group.in_flight > 0) {
        log(LogLevel::warn,
            "ucx: group {} ends with {} messages that UCX still holds; their buffers must outlive "
            "the worker",
            group.id, group.in_flight);
        give_up_if([&](const Link& link) { return &link.group == &group; });
    }
    for (std::unique_ptr<Link>& link : group.links) {
        while (Message* message = link ? link->unsent.pop() : nullptr) {
            end(*message, Status(Code::io_error, "the group has ended"));
        }
        while (Message* message = link ? link->held.pop() : nullptr) {
            end(*message, Status(Code::io_error, "the group has ended"));
        }
        if (link) {
            discard(link->early);
            std::erase(link->peer.links, link.get());
        }
    }
    if (const auto found = groups_.find(group.id);
        found != groups_.end() && found->second == &group) {
        groups_.erase(found);
    }
    last_group_ = nullptr;
    release_peers(group);
}

/// UCX keeps these operations until they end; their messages do not wait for that.
template <typename Condition>
void Core::give_up_if(Condition condition) {
    for (Operation& operation : operations_) {
        if (!operation.active || operation.message == nullptr || !condition(*operation.link)) {
            continue;
        }
        Group& group = operation.link->group;
        const Status& why = operation.link->peer.failure;
        --group.in_flight;
        group.complete(*operation.message,
                       why.ok() ? Status(Code::timed_out, "a message did not end in time") : why);
        operation.message = nullptr;
        operation.link = nullptr;
    }
}

void Core::give_up_all(const Peer& peer) {
    give_up_if([&](const Link& link) { return &link.peer == &peer; });
}

} // namespace ucg::transport::ucx
