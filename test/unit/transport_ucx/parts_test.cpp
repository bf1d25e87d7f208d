// The parts of a worker that do without UCX: peers, groups and operations.
#include <new>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/groups.hpp"
#include "ucg_coll/transport/ucx/operations.hpp"
#include "ucg_coll/transport/ucx/peers.hpp"

using namespace ucg;
using namespace ucg::transport;
using namespace ucg::transport::ucx;

namespace {

ProcessAddress address_of(std::uint64_t process) {
    ProcessAddress address;
    address.process = process;
    return address;
}

struct NoEnd : OperationEnd {
    void operation_ended(Operation& /*operation*/, ucs_status_t /*status*/) override {}
};

/// A group of two ranks, of which this process has the first.
GroupState pair_with(Peer& peer, std::uint32_t id) {
    GroupState group;
    group.id = id;
    group.self = 0;
    group.ids = GroupIds(std::vector<std::uint32_t>{id, 7});
    group.members.resize(2);
    group.members[1].set(peer);
    return group;
}

Envelope from_peer(std::uint32_t group) {
    Envelope envelope;
    envelope.group = group;
    envelope.source = 1;
    envelope.sequence = 3;
    return envelope;
}

} // namespace

TEST_CASE("ucx: a process that has left is remembered after its peer is gone", "[ucx][peers]") {
    PeerProcesses peers;
    Peer& peer = peers.intern(address_of(5));
    CHECK(&peers.intern(address_of(5)) == &peer);
    CHECK(peers.find(5) == &peer);
    peers.note_departed(peer);
    CHECK(!peers.have_departed()); // It has not left.

    peer.left = true;
    peer.groups = 1;
    peers.note_departed(peer);
    CHECK(peers.have_departed()); // A group has it, perhaps one that has ended.
    peers.visit_departed([](Peer& /*peer*/) { FAIL("it is in use"); });

    peer.groups = 0;
    peers.note_departed(peer);
    REQUIRE(peers.have_departed());
    peers.visit_departed([&](Peer& departed) {
        CHECK(&departed == &peer);
        CHECK(peers.remember(departed));
        peers.erase(departed);
    });
    CHECK(!peers.have_departed());
    CHECK(peers.find(5) == nullptr);
    CHECK(peers.size() == 0);
    CHECK(!peers.intern(address_of(5)).failure.ok());
    CHECK(peers.intern(address_of(6)).failure.ok());
}

TEST_CASE("ucx: a peer is known once its whole address is, which then stays", "[ucx][peers]") {
    PeerProcesses peers;
    ProcessAddress of_bye = address_of(5);
    of_bye.ucp = "a part";
    Peer& peer = peers.intern(of_bye);
    CHECK(peers.find_introduced(5) == nullptr);
    ProcessAddress whole = address_of(5);
    whole.ucp = "all";
    CHECK(&peers.introduce(whole) == &peer);
    CHECK(peers.find_introduced(5) == &peer);
    CHECK(peers.find_introduced(6) == nullptr);
    CHECK(&peers.intern(of_bye) == &peer);
    CHECK(peer.introduced);
    CHECK(peer.address.ucp == "all");
}

TEST_CASE("ucx: all peers are visited, also when each is destroyed", "[ucx][peers]") {
    PeerProcesses peers;
    for (std::uint64_t process = 1; process <= 20; ++process) {
        peers.intern(address_of(process));
    }
    std::vector<std::uint64_t> seen;
    peers.visit([&](Peer& peer) {
        seen.push_back(peer.address.process);
        peers.erase(peer);
    });
    CHECK(seen.size() == 20);
    CHECK(peers.size() == 0);
}

