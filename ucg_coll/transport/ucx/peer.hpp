// A process that this one has to do with: its address, the connection to it, and how far the short
// lane to it has come. Shared by all groups that contain it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/ucx/address.hpp"
#include "ucg_coll/transport/ucx/exhaustion.hpp"
#include "ucg_coll/transport/ucx/handles.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/short_lane.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace ucg::transport::ucx {

/// How far the short lane to a peer has come.
enum class LaneState : std::uint8_t {
    untried,
    offered,  ///< Our endpoint waits for one of the peer's.
    accepted, ///< Ours is connected to the one that the peer offered; its greeting is to come.
    greeting, ///< The greeting could not be sent yet.
    greeted,  ///< The greeting was sent, but not answered: UCP carries everything.
    open,
    none, ///< There is no route, or none that worked.
};

/// A control message to a peer, without its header.
struct ControlMessage {
    Control what = Control::bye;
    std::uint32_t detail = 0;
    std::string payload;
};

/// One that has arrived.
struct ControlArrival {
    ControlHeader header;
    std::string payload;
};

/// The state of a connection that could not be made, and is tried again; or that waits for its turn
/// to be tried.
struct Refusal {
    using Clock = std::chrono::steady_clock;

    Clock::time_point next_try;
    Clock::time_point give_up;
    Clock::duration spent_before{};      ///< What refused tries had taken before, of all peers.
    unsigned tries = 0;                  ///< Those that were refused.
    bool told = false;                   ///< A try was refused: the log has it, and `owed`.
    std::chrono::milliseconds pause{10}; ///< From the next try to the one after it; doubles.
    std::vector<ControlMessage> owed;    ///< To be sent first when the connection is there.
};

/// A process that this one exchanges messages with. Whose state each part is: only that changes it,
/// but for what is said of single ones.
struct Peer {
    // Peers. UcxCore counts the groups, and links come and go with these.
    ProcessAddress address;
    bool introduced = false;      ///< Its address is whole; of a bye's sender only `ucp` is known.
    unsigned groups = 0;          ///< Groups that have it as a peer, or are about to.
    std::vector<RankLink*> links; ///< Links to it that are in use.

    // Connections.
    ucp_ep_h endpoint = nullptr;  ///< Made at first use; null again once it is being closed.
    bool connected = false;       ///< It has had an endpoint.
    std::uint32_t connection = 0; ///< Rises with each new endpoint.
    /// Something has gone out by the present endpoint. Operations and UcxMessages set it.
    bool carried = false;
    /// When the connection is made again unless something has gone out by it until then.
    std::optional<std::chrono::steady_clock::time_point> doubted_until;
    std::optional<Refusal> refusal;     ///< Set while no connection to it can be made.
    std::vector<ControlMessage> unsaid; ///< What an earlier connection gave back unsent.
    Status failure; ///< Why nothing more is sent or received. One reason is that it has left.

    // Lanes. UcxMessages puts lines.
    LaneState lane_state = LaneState::untried;
    UctEndpoint lane;                     ///< The endpoint of the short lane here.
    std::size_t lane_bytes_max = 0;       ///< The longest message that the open lane carries.
    ShortLane::Route route;               ///< That of `lane`.
    std::vector<ShortLane::Route> routes; ///< All routes to it, best first.
    std::size_t routes_tried = 0;
    std::uint32_t attempt = 0;  ///< Number of the latest lane endpoint here; tells answers apart.
    LineWriter lines_out;       ///< The peer's ring, which `lines_key` opens.
    UctKey lines_key;           ///< Key to the peer's ring; false where it has given none.
    std::uint64_t lines_at = 0; ///< The ring's address at the peer.
    std::optional<ShortLane::Ring> ring; ///< Our ring that the peer may write.
    std::optional<LineReader> lines_in;  ///< Set with `ring`.
    std::uint32_t offer_taken = 0;       ///< State `accepted`: the attempt of the peer's offer.

    // Parting.
    bool left = false; ///< It has said good-bye by all ways that it used.
    bool ucp_bye_came = false;
    bool lane_bye_came = false;
    bool lane_bye_expected = false;
    bool bye_answered = false; ///< It has answered our bye.
    bool lane_bye_due = false; ///< Our bye has found no room on the lane yet. Lanes says it.
};

/// Returns why a message to or from the peer fails: because the peer has failed, or else what
/// `make` returns.
template <typename Make>
Status failure_of(const Peer& peer, Make make) {
    return peer.failure.ok() ? described(make) : peer.failure;
}

} // namespace ucg::transport::ucx
