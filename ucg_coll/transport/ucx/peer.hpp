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
#include "ucg_coll/transport/ucx/handles.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/short_lane.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace ucg::transport::ucx {

enum class LaneState : std::uint8_t {
    untried,
    offered,  ///< Our endpoint waits for one of the peer's.
    accepted, ///< Ours is connected to the one that the peer offered; its greeting is to come.
    greeting, ///< The greeting could not be sent yet.
    greeted,  ///< Sent, not answered: UCP carries everything.
    open,
    none, ///< No route, or none that worked.
};

/// What one process has to say to another, without its head.
struct ControlMessage {
    Control what = Control::bye;
    std::uint32_t detail = 0;
    std::string payload;
};

/// A connection that could not be made, and is tried again.
struct Refusal {
    using Clock = std::chrono::steady_clock;

    Clock::time_point next_try;
    Clock::time_point give_up;
    std::chrono::milliseconds pause{10}; ///< After the next try; doubles.
    std::vector<ControlMessage> owed;    ///< To be said first when the connection is there.
};

struct Peer {
    ProcessAddress address;
    unsigned groups = 0;          ///< Groups that list it.
    std::vector<Link*> links;     ///< Those in use.
    ucp_ep_h endpoint = nullptr;  ///< Made at first use; null again once it is being closed.
    bool connected = false;       ///< It has had an endpoint.
    std::uint32_t connection = 0; ///< Counts the endpoints.
    bool carried = false;         ///< Something has gone out by the present one.
    /// When it is made again unless something has gone out by then.
    std::optional<std::chrono::steady_clock::time_point> doubted_until;
    std::optional<Refusal> refusal;     ///< Set while it cannot be connected to.
    std::vector<ControlMessage> unsaid; ///< What an earlier connection gave back unsent.
    Status failure; ///< Why nothing more comes or goes; that it left is one reason.

    LaneState lane_state = LaneState::untried;
    UctEndpoint lane;
    std::size_t lane_bytes_max = 0;
    ShortLane::Route route;               ///< That of `lane`.
    std::vector<ShortLane::Route> routes; ///< Best first.
    std::size_t routes_tried = 0;
    std::uint32_t attempt = 0;  ///< Counts the endpoints that we began; tells answers apart.
    LineWriter lines_out;       ///< Used with their key.
    UctKey lines_key;           ///< To the peer's ring; false where it has given none.
    std::uint64_t lines_at = 0; ///< The ring's address there.
    std::optional<ShortLane::Ring> ring; ///< Ours, which the peer may write.
    std::optional<LineReader> lines_in;  ///< Set with `ring`.
    std::uint32_t offer_taken = 0;       ///< accepted: the peer's attempt.

    bool left = false; ///< It has said good-bye by all ways that it used.
    bool ucp_bye_came = false;
    bool lane_bye_came = false;
    bool lane_bye_expected = false;
    bool bye_answered = false; ///< It has answered ours.
    bool lane_bye_due = false; ///< Ours found no room on the lane yet.
};

} // namespace ucg::transport::ucx
