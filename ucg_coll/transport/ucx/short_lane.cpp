#include "ucg_coll/transport/ucx/short_lane.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <net/if.h>

namespace ucg::transport::ucx {

namespace {

/// Bytes of the longest frame, which is put together on the stack. Longer messages gain nothing
/// over UCP.
constexpr std::size_t kFrameBytes = 512;
constexpr std::size_t kEnvelopeTail = sizeof(Envelope) - sizeof(std::uint64_t);

/// Copies the envelope out of a UCT message, whose first eight bytes are the header word.
ucs_status_t on_data(void* argument, void* data, std::size_t length, unsigned /*flags*/) {
    Envelope envelope;
    if (length >= sizeof(envelope)) {
        std::memcpy(&envelope, data, sizeof(envelope));
        static_cast<LaneSink*>(argument)->lane_data(
            envelope, static_cast<const std::byte*>(data) + sizeof(envelope),
            length - sizeof(envelope));
    }
    return UCS_OK;
}

ucs_status_t on_notice(void* argument, void* data, std::size_t length, unsigned /*flags*/) {
    LaneNotice notice;
    if (length == sizeof(notice)) {
        std::memcpy(&notice, data, sizeof(notice));
        static_cast<LaneSink*>(argument)->lane_notice(notice);
    }
    return UCS_OK;
}

ucs_status_t on_error(void* argument, uct_ep_h endpoint, ucs_status_t status) {
    static_cast<LaneSink*>(argument)->lane_error(endpoint, status);
    return UCS_OK;
}

bool is_loopback(const std::string& device) {
    std::ifstream file("/sys/class/net/" + device + "/flags");
    unsigned flags = 0;
    file >> std::hex >> flags;
    return device == "lo" || (file && (flags & IFF_LOOPBACK) != 0);
}

const uct_device_addr_t* device_address(const LaneAddress& lane) {
    return reinterpret_cast<const uct_device_addr_t*>(lane.device_address.data());
}
/// Returns null where an interface has no address: its endpoints have addresses of their own.
const uct_iface_addr_t* interface_address(const LaneAddress& lane) {
    const std::string& address = lane.interface_address;
    return address.empty() ? nullptr : reinterpret_cast<const uct_iface_addr_t*>(address.data());
}

} // namespace

std::unique_ptr<ShortLane> ShortLane::create(const UcpInventory& inventory,
                                             const UcxOptions& options, LaneSink& sink,
                                             std::vector<InterfaceInfo>& report) {
    std::unique_ptr<ShortLane> lane(new ShortLane(sink, options));
    const Status status = lane->open_worker();
    uct_component_h* components = nullptr;
    unsigned count = 0;
    if (status.ok() && uct_query_components(&components, &count) == UCS_OK) {
        for (unsigned i = 0; i < count; ++i) {
            lane->open_component(components[i], inventory, report);
        }
        uct_release_component_list(components);
    }
    lane->keep_best(report);
    return lane;
}

ShortLane::~ShortLane() = default;

/// Closes the interfaces that are not worth their cost, and has the others receive.
void ShortLane::keep_best(std::vector<InterfaceInfo>& report) {
    std::vector<LaneCandidate> candidates;
    for (const Interface& each : interfaces_) {
        candidates.push_back(each.candidate);
    }
    const std::vector<std::string> reasons = lanes_left_out(candidates, peers_);
    for (std::size_t i = interfaces_.size(); i-- > 0;) {
        if (!reasons[i].empty()) {
            InterfaceInfo& info = report[interfaces_[i].info];
            info.reason = reasons[i];
            info.usable = false;
            interfaces_.erase(interfaces_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    for (const Interface& each : interfaces_) {
        uct_iface_progress_enable(each.handle.get(), UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    }
}

Status ShortLane::open_worker() {
    ucs_async_context_t* async = nullptr;
    ucs_status_t status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async);
    if (status != UCS_OK) {
        return ucx_failure(status, "creating UCX's asynchronous context");
    }
    async_.reset(async);
    uct_worker_h worker = nullptr;
    status = uct_worker_create(async, UCS_THREAD_MODE_SERIALIZED, &worker);
    if (status != UCS_OK) {
        return ucx_failure(status, "creating a UCT worker");
    }
    worker_.reset(worker);
    return {};
}

void ShortLane::open_component(uct_component_h component, const UcpInventory& inventory,
                               std::vector<InterfaceInfo>& report) {
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(component, &attributes) != UCS_OK) {
        return;
    }
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (domains.empty() || uct_component_query(component, &attributes) != UCS_OK) {
        return;
    }
    for (const uct_md_resource_desc_t& domain : domains) {
        const auto& used = inventory.domains;
        if (std::find(used.begin(), used.end(), domain.md_name) != used.end()) {
            open_domain(component, domain.md_name, inventory, report);
        }
    }
}

void ShortLane::open_domain(uct_component_h component, const char* name,
                            const UcpInventory& inventory, std::vector<InterfaceInfo>& report) {
    uct_md_config_t* config = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) {
        return;
    }
    uct_md_h domain = nullptr;
    const ucs_status_t status = uct_md_open(component, name, config, &domain);
    uct_config_release(config);
    if (status != UCS_OK) {
        return;
    }
    domains_.emplace_back(domain);
    uct_tl_resource_desc_t* resources = nullptr;
    unsigned count = 0;
    if (uct_md_query_tl_resources(domain, &resources, &count) != UCS_OK) {
        return;
    }
    for (unsigned i = 0; i < count; ++i) {
        if (!inventory.contains(resources[i].tl_name, resources[i].dev_name)) {
            continue;
        }
        Interface opened{};
        InterfaceInfo& info = report.emplace_back();
        info.transport = resources[i].tl_name;
        info.device = resources[i].dev_name;
        opened.component = component;
        opened.info = report.size() - 1;
        info.reason = open_interface(domain, resources[i], opened);
        info.usable = info.reason.empty();
        if (opened.handle) {
            info.short_bytes = opened.attributes.cap.am.max_short;
            info.latency_us = opened.attributes.latency.c * 1e6;
        }
        if (info.usable) {
            interfaces_.push_back(std::move(opened));
        }
    }
    uct_release_tl_resource_list(resources);
}

/// Returns why the interface cannot be used; empty when it can.
std::string ShortLane::open_interface(uct_md_h domain, const uct_tl_resource_desc_t& resource,
                                      Interface& opened) {
    if (resource.dev_type == UCT_DEVICE_TYPE_SELF) {
        return "reaches only this process";
    }
    uct_iface_config_t* config = nullptr;
    if (uct_md_iface_config_read(domain, resource.tl_name, nullptr, nullptr, &config) != UCS_OK) {
        return "UCX does not give its configuration";
    }
    uct_iface_params_t parameters{};
    parameters.field_mask =
        UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
        UCT_IFACE_PARAM_FIELD_ERR_HANDLER | UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
        UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS | UCT_IFACE_PARAM_FIELD_FEATURES;
    parameters.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    parameters.mode.device.tl_name = resource.tl_name;
    parameters.mode.device.dev_name = resource.dev_name;
    parameters.err_handler = on_error;
    parameters.err_handler_arg = &sink_;
    parameters.features = UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_PUT;
    uct_iface_h handle = nullptr;
    const ucs_status_t status = uct_iface_open(domain, worker_.get(), &parameters, config, &handle);
    uct_config_release(config);
    if (status != UCS_OK) {
        return fmt::format("UCT does not open it: {}", ucs_status_string(status));
    }
    opened.handle.reset(handle);
    opened.address.transport = resource.tl_name;
    opened.address.device = resource.dev_name;
    opened.shared_memory = resource.dev_type == UCT_DEVICE_TYPE_SHM;
    opened.network = resource.dev_type == UCT_DEVICE_TYPE_NET;
    opened.loopback = opened.network && is_loopback(resource.dev_name);
    std::string reason = prepare(opened);
    if (reason.empty() && puts_) {
        open_rings(domain, opened);
    }
    return reason;
}

/// Makes the rings of an interface, only where UCX shares memory with the peer. An active message
/// there claims a place in a queue that all senders share, by a compare-and-swap on a line that
/// travels, which a put need not do.
void ShortLane::open_rings(uct_md_h domain, Interface& opened) const {
    constexpr std::size_t kBytes = kRings * kLinesPerRing * sizeof(RingLine);
    const uct_iface_attr_t& attributes = opened.attributes;
    uct_md_attr_t domain_attributes;
    if (!opened.shared_memory || (attributes.cap.flags & UCT_IFACE_FLAG_PUT_SHORT) == 0 ||
        attributes.cap.put.max_short < sizeof(RingLine) ||
        uct_md_query(domain, &domain_attributes) != UCS_OK ||
        (domain_attributes.cap.flags & UCT_MD_FLAG_ALLOC) == 0) {
        return;
    }
    uct_allocated_memory_t allocated{};
    if (uct_iface_mem_alloc(opened.handle.get(), kBytes, UCT_MD_MEM_ACCESS_ALL, "ucg lines",
                            &allocated) != UCS_OK) {
        return;
    }
    UctMemory memory(allocated);
    std::string key(domain_attributes.rkey_packed_size, '\0');
    if (allocated.method != UCT_ALLOC_METHOD_MD || key.empty() ||
        uct_md_mkey_pack(domain, memory.handle(), key.data()) != UCS_OK) {
        return;
    }
    std::uninitialized_default_construct_n(static_cast<RingLine*>(memory.data()),
                                           kRings * kLinesPerRing);
    opened.memory = std::move(memory);
    opened.key = std::move(key);
}

std::optional<ShortLane::Ring> ShortLane::give_ring(std::size_t own) {
    if (own >= interfaces_.size() || interfaces_[own].memory.data() == nullptr ||
        interfaces_[own].rings_given.all()) {
        return std::nullopt;
    }
    Interface& interface = interfaces_[own];
    std::size_t index = 0;
    while (interface.rings_given.test(index)) {
        ++index;
    }
    interface.rings_given.set(index);
    auto* first = static_cast<RingLine*>(interface.memory.data()) + index * kLinesPerRing;
    std::uninitialized_value_construct_n(first, kLinesPerRing);
    return Ring{std::span<RingLine, kLinesPerRing>(first, kLinesPerRing),
                {reinterpret_cast<std::uintptr_t>(first), interface.key},
                own,
                index};
}

UctKey ShortLane::open_memory(const Route& route, const LineMemory& memory) const {
    const Interface& own = interfaces_[route.own];
    uct_rkey_bundle_t bundle{};
    if (own.key.empty() || memory.key.size() != own.key.size() ||
        uct_rkey_unpack(own.component, memory.key.data(), &bundle) != UCS_OK) {
        return {};
    }
    return {own.component, bundle};
}

std::string ShortLane::prepare(Interface& opened) const {
    uct_iface_h handle = opened.handle.get();
    uct_iface_attr_t& attributes = opened.attributes;
    if (uct_iface_query(handle, &attributes) != UCS_OK) {
        return "UCT does not tell its capabilities";
    }
    const double overhead_us = attributes.overhead * 1e6;
    if (overhead_us > overhead_us_max_) {
        return fmt::format("a message costs {:.0f} us, beside which UCP costs nothing",
                           overhead_us);
    }
    const std::uint64_t flags = attributes.cap.flags;
    if ((flags & UCT_IFACE_FLAG_AM_SHORT) == 0 ||
        attributes.cap.am.max_short < std::max(sizeof(Envelope), sizeof(LaneNotice))) {
        return "no short active messages";
    }
    const bool to_interface = (flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) != 0;
    const bool to_endpoint = (flags & UCT_IFACE_FLAG_CONNECT_TO_EP) != 0;
    if (!to_interface && !to_endpoint) {
        return "connects neither to interfaces nor to endpoints";
    }
    opened.joins_endpoints = to_endpoint && (prefers_endpoints_ || !to_interface);
    if ((flags & UCT_IFACE_FLAG_CB_SYNC) == 0) {
        return "calls back outside of progress";
    }
    if (!read_address(opened)) {
        return "UCT does not give its address";
    }
    if (uct_iface_set_am_handler(handle, kLaneData, on_data, &sink_, 0) != UCS_OK ||
        uct_iface_set_am_handler(handle, kLaneNotice, on_notice, &sink_, 0) != UCS_OK) {
        return "UCT takes no handler";
    }
    opened.candidate = {.transport = opened.address.transport,
                        .device = opened.address.device,
                        .network = opened.network,
                        .latency_s = attributes.latency.c,
                        .latency_per_peer_s = attributes.latency.m,
                        .overhead_s = attributes.overhead,
                        .endpoints_max = attributes.max_num_eps};
    return {};
}

bool ShortLane::read_address(Interface& opened) {
    uct_iface_h handle = opened.handle.get();
    std::string& device = opened.address.device_address;
    std::string& address = opened.address.interface_address;
    device.resize(opened.attributes.device_addr_len);
    address.resize(opened.attributes.iface_addr_len);
    return uct_iface_get_device_address(
               handle, reinterpret_cast<uct_device_addr_t*>(device.data())) == UCS_OK &&
           (address.empty() || uct_iface_get_address(handle, reinterpret_cast<uct_iface_addr_t*>(
                                                                 address.data())) == UCS_OK);
}

std::vector<LaneAddress> ShortLane::addresses() const {
    std::vector<LaneAddress> all;
    for (const Interface& own : interfaces_) {
        all.push_back(own.address);
    }
    return all;
}

bool ShortLane::reaches(const Interface& own, const ProcessPlace& here, const ProcessAddress& peer,
                        const LaneAddress& theirs) const {
    if (own.address.transport != theirs.transport ||
        own.address.device_address.size() != theirs.device_address.size() ||
        own.address.interface_address.size() != theirs.interface_address.size()) {
        return false;
    }
    if (own.shared_memory && here.memory != peer.place.memory) {
        return false;
    }
    if (own.loopback &&
        (here.network != peer.place.network || own.address.device != theirs.device)) {
        return false;
    }
    return uct_iface_is_reachable(own.handle.get(), device_address(theirs),
                                  interface_address(theirs)) != 0;
}

std::vector<ShortLane::Route> ShortLane::routes(const ProcessPlace& here,
                                                const ProcessAddress& peer) const {
    std::vector<Route> found;
    for (std::size_t i = 0; i < interfaces_.size(); ++i) {
        for (std::size_t k = 0; k < peer.lanes.size(); ++k) {
            if (reaches(interfaces_[i], here, peer, peer.lanes[k])) {
                found.push_back({i, k});
            }
        }
    }
    // Among equals, devices of one name are more likely to share a network.
    const auto cost = [&](const Route& route) {
        const Interface& own = interfaces_[route.own];
        const bool same_name = own.address.device == peer.lanes[route.peer].device;
        return std::pair(lane_cost(own.candidate, peers_), same_name ? 0 : 1);
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const Route& a, const Route& b) { return cost(a) < cost(b); });
    return found;
}

UctEndpoint ShortLane::connect(const Route& route, const ProcessAddress& peer) const {
    const LaneAddress& theirs = peer.lanes[route.peer];
    uct_ep_params_t parameters{};
    parameters.field_mask =
        UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    parameters.iface = interfaces_[route.own].handle.get();
    parameters.dev_addr = device_address(theirs);
    parameters.iface_addr = interface_address(theirs);
    uct_ep_h endpoint = nullptr;
    if (uct_ep_create(&parameters, &endpoint) != UCS_OK) {
        return nullptr;
    }
    return UctEndpoint(endpoint);
}

bool ShortLane::joins_endpoints(const Route& route) const {
    return interfaces_[route.own].joins_endpoints;
}

UctEndpoint ShortLane::begin(const Route& route, std::string& address) const {
    const Interface& own = interfaces_[route.own];
    uct_ep_params_t parameters{};
    parameters.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    parameters.iface = own.handle.get();
    uct_ep_h created = nullptr;
    if (uct_ep_create(&parameters, &created) != UCS_OK) {
        return nullptr;
    }
    UctEndpoint endpoint(created);
    address.resize(own.attributes.ep_addr_len);
    const ucs_status_t status =
        uct_ep_get_address(created, reinterpret_cast<uct_ep_addr_t*>(address.data()));
    return status == UCS_OK ? std::move(endpoint) : nullptr;
}

/// UCT tells the length of an address only for one's own endpoints. Of a shorter address it would
/// read what is not there; a longer one is of another kind of device.
bool ShortLane::join(uct_ep_h endpoint, const Route& route, const ProcessAddress& peer,
                     const std::string& address) const {
    return address.size() == interfaces_[route.own].attributes.ep_addr_len &&
           uct_ep_connect_to_ep(endpoint, device_address(peer.lanes[route.peer]),
                                reinterpret_cast<const uct_ep_addr_t*>(address.data())) == UCS_OK;
}

UctEndpoint ShortLane::take(const LaneOffer& offer, const ProcessPlace& here,
                            const ProcessAddress& peer, std::string& address) const {
    if (offer.to >= interfaces_.size() || offer.from >= peer.lanes.size()) {
        return nullptr;
    }
    const Route route{offer.to, offer.from};
    const Interface& own = interfaces_[route.own];
    if (!own.joins_endpoints || !reaches(own, here, peer, peer.lanes[route.peer])) {
        return nullptr;
    }
    UctEndpoint endpoint = begin(route, address);
    if (!endpoint || !join(endpoint.get(), route, peer, offer.endpoint)) {
        return nullptr;
    }
    return endpoint;
}

std::size_t ShortLane::message_bytes_max(const Route& route) const {
    const std::size_t frame =
        std::min<std::size_t>(interfaces_[route.own].attributes.cap.am.max_short, kFrameBytes);
    return frame - sizeof(Envelope);
}

std::string ShortLane::name(const Route& route) const {
    const LaneAddress& own = interfaces_[route.own].address;
    return own.transport + "/" + own.device;
}

ucs_status_t ShortLane::send(uct_ep_h endpoint, const Envelope& envelope, const void* data,
                             std::size_t bytes) {
    std::uint64_t header = 0;
    std::array<std::byte, kFrameBytes> frame;
    std::memcpy(&header, &envelope, sizeof(header));
    std::memcpy(frame.data(), reinterpret_cast<const std::byte*>(&envelope) + sizeof(header),
                kEnvelopeTail);
    if (bytes > 0) {
        std::memcpy(frame.data() + kEnvelopeTail, data, bytes);
    }
    return uct_ep_am_short(endpoint, kLaneData, header, frame.data(),
                           static_cast<unsigned>(kEnvelopeTail + bytes));
}

ucs_status_t ShortLane::send(uct_ep_h endpoint, const LaneNotice& notice) {
    return uct_ep_am_short(endpoint, kLaneNotice, notice.source, &notice.target,
                           sizeof(notice) - sizeof(notice.source));
}

} // namespace ucg::transport::ucx
