// The short lane where it connects endpoint to endpoint: its steps between two interfaces of one
// process, and how a worker handles bytes that no worker sends.
#include <array>
#include <cstring>
#include <random>
#include <string>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/context.hpp"
#include "ucg_coll/transport/ucx/short_lane.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

using namespace ucg;
using namespace ucg::transport::ucx;

namespace {

UcxOptions between_endpoints() {
    UcxOptions options;
    options.config = {{"TLS", "tcp"}, {"NET_DEVICES", "lo"}};
    options.lane_overhead_us_max = 1e9;
    options.lane_prefers_endpoints = true;
    return options;
}

/// One process's end of the short lane, without a worker around it.
class End final : private LaneSink {
  public:
    explicit End(std::uint64_t process) {
        Result<Ucp> opened = open_ucp(between_endpoints());
        REQUIRE(opened.ok());
        ucp = std::move(*opened);
        std::vector<InterfaceInfo> report;
        lane = ShortLane::create(ucp.inventory, between_endpoints(), *this, report);
        address.process = process;
        address.place = this_place();
        address.ucp = ucp.address;
        address.lanes = lane->addresses();
        REQUIRE(address.lanes.size() == 1);
    }

    Ucp ucp;
    ProcessAddress address;
    std::unique_ptr<ShortLane> lane;
    int notices = 0;
    int errors = 0;

