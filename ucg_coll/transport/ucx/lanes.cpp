// The short lane to each peer: which route is tried, how its ends come together, and the greeting
// that proves it. UCP carries everything until then, and these messages too, but the greetings.
//
// An endpoint that connects to an interface serves one direction, and each process begins its own.
// Where endpoints connect to one another, one connection serves both:
//
//   A                                   B
//   makes an endpoint   -- offer ---->  makes one, connects it to A's
//   connects it to B's  <- acceptance -
//   greets by the lane  ------------->  knows by it that A is connected; answers, and greets
//   open                <-- answer ---
//                       --- answer -->  open
//
// So nobody sends on a connection of which the other end may not stand yet: InfiniBand would take
// that for a failure of the network. If both have offered, the offer of the smaller process id
// holds. Whoever has another lane to the peer refuses; what fails is refused or withdrawn, and the
// next route is tried.
#include "ucg_coll/transport/ucx/core.hpp"

namespace ucg::transport::ucx {

void Core::start_lane(Peer& peer) {
    if (short_lane_ != nullptr && peer.lane_state == LaneState::untried) {
        peer.routes = short_lane_->routes(setup_.self.place, peer.address);
        try_routes(peer);
    }
}

/// Gives up the lane that there is, and begins the next route that can be begun.
void Core::try_routes(Peer& peer) {
    drop_lane(peer);
    while (peer.lane_state == LaneState::none && peer.routes_tried < peer.routes.size()) {
        peer.route = peer.routes[peer.routes_tried++];
        ++peer.attempt;
        if (short_lane_->joins_endpoints(peer.route)) {
            offer_endpoint(peer);
        } else {
            peer.lane = short_lane_->connect(peer.route, peer.address);
            greet(peer);
        }
    }
}

void Core::offer_endpoint(Peer& peer) {
    LaneOffer offer;
    offer.from = peer.route.own;
    offer.to = peer.route.peer;
    peer.lane = short_lane_->begin(peer.route, offer.endpoint);
    if (peer.lane) {
        peer.lane_state = LaneState::offered;
        tell_peer(peer, Control::lane_offer, peer.attempt, pack(offer));
    }
}

/// Greets the peer by the lane. Afterwards the lane is greeted, or to be greeted later, or there is
/// none.
void Core::greet(Peer& peer) {
    LaneNotice notice;
    notice.source = setup_.self.process;
    notice.target = peer.address.process;
    notice.to = static_cast<std::uint16_t>(peer.route.peer);
    notice.attempt = peer.attempt;
    const ucs_status_t status =
        peer.lane ? ShortLane::send(peer.lane.get(), notice) : UCS_ERR_UNREACHABLE;
    if (status == UCS_OK) {
        peer.lane_state = LaneState::greeted;
    } else if (status == UCS_ERR_NO_RESOURCE) {
        peer.lane_state = LaneState::greeting;
        to_greet_.push_back(&peer);
    } else {
        drop_lane(peer);
    }
}

void Core::greet_or_next(Peer& peer) {
    greet(peer);
    if (peer.lane_state == LaneState::none) {
        try_routes(peer);
    }
}

/// Gives up the lane. Errors of its endpoint that were reported go with it: the next endpoint may
/// have the same address, and they are not to hit that one.
void Core::drop_lane(Peer& peer) {
    std::erase_if(lane_errors_, [&](const auto& error) { return error.first == peer.lane.get(); });
    peer.lane.reset();
    peer.lines_key = {};
    peer.lane_state = LaneState::none;
}

void Core::answer_greeting(const LaneNotice& greeting) {
    Peer* peer = find_peer(greeting.source);
    if (peer == nullptr) {
        strangers_[greeting.source] = greeting;
    } else if (peer->failure.ok() && state_.running()) {
        tell_peer(*peer, Control::lane_answer, greeting.attempt, ring_for(*peer, greeting.to));
        if (peer->lane_state == LaneState::accepted && peer->offer_taken == greeting.attempt) {
            greet_or_next(*peer);
        }
    }
}

/// Returns what the peer must know to put lines here; empty if it may not. A peer that greets again
/// has written nothing: it was not answered in time.
std::string Core::ring_for(Peer& peer, std::size_t own) {
    if (peer.ring && peer.ring->own != own) {
        drop_ring(peer, true);
    }
    if (!peer.ring && (peer.ring = short_lane_->give_ring(own))) {
        peer.lines_in.emplace(peer.ring->lines);
        line_peers_.push_back(&peer);
    }
    return peer.ring ? pack(peer.ring->memory) : std::string();
}

/// Takes back the peer's ring. It is given away again (`reusable`) only if its peer is known to
/// write no more.
void Core::drop_ring(Peer& peer, bool reusable) {
    if (peer.ring && reusable) {
        short_lane_->take_back(*peer.ring);
    }
    peer.ring.reset();
    peer.lines_in.reset();
    std::erase(line_peers_, &peer);
}

void Core::open_lane(Peer& peer, const std::string& payload) {
    peer.lane_state = LaneState::open;
    peer.lane_bytes_max = short_lane_->message_bytes_max(peer.route);
    if (const Result<LineMemory> memory = unpack_lines(payload)) {
        peer.lines_out = {};
        peer.lines_at = memory->address;
        peer.lines_key = short_lane_->open_memory(peer.route, *memory);
    }
}

unsigned Core::take_lines() {
    unsigned taken = 0;
    for (Peer* peer : line_peers_) {
        if (peer->lines_in->has_news() || peer->lines_in->owes()) {
            taken += take_lines_of(*peer);
        }
    }
    return taken;
}

unsigned Core::take_lines_of(Peer& peer) {
    unsigned count = 0;
    for (; count < kLinesPerRing; ++count) {
        const std::optional<Line> line = peer.lines_in->take();
        if (!line) {
            break;
        }
        peer.lines_out.acknowledge(line->taken);
        if (line->bytes <= kLineDataBytes) {
            lane_data(line->envelope, line->data.data(), line->bytes);
        }
    }
    if (peer.lines_in->owes() && peer.lane_state == LaneState::open) {
        LaneNotice notice;
        notice.source = setup_.self.process;
        notice.target = peer.address.process;
        notice.what = LaneNotice::What::taken;
        notice.attempt = peer.lines_in->taken();
        if (ShortLane::send(peer.lane.get(), notice) == UCS_OK) {
            peer.lines_in->reported(notice.attempt);
        }
    }
    return count;
}

void Core::handle_offer(Peer& peer, std::uint32_t attempt, const std::string& payload) {
    const LaneState state = peer.lane_state;
    if (state == LaneState::offered && setup_.self.process < peer.address.process) {
        return; // The peer takes up ours.
    }
    if (take_offer(peer, attempt, payload)) {
        return;
    }
    tell_peer(peer, Control::lane_refusal, attempt, {});
    // The peer has given up what it offered before, or lets ours lie for its own.
    if (state == LaneState::offered || state == LaneState::accepted) {
        try_routes(peer);
    }
}

bool Core::take_offer(Peer& peer, std::uint32_t attempt, const std::string& payload) {
    const LaneState state = peer.lane_state;
    const Result<LaneOffer> offer = unpack_offer(payload);
    if (!offer || short_lane_ == nullptr || state == LaneState::greeting ||
        state == LaneState::greeted || state == LaneState::open) {
        return false;
    }
    std::string address;
    UctEndpoint endpoint = short_lane_->take(*offer, setup_.self.place, peer.address, address);
    if (!endpoint) {
        return false;
    }
    if (state == LaneState::untried) { // Should this one fail.
        peer.routes = short_lane_->routes(setup_.self.place, peer.address);
    }
    drop_lane(peer);
    peer.lane = std::move(endpoint);
    peer.route = {offer->to, offer->from};
    ++peer.attempt;
    peer.offer_taken = attempt;
    peer.lane_state = LaneState::accepted;
    tell_peer(peer, Control::lane_acceptance, attempt, std::move(address));
    return true;
}

void Core::handle_acceptance(Peer& peer, std::uint32_t attempt, const std::string& address) {
    if (peer.lane_state != LaneState::offered || attempt != peer.attempt) {
        return;
    }
    if (short_lane_->join(peer.lane.get(), peer.route, peer.address, address)) {
        greet_or_next(peer);
    } else {
        tell_peer(peer, Control::lane_withdrawal, attempt, {});
        try_routes(peer);
    }
}

void Core::handle_lane_control(Peer& peer, const ControlHeader& header,
                               const std::string& payload) {
    if (!peer.failure.ok() || !state_.running()) {
        return;
    }
    const LaneState state = peer.lane_state;
    const bool of_ours = header.detail == peer.attempt;
    if (header.what == Control::lane_offer) {
        handle_offer(peer, header.detail, payload);
    } else if (header.what == Control::lane_acceptance) {
        handle_acceptance(peer, header.detail, payload);
    } else if ((header.what == Control::lane_refusal && state == LaneState::offered && of_ours) ||
               (header.what == Control::lane_withdrawal && state == LaneState::accepted &&
                header.detail == peer.offer_taken)) {
        try_routes(peer);
    } else if (header.what == Control::lane_answer && state == LaneState::greeted && of_ours) {
        open_lane(peer, payload);
    }
}

void Core::lane_notice(const LaneNotice& notice) {
    if (notice.target != setup_.self.process) {
        return;
    }
    if (notice.what != LaneNotice::What::taken) {
        state_.attempt([&] { notices_.push_back(notice); });
    } else if (Peer* peer = find_peer(notice.source)) {
        peer->lines_out.acknowledge(notice.attempt);
    }
}

void Core::lane_error(uct_ep_h endpoint, ucs_status_t status) {
    state_.attempt([&] { lane_errors_.emplace_back(endpoint, status); });
}

void Core::handle_lane_error(uct_ep_h endpoint, ucs_status_t status) {
    for (auto& [process, peer] : peers_) {
        if (!peer->lane || peer->lane.get() != endpoint) {
            continue;
        }
        const bool was_open = peer->lane_state == LaneState::open;
        drop_lane(*peer);
        if (!was_open && state_.running()) {
            try_routes(*peer);
        } else if (was_open && state_.running() && !peer->left) {
            // What was on the way is lost, so the peer is, whatever UCP thinks of it.
            fail_connection(*peer, status);
        }
        return;
    }
}

} // namespace ucg::transport::ucx
