#include "ucg_coll/transport/ucx/groups.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/ucx/peer.hpp"

namespace ucg::transport::ucx {

RankLink& link_to(GroupState& group, Rank rank) {
    Member& member = group.members[static_cast<std::size_t>(rank)];
    if (RankLink* const used = member.link()) {
        return *used;
    }
    Peer* const peer = member.peer();
    UCG_ASSERT(peer != nullptr);
    group.links.push_back(std::make_unique<RankLink>(group, rank, group.ids[rank], *peer));
    RankLink& made = *group.links.back();
    peer->links.push_back(&made);
    member.set(made);
    return made;
}

RankLink* receiver_of(GroupState& group, const Envelope& envelope) {
    if (group.abandoned) {
        return nullptr;
    }
    const auto source = static_cast<std::size_t>(envelope.source);
    if (source >= group.members.size() || group.members[source].peer() == nullptr) {
        log(LogLevel::warn, "ucx: a message for group {} from rank {}, which it does not serve",
            group.id, envelope.source);
        return nullptr;
    }
    return &link_to(group, envelope.source);
}

void GroupTable::add(GroupState& group) {
    groups_.emplace(group.id, &group);
    last_ = &group;
    adopt_orphans(group);
}

void GroupTable::remove(const GroupState& group) {
    if (const auto found = groups_.find(group.id);
        found != groups_.end() && found->second == &group) {
        groups_.erase(found);
    }
    last_ = nullptr;
}

GroupState* GroupTable::look_up(std::uint32_t id) {
    const auto found = groups_.find(id);
    last_ = found == groups_.end() ? nullptr : found->second;
    return last_;
}

void GroupTable::adopt_orphans(GroupState& group) {
    const auto found = orphans_.find(group.id);
    if (found == orphans_.end()) {
        return;
    }
    Fifo<Early> refused;
    while (Early* early = found->second.pop()) {
        if (RankLink* from = receiver_of(group, early->envelope)) {
            from->acknowledge(early->envelope.released);
            adopt(*from, *early);
        } else {
            refused.push(*early);
        }
    }
    orphans_.erase(found);
    early_.discard(refused);
}

void GroupTable::adopt(RankLink& from, Early& early) {
    if (early.envelope.kind != Kind::ready_to_receive) {
        from.early.push(early);
        return;
    }
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, early.data().data(), sizeof(bytes));
    from.note_ready(key_of(early), bytes);
    early_.release(&early);
}

void GroupTable::discard_orphans() {
    for (auto& [group, early] : orphans_) {
        early_.discard(early);
    }
    orphans_.clear();
}

void GroupTable::keep_peers(GroupState& group) {
    if (const auto found = abandoned_.find(group.id); found != abandoned_.end()) {
        for (const std::unique_ptr<RankLink>& link : group.links) { // They end with the group.
            group.members[static_cast<std::size_t>(link->rank)].set(link->peer);
        }
        found->second.self = group.self;
        found->second.ids = std::move(group.ids);
        found->second.members = std::move(group.members);
    }
}

const GroupState* GroupTable::find_abandoned(std::uint32_t id) const {
    const auto found = abandoned_.find(id);
    return found == abandoned_.end() ? nullptr : &found->second;
}

} // namespace ucg::transport::ucx