  private:
    void lane_data(const Envelope& /*envelope*/, const void* /*data*/,
                   std::size_t /*bytes*/) override {}
    void lane_notice(const LaneNotice& /*notice*/) override { ++notices; }
    void lane_error(uct_ep_h /*endpoint*/, ucs_status_t /*status*/) override { ++errors; }
};

bool greet(End& from, uct_ep_h endpoint, End& to) {
    LaneNotice notice;
    notice.source = from.address.process;
    notice.target = to.address.process;
    bool sent = false;
    const int before = to.notices;
    for (int i = 0; i < 1'000'000 && to.notices == before; ++i) {
        sent = sent || ShortLane::send(endpoint, notice) == UCS_OK;
        from.lane->progress();
        to.lane->progress();
    }
    return to.notices == before + 1;
}

/// Installs handlers for any active message, since UCX does not tolerate one without a handler.
void take_any(ucp_worker_h worker) {
    for (const unsigned id : {kUcpData, kUcpControl}) {
        ucp_am_handler_param_t parameters{};
        parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
        parameters.id = id;
        parameters.cb = [](void*, const void*, std::size_t, void*, std::size_t,
                           const ucp_am_recv_param_t*) { return UCS_OK; };
        REQUIRE(ucp_worker_set_am_recv_handler(worker, &parameters) == UCS_OK);
    }
}

void tell(End& from, UcxWorker& to, ucp_ep_h endpoint, const ControlHeader& header,
          const std::string& payload) {
    ucp_request_param_t parameters;
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = UCP_AM_SEND_FLAG_EAGER;
    const ucs_status_ptr_t request = ucp_am_send_nbx(endpoint, kUcpControl, &header, sizeof(header),
                                                     payload.data(), payload.size(), &parameters);
    REQUIRE_FALSE(UCS_PTR_IS_ERR(request));
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(from.ucp.worker.get());
        to.progress();
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

} // namespace

TEST_CASE("ucx lane: an endpoint that is offered is joined from both ends", "[ucx]") {
    End a(1);
    End b(2);
    const auto routes = a.lane->routes(a.address.place, b.address);
    REQUIRE(routes.size() == 1);
    REQUIRE(a.lane->joins_endpoints(routes[0]));
    LaneOffer offer{routes[0].own, routes[0].peer, {}};
    const UctEndpoint ours = a.lane->begin(routes[0], offer.endpoint);
    REQUIRE(ours);
    std::string accepted;
    const UctEndpoint theirs = b.lane->take(offer, b.address.place, a.address, accepted);
    REQUIRE(theirs);
    REQUIRE(a.lane->join(ours.get(), routes[0], b.address, accepted));
    CHECK(greet(a, ours.get(), b));
    CHECK(greet(b, theirs.get(), a));
    CHECK(a.errors + b.errors == 0);
}

TEST_CASE("ucx lane: what cannot be an endpoint of the peer's is not taken", "[ucx]") {
    End a(1);
    End b(2);
    LaneOffer offer;
    const UctEndpoint ours = a.lane->begin({0, 0}, offer.endpoint);
    std::string address;
    const auto takes = [&](const LaneOffer& offered, const ProcessAddress& from) {
        return b.lane->take(offered, b.address.place, from, address) != nullptr;
    };
    CHECK_FALSE(takes({1, 0, offer.endpoint}, a.address));
    CHECK_FALSE(takes({0, 1, offer.endpoint}, a.address));
    CHECK_FALSE(takes({0, 0, offer.endpoint.substr(1)}, a.address));
    CHECK_FALSE(takes({0, 0, offer.endpoint + "x"}, a.address));
    ProcessAddress other = a.address;
    other.lanes[0].transport = "rc_mlx5";
    CHECK_FALSE(takes(offer, other));
    other = a.address;
    other.place.network += 1; // The other place is another host's loopback.
    CHECK_FALSE(takes(offer, other));
    CHECK(takes(offer, a.address));
}

TEST_CASE("ucx lane: a worker outlives whatever a peer says about it", "[ucx]") {
    UcxOptions options = between_endpoints();
    options.close_timeout = std::chrono::milliseconds(50); // No worker will answer.
    const auto worker = UcxWorker::create(options).value();
    // It is lower or higher than the worker's number.
    const std::uint64_t process = GENERATE(1ULL, ~0ULL);
    End peer(process);
    take_any(peer.ucp.worker.get());
    const auto group =
        UcxTransport::create(*worker, std::array{5U, 5U}, 0, {"", pack(peer.address)}).value();
    std::byte byte{};
    transport::Message receive; // The receive makes the worker connect and offer its lane.
    receive.data = &byte;
    receive.bytes = 1;
    receive.peer = 1;
    receive.direction = transport::Direction::recv;
    group->post({&receive, 1});

    const Result<ProcessAddress> target = unpack(worker->address());
    REQUIRE(target.ok());
    ucp_ep_params_t parameters{};
    parameters.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.address = reinterpret_cast<const ucp_address_t*>(target->ucp.data());
    ucp_ep_h endpoint = nullptr;
    REQUIRE(ucp_ep_create(peer.ucp.worker.get(), &parameters, &endpoint) == UCS_OK);

    std::string ours;
    const UctEndpoint waiting = peer.lane->begin({0, 0}, ours);
    REQUIRE(waiting);
    std::mt19937 random(process == 1 ? 1 : 2);
    for (int i = 0; i < 400; ++i) {
        // The endpoint's address keeps its port: UCX would connect to any process that listens at
        // another one.
        LaneOffer offer{random() % 3 == 0 ? random() : 0, random() % 3 == 0 ? random() : 0, ours};
        std::string payload = random() % 2 == 0 ? pack(offer) : ours;
        if (random() % 2 == 0) {
            payload.resize(random() % (payload.size() + 8));
        }
        ControlHeader header;
        header.what = static_cast<Control>(random() % 7);
        header.what = header.what == Control::bye ? Control::lane_offer : header.what;
        header.detail = random() % 4;
        header.source = peer.address.process;
        header.target = target->process;
        tell(peer, *worker, endpoint, header, payload);
        for (int turn = 0; turn < 20; ++turn) {
            worker->progress();
            peer.lane->progress();
            ucp_worker_progress(peer.ucp.worker.get());
        }
    }
    CHECK(receive.state == transport::MessageState::posted);
    CHECK(worker->describe().find(fmt::format("{:016x}: connected", process)) != std::string::npos);
}
