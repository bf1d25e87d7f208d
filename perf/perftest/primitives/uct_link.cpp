#include "perf/perftest/primitives/uct_link.hpp"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/launch/packer.hpp"
#include "ucg_coll/base/log.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::perftest {

using transport::ucx::ucx_failure;

namespace {

std::vector<uct_md_resource_desc_t> query_domains(uct_component_h component) {
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(component, &attributes) != UCS_OK) {
        return {};
    }
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (domains.empty() || uct_component_query(component, &attributes) != UCS_OK) {
        return {};
    }
    return domains;
}

/// Opens a domain. One that cannot be opened is null, since this machine may lack its device.
transport::ucx::UctDomain open_domain(uct_component_h component, const char* name) {
    uct_md_config_t* config = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) {
        return nullptr;
    }
    uct_md_h domain = nullptr;
    const ucs_status_t status = uct_md_open(component, name, config, &domain);
    uct_config_release(config);
    return transport::ucx::UctDomain(status == UCS_OK ? domain : nullptr);
}

std::vector<uct_tl_resource_desc_t> query_resources(uct_md_h domain) {
    uct_tl_resource_desc_t* list = nullptr;
    unsigned count = 0;
    if (uct_md_query_tl_resources(domain, &list, &count) != UCS_OK) {
        return {};
    }
    std::vector<uct_tl_resource_desc_t> resources(list, list + count);
    uct_release_tl_resource_list(list);
    return resources;
}

uct_device_addr_t* as_device(std::string& text) {
    return reinterpret_cast<uct_device_addr_t*>(text.data());
}
uct_iface_addr_t* as_interface(std::string& text) {
    return reinterpret_cast<uct_iface_addr_t*>(text.data());
}
uct_ep_addr_t* as_endpoint(std::string& text) {
    return reinterpret_cast<uct_ep_addr_t*>(text.data());
}

} // namespace

Result<std::unique_ptr<UctResource>> UctResource::open(const std::string& transport,
                                                       const std::string& device) {
    std::unique_ptr<UctResource> resource(new UctResource(transport + "/" + device));
    Status status = resource->open_worker();
    if (status.ok()) {
        status = resource->find_domain(transport, device);
    }
    if (status.ok()) {
        status = resource->open_interface(transport, device);
    }
    if (!status.ok()) {
        return status;
    }
    return resource;
}

Status UctResource::open_worker() {
    ucs_async_context_t* async = nullptr;
    ucs_status_t status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async);
    if (status != UCS_OK) {
        return ucx_failure(status, "creating UCX's asynchronous context");
    }
    async_.reset(async);
    uct_worker_h worker = nullptr;
    status = uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker);
    if (status != UCS_OK) {
        return ucx_failure(status, "creating a UCT worker");
    }
    worker_.reset(worker);
    return {};
}

Status UctResource::find_domain(const std::string& transport, const std::string& device) {
    uct_component_h* components = nullptr;
    unsigned count = 0;
    const ucs_status_t status = uct_query_components(&components, &count);
    if (status != UCS_OK) {
        return ucx_failure(status, "asking UCT for its components");
    }
    std::vector<std::string> others;
    for (unsigned i = 0; i < count && !domain_; ++i) {
        for (const uct_md_resource_desc_t& domain : query_domains(components[i])) {
            transport::ucx::UctDomain opened = open_domain(components[i], domain.md_name);
            for (const auto& resource :
                 opened ? query_resources(opened.get()) : std::vector<uct_tl_resource_desc_t>()) {
                others.push_back(fmt::format("{}/{}", resource.tl_name, resource.dev_name));
            }
            if (std::find(others.begin(), others.end(), name_) != others.end()) {
                component_ = components[i];
                domain_ = std::move(opened);
                break;
            }
        }
    }
    uct_release_component_list(components);
    if (!domain_) {
        return failure(Code::invalid_argument,
                       "no transport '{}' with a device '{}' here; there are {}", transport, device,
                       fmt::join(others, ", "));
    }
    return {};
}

