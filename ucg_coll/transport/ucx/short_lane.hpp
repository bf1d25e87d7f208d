// The short lane: UCT interfaces of our own, opened through the public uct.h beside UCP's, for
// messages that fit into one uct_ep_am_short. It saves what UCP spends on choosing a protocol, on a
// request and on its own header; "breaking-band-breakdown", section 5, shows what that is.
//
// A lane is usable only towards peers that have answered a greeting sent over it, so that a wrong
// guess about who reaches whom costs nothing.
//
// Some interfaces connect an endpoint to the peer's interface, of which the address is known
// beforehand. Others (InfiniBand's reliable connections) connect it to an endpoint that the peer
// has made for it: begin(), join() and take() are the steps, between which the addresses of both
// endpoints travel by other means.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/ucx/address.hpp"
#include "ucg_coll/transport/ucx/context.hpp"
#include "ucg_coll/transport/ucx/handles.hpp"
#include "ucg_coll/transport/ucx/lane_choice.hpp"
#include "ucg_coll/transport/ucx/lines.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace ucg::transport::ucx {

/// Receives what arrives by the short lane. Its functions are called within ShortLane::progress()
/// only, and must not call UCX.
class LaneSink {
  public:
    virtual void lane_data(const Envelope& envelope, const void* data, std::size_t bytes) = 0;
    virtual void lane_notice(const LaneNotice& notice) = 0;
    virtual void lane_error(uct_ep_h endpoint, ucs_status_t status) = 0;

  protected:
    ~LaneSink() = default;
};

/// The interfaces of the short lane, and the UCT worker that drives them.
class ShortLane {
  public:
    /// A way to a peer: one of our interfaces and one of the peer's.
    struct Route {
        std::size_t own = 0;  ///< Index within the own interfaces, as in addresses().
        std::size_t peer = 0; ///< Index within ProcessAddress::lanes of the peer.
    };

    /// Opens those interfaces that UCP uses too and that can serve the lane, one for each adapter
    /// (lane_choice.hpp). `report` gets an entry
    /// for each interface that UCP uses, which says what became of it. If none can, addresses() is
    /// empty.
    static std::unique_ptr<ShortLane> create(const UcpInventory& inventory,
                                             const UcxOptions& options, LaneSink& sink,
                                             std::vector<InterfaceInfo>& report);
    ~ShortLane();
    ShortLane(const ShortLane&) = delete;
    ShortLane& operator=(const ShortLane&) = delete;

    std::vector<LaneAddress> addresses() const;

    /// Returns the routes to the peer that UCT calls reachable, fastest first. Loopback and
    /// shared-memory interfaces serve only peers in the same place.
    std::vector<Route> routes(const ProcessPlace& here, const ProcessAddress& peer) const;

    /// Does this route connect an endpoint to an endpoint, instead of to the peer's interface?
    bool joins_endpoints(const Route& route) const;

    /// Returns an endpoint that is connected to the peer's interface, or null when UCT refuses. It
    /// does not wait for the peer. REQUIRES: not joins_endpoints(route).
    UctEndpoint connect(const Route& route, const ProcessAddress& peer) const;

    /// Returns an endpoint that is connected to nothing, and stores its address in `address`.
    /// Returns null when UCT refuses. REQUIRES: joins_endpoints(route).
    UctEndpoint begin(const Route& route, std::string& address) const;

    /// Connects an endpoint that begin() has made to the peer's endpoint with this address. Returns
    /// false when UCT refuses, or when the address cannot be one of an endpoint of this kind.
    bool join(uct_ep_h endpoint, const Route& route, const ProcessAddress& peer,
              const std::string& address) const;

    /// Makes an endpoint and connects it to the one that a peer offers, as begin() and join() do.
    /// The peer may offer anything: returns null unless UCT says that the two interfaces reach one
    /// another.
    UctEndpoint take(const LaneOffer& offer, const ProcessPlace& here, const ProcessAddress& peer,
                     std::string& address) const;

    /// Returns the length of the longest message that goes over a route, in bytes.
    std::size_t message_bytes_max(const Route& route) const;

    /// Returns the own interface's name for people, such as "tcp/eth0".
    std::string name(const Route& route) const;

    unsigned progress() { return uct_worker_progress(worker_.get()); }

    /// Sends a message. Returns UCS_ERR_NO_RESOURCE if it cannot be sent now. REQUIRES: bytes <=
    /// message_bytes_max() of the endpoint's route.
    static ucs_status_t send(uct_ep_h endpoint, const Envelope& envelope, const void* data,
                             std::size_t bytes);

    /// Sends a notice. Returns UCS_ERR_NO_RESOURCE if it cannot be sent now.
    static ucs_status_t send(uct_ep_h endpoint, const LaneNotice& notice);

    /// A ring that one peer may write, and what the peer must know for that.
    struct Ring {
        std::span<RingLine, kLinesPerRing> lines;
        LineMemory memory;
        std::size_t own = 0;   ///< Index of the own interface that it belongs to.
        std::size_t index = 0; ///< Index among the rings of that interface.
    };
    /// Gives away a ring of the own interface of this index. Empty when the interface takes no
    /// puts, or when all of its rings are given away, which bounds what is polled.
    std::optional<Ring> give_ring(std::size_t own);
    void take_back(const Ring& ring) { interfaces_[ring.own].rings_given.reset(ring.index); }

    /// Returns the key to a peer's memory over this route. It is false where that cannot be opened.
    UctKey open_memory(const Route& route, const LineMemory& memory) const;

  private:
    /// Rings of an interface: so many peers at most are looked at in every call of progress(), at a
    /// load of a cached line each.
    static constexpr std::size_t kRings = 8;

    struct Interface {
        UctInterface handle;
        uct_iface_attr_t attributes;
        LaneAddress address;
        LaneCandidate candidate;
        std::size_t info = 0; ///< Index of its entry in the report.
        bool network = false; ///< It is an adapter's.
        bool loopback = false;
        bool shared_memory = false;
        bool joins_endpoints = false;
        uct_component_h component = nullptr;
        UctMemory memory; ///< Rings of lines; none where no lines are put.
        std::string key;  ///< Opens `memory` to peers.
        std::bitset<kRings> rings_given;
    };

    ShortLane(LaneSink& sink, const UcxOptions& options)
        : sink_(sink), overhead_us_max_(options.lane_overhead_us_max),
          prefers_endpoints_(options.lane_prefers_endpoints), puts_(options.lane_puts),
          peers_(options.estimated_num_eps) {}
    Status open_worker();
    void keep_best(std::vector<InterfaceInfo>& report);
    void open_component(uct_component_h component, const UcpInventory& inventory,
                        std::vector<InterfaceInfo>& report);
    void open_domain(uct_component_h component, const char* name, const UcpInventory& inventory,
                     std::vector<InterfaceInfo>& report);
    std::string open_interface(uct_md_h domain, const uct_tl_resource_desc_t& resource,
                               Interface& opened);
    std::string prepare(Interface& opened) const;
    static bool read_address(Interface& opened);
    void open_rings(uct_md_h domain, Interface& opened) const;
    bool reaches(const Interface& own, const ProcessPlace& here, const ProcessAddress& peer,
                 const LaneAddress& theirs) const;

    LaneSink& sink_;
    double overhead_us_max_;
    bool prefers_endpoints_;
    bool puts_;
    std::size_t peers_; ///< 0: not known.
    AsyncContext async_;
    UctWorker worker_;
    std::vector<UctDomain> domains_;
    std::vector<Interface> interfaces_; ///< Closed before the domains, worker and async context.
};

} // namespace ucg::transport::ucx