TEST_CASE("ucx: a group gets what came before it, but for what fits no link", "[ucx][groups]") {
    UcxEarlyPool early(nullptr);
    GroupTable groups(early);
    Peer peer;
    const std::uint64_t word = 80'000;
    groups.keep(*early.hold(from_peer(4), &word, sizeof(word)));
    Envelope ready = from_peer(4);
    ready.kind = Kind::ready_to_receive;
    groups.keep(*early.hold(ready, &word, sizeof(word)));
    Envelope unknown = from_peer(4);
    unknown.source = 9;
    groups.keep(*early.hold(unknown, &word, sizeof(word)));

    GroupState group = pair_with(peer, 4);
    groups.add(group);
    CHECK(groups.find(4) == &group);
    CHECK(groups.find(5) == nullptr);
    RankLink& link = link_to(group, 1);
    CHECK(peer.links == std::vector<RankLink*>{&link});
    CHECK(&link_to(group, 1) == &link);
    CHECK(link.group_there == 7);
    Early* held = link.early.pop();
    REQUIRE(held != nullptr);
    CHECK(held->bytes == sizeof(word));
    CHECK(link.early.empty());
    CHECK(link.take_ready(key_of(ready)) == word);
    early.release(held);

    groups.remove(group);
    CHECK(groups.find(4) == nullptr);
    CHECK(groups.empty());
}

TEST_CASE("ucx: of an abandoned group that has ended, its peers are kept", "[ucx][groups]") {
    UcxEarlyPool early(nullptr);
    GroupTable groups(early);
    Peer peer;
    {
        GroupState group = pair_with(peer, 4);
        groups.add(group);
        CHECK(receiver_of(group, from_peer(4)) == &link_to(group, 1));
        group.abandoned = true;
        groups.note_abandoned(group);
        CHECK(receiver_of(group, from_peer(4)) == nullptr);
        groups.remove(group);
        groups.keep_peers(group);
    }
    const GroupState* ended = groups.find_abandoned(4);
    REQUIRE(ended != nullptr);
    REQUIRE(ended->members.size() == 2);
    CHECK(ended->members[0].peer() == nullptr);
    CHECK(ended->members[1].peer() == &peer);
    CHECK(ended->members[1].link() == nullptr); // It has ended with the group.
    CHECK(ended->ids[0] == 4);
    CHECK(ended->ids[1] == 7);
    CHECK(groups.find_abandoned(5) == nullptr);
}

TEST_CASE("ucx: messages of operations are given up, and operations used again",
          "[ucx][operations]") {
    WorkerState state;
    NoEnd end;
    Operations operations(state, end);
    Peer peer;
    GroupState group = pair_with(peer, 4);
    RankLink& link = link_to(group, 1);
    Message message;
    Operation& sends = operations.take_send(peer);
    sends.link = &link;
    sends.message = &message;
    group.in_flight = 1;
    operations.take(); // Without a message, as a control message that waits.
    CHECK(operations.active() == 2);
    CHECK(operations.sends_to(peer));

    operations.give_up_if([](const RankLink&) { return false; });
    CHECK(group.in_flight == 1);
    operations.give_up_if([&](const RankLink& each) { return &each.peer == &peer; });
    CHECK(message.state == MessageState::failed);
    CHECK(group.in_flight == 0);
    CHECK(group.status.code() == Code::timed_out);
    CHECK(operations.active() == 2); // UCX still has it.

    operations.release(sends);
    CHECK(!operations.sends_to(peer));
    CHECK(&operations.take() == &sends);
}

TEST_CASE("ucx: only words to peers that are well, and lost for want of memory, fail the worker",
          "[ucx][operations]") {
    WorkerState state;
    NoEnd end;
    Operations operations(state, end);
    Peer peer;
    operations.note_loss(peer, UCS_ERR_IO_ERROR);
    CHECK(!state.take_loss());
    operations.note_loss(peer, UCS_ERR_NO_MEMORY);
    CHECK(state.take_loss());
    CHECK(!state.take_loss());
    peer.failure = closed_by_peer();
    operations.note_loss(peer, UCS_ERR_NO_MEMORY);
    CHECK(!state.take_loss());
    CHECK(!state.attempt([] { throw std::bad_alloc(); }));
    CHECK(state.take_loss());
}