Status UctResource::open_interface(const std::string& transport, const std::string& device) {
    uct_iface_config_t* config = nullptr;
    ucs_status_t status =
        uct_md_iface_config_read(domain_.get(), transport.c_str(), nullptr, nullptr, &config);
    if (status != UCS_OK) {
        return ucx_failure(status, fmt::format("reading UCX's configuration of {}", name_));
    }
    uct_iface_params_t parameters{};
    parameters.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                            UCT_IFACE_PARAM_FIELD_RX_HEADROOM | UCT_IFACE_PARAM_FIELD_CPU_MASK |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS;
    parameters.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    parameters.mode.device.tl_name = transport.c_str();
    parameters.mode.device.dev_name = device.c_str();
    parameters.err_handler = on_error;
    parameters.err_handler_arg = this;
    uct_iface_h opened = nullptr;
    status = uct_iface_open(domain_.get(), worker_.get(), &parameters, config, &opened);
    uct_config_release(config);
    if (status != UCS_OK) {
        return ucx_failure(status, fmt::format("opening the interface {}", name_));
    }
    interface_.reset(opened);
    status = uct_iface_query(opened, &attributes_);
    if (status == UCS_OK) {
        status = uct_md_query(domain_.get(), &domain_attributes_);
    }
    if (status != UCS_OK) {
        return ucx_failure(status, fmt::format("asking {} for its capabilities", name_));
    }
    uct_iface_progress_enable(opened, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return {};
}

ucs_status_t UctResource::on_error(void* self, uct_ep_h /*endpoint*/, ucs_status_t status) {
    auto* resource = static_cast<UctResource*>(self);
    resource->failed_ = true;
    resource->cause_ = status;
    return UCS_OK;
}

Status UctResource::failure_status() const {
    UCG_ASSERT(failed_);
    return ucx_failure(cause_, fmt::format("the peer over {} is lost", name_));
}

Status UctResource::flush() const {
    ucs_status_t status = UCS_OK;
    do {
        status = uct_iface_flush(interface_.get(), 0, nullptr);
        progress();
    } while ((status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE) && !failed_);
    if (failed_) {
        return failure_status();
    }
    return status == UCS_OK ? Status() : ucx_failure(status, fmt::format("flushing {}", name_));
}

Result<std::unique_ptr<TestMemory>> TestMemory::allocate(const UctResource& resource,
                                                         std::size_t bytes, unsigned flags) {
    uct_allocated_memory_t memory{};
    const ucs_status_t status = uct_iface_mem_alloc(
        resource.interface(), bytes, flags | UCT_MD_MEM_ACCESS_ALL, "ucg_perftest", &memory);
    if (status != UCS_OK) {
        return ucx_failure(status,
                           fmt::format("allocating {} bytes for {}", bytes, resource.name()));
    }
    return std::unique_ptr<TestMemory>(new TestMemory(memory));
}

UctLink::UctLink(Runtime& runtime, std::unique_ptr<UctResource> resource,
                 std::unique_ptr<TestMemory> target, std::unique_ptr<TestMemory> source)
    : runtime_(runtime), resource_(std::move(resource)), target_(std::move(target)),
      source_(std::move(source)) {}

Result<std::unique_ptr<UctLink>> UctLink::connect(Runtime& runtime,
                                                  std::unique_ptr<UctResource> resource,
                                                  std::unique_ptr<TestMemory> target,
                                                  std::unique_ptr<TestMemory> source) {
    std::unique_ptr<UctLink> link(
        new UctLink(runtime, std::move(resource), std::move(target), std::move(source)));
    const Result<Rank> peer = find_peer(runtime, runtime.size() == 1);
    if (!peer) {
        return peer.status();
    }
    std::string endpoint_address;
    Status status = link->create_endpoint(endpoint_address);
    std::string mine;
    if (status.ok()) {
        Result<std::string> packed = link->pack_addresses(endpoint_address);
        status = packed.status();
        mine = packed ? *packed : std::string();
    }
    status = agree(runtime, status);
    if (status.ok()) {
        const Result<std::vector<std::string>> all = runtime.exchange(mine);
        status = all ? link->connect_to((*all)[static_cast<std::size_t>(*peer)]) : all.status();
        if (status.ok()) {
            status = link->resource_->flush();
        }
        status = agree(runtime, status);
    }
    if (!status.ok()) {
        return status;
    }
    return link;
}

/// Makes the endpoint first where endpoints connect to one another: it must exist before its
/// address can be given.
Status UctLink::create_endpoint(std::string& address) {
    if ((resource_->attributes().cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP) == 0) {
        return {};
    }
    uct_ep_params_t parameters{};
    parameters.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    parameters.iface = resource_->interface();
    uct_ep_h endpoint = nullptr;
    ucs_status_t status = uct_ep_create(&parameters, &endpoint);
    if (status == UCS_OK) {
        endpoint_.reset(endpoint);
        address.resize(resource_->attributes().ep_addr_len);
        status = uct_ep_get_address(endpoint, as_endpoint(address));
    }
    return status == UCS_OK
               ? Status()
               : ucx_failure(status, fmt::format("creating an endpoint of {}", resource_->name()));
}

Result<std::string> UctLink::pack_addresses(const std::string& endpoint_address) const {
    const uct_iface_attr_t& attributes = resource_->attributes();
    std::string device(attributes.device_addr_len, '\0');
    std::string interface(attributes.iface_addr_len, '\0');
    std::string key;
    ucs_status_t status = uct_iface_get_device_address(resource_->interface(), as_device(device));
    if (status == UCS_OK) {
        status = uct_iface_get_address(resource_->interface(), as_interface(interface));
    }
    if (status == UCS_OK && resource_->has_keys()) {
        key.resize(resource_->domain_attributes().rkey_packed_size);
        status = uct_md_mkey_pack(resource_->domain(), target_->handle(), key.data());
    }
    if (status != UCS_OK) {
        return ucx_failure(status, fmt::format("packing the addresses of {}", resource_->name()));
    }
    Packer packer;
    packer.add(device);
    packer.add(interface);
    packer.add(endpoint_address);
    packer.add(key);
    packer.add_number(reinterpret_cast<std::uint64_t>(target_->data()));
    return packer.take();
}

Status UctLink::connect_to(const std::string& packed) {
    Unpacker unpacker(packed);
    std::string device = unpacker.next();
    std::string interface = unpacker.next();
    std::string endpoint = unpacker.next();
    const std::string key = unpacker.next();
    remote_address_ = unpacker.next_number();

    const std::string& name = resource_->name();
    if (uct_iface_is_reachable(resource_->interface(), as_device(device),
                               interface.empty() ? nullptr : as_interface(interface)) == 0) {
        return failure(Code::unreachable, "{} does not reach the peer from this process", name);
    }
    ucs_status_t status = UCS_OK;
    if (resource_->has_keys()) {
        status = uct_rkey_unpack(resource_->component(), key.data(), &key_);
        if (status != UCS_OK) {
            key_.rkey = UCT_INVALID_RKEY;
            return ucx_failure(status, fmt::format("opening the peer's memory over {}", name));
        }
    }
    if (endpoint_) {
        status = uct_ep_connect_to_ep(endpoint_.get(), as_device(device), as_endpoint(endpoint));
    } else {
        uct_ep_params_t parameters{};
        parameters.field_mask =
            UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        parameters.iface = resource_->interface();
        parameters.dev_addr = as_device(device);
        parameters.iface_addr = as_interface(interface);
        uct_ep_h opened = nullptr;
        status = uct_ep_create(&parameters, &opened);
        endpoint_.reset(status == UCS_OK ? opened : nullptr);
    }
    return status == UCS_OK ? Status()
                            : ucx_failure(status, fmt::format("connecting over {}", name));
}

Status UctLink::barrier() const {
    return runtime_.barrier([this] { resource_->progress(); });
}

UctLink::~UctLink() {
    // The first call that missed a lost process reports it.
    static_cast<void>(barrier());
    if (key_.rkey != UCT_INVALID_RKEY) {
        uct_rkey_release(resource_->component(), &key_);
    }
    endpoint_.reset();
    target_.reset();
}

Result<Rank> find_peer(const Runtime& runtime, bool loopback) {
    const Rank needed = loopback ? 1 : 2;
    if (runtime.size() != needed) {
        return failure(Code::invalid_argument, "{}, not {}",
                       loopback ? "a loopback test (-l) takes one process"
                                : "this test takes two processes, or with -l one",
                       runtime.size());
    }
    return needed - 1 - runtime.rank();
}

} // namespace ucg::perftest
