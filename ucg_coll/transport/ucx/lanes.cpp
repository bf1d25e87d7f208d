#include "ucg_coll/transport/ucx/lanes.hpp"

#include <utility>

namespace ucg::transport::ucx {

namespace {

const char* text(LaneState state) {
    switch (state) {
    case LaneState::untried: return "not tried";
    case LaneState::offered:
    case LaneState::accepted:
    case LaneState::greeting: return "connecting";
    case LaneState::greeted: return "greeted, no answer yet";
    case LaneState::open: return "open";
    case LaneState::none: return "none";
    }
    return "";
}

/// Is this the UCX that the library was compiled for? UCP serves programs compiled for earlier
/// releases. UCT does not: its structures and tables of functions, which its headers use, change
/// from one to the next, and all have one name (libuct.so.0).
bool has_compiled_uct() {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    return major == UCP_API_MAJOR && minor == UCP_API_MINOR;
}

} // namespace

void Lanes::open(const UcpInventory& inventory, LaneSink& sink) {
    if (!setup_.options.short_lane || !has_compiled_uct()) {
        return;
    }
    short_lane_ = ShortLane::create(inventory, setup_.options, sink, interfaces_);
    if (short_lane_ != nullptr && short_lane_->addresses().empty()) {
        short_lane_.reset(); // Its worker need not be asked.
    }
}

std::vector<LaneAddress> Lanes::addresses() const {
    return short_lane_ ? short_lane_->addresses() : std::vector<LaneAddress>();
}

std::string Lanes::describe() const {
    std::string out;
    if (!short_lane_) {
        out += fmt::format("short lane: off ({})\n", !setup_.options.short_lane ? "not asked for"
                                                     : !has_compiled_uct()
                                                         ? "compiled for another release of UCX"
                                                         : "no interface is able");
    }
    for (const InterfaceInfo& info : interfaces_) {
        out += fmt::format("short lane {}/{}: {}", info.transport, info.device,
                           info.usable ? "usable" : info.reason);
        out += info.usable
                   ? fmt::format(", up to {} bytes, {:.2f} us\n", info.short_bytes, info.latency_us)
                   : "\n";
    }
    return out;
}

std::string Lanes::describe(const Peer& peer) const {
    return (peer.lane ? short_lane_->name(peer.route) + " " : "") + text(peer.lane_state);
}

void Lanes::start(Peer& peer) {
    if (short_lane_ != nullptr && peer.lane_state == LaneState::untried) {
        peer.routes = short_lane_->routes(setup_.self.place, peer.address);
        try_routes(peer);
    }
}

/// Gives up the lane that there is, and begins the next route that can be begun.
void Lanes::try_routes(Peer& peer) {
    drop(peer);
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

void Lanes::offer_endpoint(Peer& peer) {
    LaneOffer offer;
    offer.from = peer.route.own;
    offer.to = peer.route.peer;
    peer.lane = short_lane_->begin(peer.route, offer.endpoint);
    if (peer.lane) {
        peer.lane_state = LaneState::offered;
        host_.tell_peer(peer, Control::lane_offer, peer.attempt, pack(offer));
    }
}

LaneNotice Lanes::notice_to(const Peer& peer, LaneNotice::What what) const {
    LaneNotice notice;
    notice.source = setup_.self.process;
    notice.target = peer.address.process;
    notice.what = what;
    return notice;
}

/// Greets the peer by the lane. Afterwards the lane is greeted, or to be greeted later, or there is
/// none.
void Lanes::greet(Peer& peer) {
    LaneNotice notice = notice_to(peer, LaneNotice::What::greeting);
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
        drop(peer);
    }
}

void Lanes::greet_or_next(Peer& peer) {
    greet(peer);
    if (peer.lane_state == LaneState::none) {
        try_routes(peer);
    }
}

/// Gives up the lane. Errors of its endpoint that were reported go with it: the next endpoint may
/// have the same address, and they are not to hit that one.
void Lanes::drop(Peer& peer) {
    std::erase_if(errors_, [&](const auto& error) { return error.first == peer.lane.get(); });
    peer.lane.reset();
    peer.lines_key = {};
    peer.lane_state = LaneState::none;
}

void Lanes::answer_greeting(const LaneNotice& greeting) {
    Peer* peer = peers_.find(greeting.source);
    if (peer == nullptr) {
        strangers_[greeting.source].greeting = greeting;
    } else if (peer->failure.ok() && state_.running()) {
        host_.tell_peer(*peer, Control::lane_answer, greeting.attempt,
                        ring_for(*peer, greeting.to));
        if (peer->lane_state == LaneState::accepted && peer->offer_taken == greeting.attempt) {
            greet_or_next(*peer);
        }
    }
}

/// Returns what the peer must know to put lines here; empty if it may not. A peer that greets again
/// has written nothing: it was not answered in time.
std::string Lanes::ring_for(Peer& peer, std::size_t own) {
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
void Lanes::drop_ring(Peer& peer, bool reusable) {
    if (peer.ring && reusable) {
        short_lane_->take_back(*peer.ring);
    }
    peer.ring.reset();
    peer.lines_in.reset();
    std::erase(line_peers_, &peer);
}

void Lanes::open_lane(Peer& peer, const std::string& payload) {
    peer.lane_state = LaneState::open;
    peer.lane_bytes_max = short_lane_->message_bytes_max(peer.route);
    if (const Result<LineMemory> memory = unpack_lines(payload)) {
        peer.lines_out = {};
        peer.lines_at = memory->address;
        peer.lines_key = short_lane_->open_memory(peer.route, *memory);
    }
}

void Lanes::report_lines(Peer& peer) const {
    LaneNotice notice = notice_to(peer, LaneNotice::What::taken);
    notice.attempt = peer.lines_in->taken();
    if (ShortLane::send(peer.lane.get(), notice) == UCS_OK) {
        peer.lines_in->reported(notice.attempt);
    }
}

void Lanes::acknowledge(const LaneNotice& notice) {
    if (Peer* peer = peers_.find(notice.source)) {
        peer->lines_out.acknowledge(notice.attempt);
    }
}

void Lanes::handle_offer(Peer& peer, std::uint32_t attempt, const std::string& payload) {
    const LaneState state = peer.lane_state;
    if (state == LaneState::offered && setup_.self.process < peer.address.process) {
        return; // The peer takes up ours.
    }
    if (take_offer(peer, attempt, payload)) {
        return;
    }
    host_.tell_peer(peer, Control::lane_refusal, attempt, {});
    // The peer has given up what it offered before, or lets ours lie for its own.
    if (state == LaneState::offered || state == LaneState::accepted) {
        try_routes(peer);
    }
}

bool Lanes::take_offer(Peer& peer, std::uint32_t attempt, const std::string& payload) {
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
    drop(peer);
    peer.lane = std::move(endpoint);
    peer.route = {offer->to, offer->from};
    ++peer.attempt;
    peer.offer_taken = attempt;
    peer.lane_state = LaneState::accepted;
    host_.tell_peer(peer, Control::lane_acceptance, attempt, std::move(address));
    return true;
}

void Lanes::handle_acceptance(Peer& peer, std::uint32_t attempt, const std::string& address) {
    if (peer.lane_state != LaneState::offered || attempt != peer.attempt) {
        return;
    }
    if (short_lane_->join(peer.lane.get(), peer.route, peer.address, address)) {
        greet_or_next(peer);
    } else {
        host_.tell_peer(peer, Control::lane_withdrawal, attempt, {});
        try_routes(peer);
    }
}

void Lanes::handle_control(Peer& peer, const ControlHeader& header, const std::string& payload) {
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

void Lanes::handle_stranger(const ControlHeader& header, const std::string& payload) {
    if (header.what == Control::lane_offer && unpack_offer(payload).ok()) {
        strangers_[header.source].offer = {header, payload};
    }
}

const Stranger* Lanes::find_stranger(std::uint64_t process) const {
    const auto found = strangers_.find(process);
    return found == strangers_.end() ? nullptr : &found->second;
}

void Lanes::note_error(uct_ep_h endpoint, ucs_status_t status) {
    state_.attempt([&] { errors_.emplace_back(endpoint, status); });
}

void Lanes::handle_errors() {
    for (const auto& [endpoint, status] : std::exchange(errors_, {})) {
        Peer* owner = nullptr;
        peers_.visit([&, failed = endpoint](Peer& peer) {
            owner = peer.lane && peer.lane.get() == failed ? &peer : owner;
        });
        if (owner != nullptr) {
            handle_error(*owner, status);
        }
    }
}

void Lanes::handle_error(Peer& peer, ucs_status_t status) {
    const bool was_open = peer.lane_state == LaneState::open;
    drop(peer);
    if (!was_open && state_.running()) {
        try_routes(peer);
    } else if (was_open && state_.running() && !peer.left) {
        // What was on the way is lost, so the peer is, whatever UCP thinks of it.
        host_.fail_connection(peer, status);
    }
}

void Lanes::greet_again() {
    for (Peer* peer : std::exchange(to_greet_, {})) {
        if (peer->lane_state == LaneState::greeting && state_.running()) {
            greet_or_next(*peer);
        }
    }
}

void Lanes::end(Peer& peer, bool reusable) {
    drop(peer);
    drop_ring(peer, reusable);
}

void Lanes::forget(Peer& peer) {
    std::erase(to_greet_, &peer);
    end(peer, false);
}

void Lanes::say_byes() {
    peers_.visit([this](Peer& peer) {
        if (peer.lane_bye_due && peer.lane) {
            const LaneNotice bye = notice_to(peer, LaneNotice::What::bye);
            peer.lane_bye_due = ShortLane::send(peer.lane.get(), bye) == UCS_ERR_NO_RESOURCE;
        }
    });
}

} // namespace ucg::transport::ucx
