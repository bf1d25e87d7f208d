#include "perf/perftest/primitives/ucp_link.hpp"

#include <vector>

#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/launch/packer.hpp"
#include "ucg_coll/base/log.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::perftest {

using transport::ucx::ucx_failure;

namespace {

constexpr std::uint64_t kOneSided = UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;

} // namespace

Result<std::unique_ptr<UcpMemory>> UcpMemory::allocate(ucp_context_h context, std::size_t bytes,
                                                       bool nonblocking) {
    ucp_mem_map_params_t parameters{};
    parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    parameters.length = bytes;
    parameters.flags = UCP_MEM_MAP_ALLOCATE;
    if (nonblocking) {
        parameters.flags |= UCP_MEM_MAP_NONBLOCK;
    }
    parameters.memory_type = UCS_MEMORY_TYPE_HOST;
    ucp_mem_h handle = nullptr;
    ucs_status_t status = ucp_mem_map(context, &parameters, &handle);
    if (status != UCS_OK) {
        return ucx_failure(status, fmt::format("allocating {} bytes", bytes));
    }
    std::unique_ptr<UcpMemory> memory(new UcpMemory(context, handle));
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    status = ucp_mem_query(handle, &attributes);
    if (status != UCS_OK) {
        return ucx_failure(status, "asking UCX where its memory lies");
    }
    memory->data_ = static_cast<std::byte*>(attributes.address);
    return memory;
}

Result<std::unique_ptr<UcpLink>> UcpLink::open(Runtime& runtime, const UcpOptions& options) {
    std::unique_ptr<UcpLink> link(new UcpLink(runtime));
    Status status = link->open_context(options);
    if (status.ok()) {
        status = link->allocate(options);
    }
    if (status.ok()) {
        status = link->open_worker();
    }
    std::string mine;
    if (status.ok()) {
        Result<std::string> packed = link->pack_addresses(options);
        status = packed.status();
        mine = packed ? *packed : std::string();
    }
    status = agree(runtime, status);
    if (status.ok()) {
        const Result<std::vector<std::string>> all = runtime.exchange(mine);
        const Rank peer = runtime.size() - 1 - runtime.rank();
        status =
            all ? link->connect_to((*all)[static_cast<std::size_t>(peer)], options) : all.status();
        if (status.ok()) {
            status = link->flush();
        }
        status = agree(runtime, status);
    }
    if (!status.ok()) {
        return status;
    }
    return link;
}

Status UcpLink::open_context(const UcpOptions& options) {
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
    if (status != UCS_OK) {
        return ucx_failure(status, "reading UCX's configuration");
    }
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    parameters.features = options.features;
    parameters.name = "ucg_perftest";
    ucp_context_h context = nullptr;
    status = ucp_init(&parameters, config, &context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        return ucx_failure(status, "opening a UCP context (does UCX_TLS name a transport that "
                                   "this machine has?)");
    }
    context_.reset(context);
    return {};
}

Status UcpLink::open_worker() {
    ucp_worker_params_t parameters{};
    parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCS_THREAD_MODE_SINGLE;
    ucp_worker_h worker = nullptr;
    const ucs_status_t status = ucp_worker_create(context_.get(), &parameters, &worker);
    if (status != UCS_OK) {
        return ucx_failure(status, "creating a UCP worker");
    }
    worker_.reset(worker);
    return {};
}

Status UcpLink::allocate(const UcpOptions& options) {
    for (std::unique_ptr<UcpMemory>* memory : {&source_, &target_}) {
        Result<std::unique_ptr<UcpMemory>> allocated = UcpMemory::allocate(
            context_.get(), options.buffer_bytes, options.nonblocking_registration);
        if (!allocated) {
            return allocated.status();
        }
        *memory = std::move(*allocated);
    }
    return {};
}

Result<std::string> UcpLink::pack_addresses(const UcpOptions& options) const {
    Packer packer;
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    ucs_status_t status = ucp_worker_get_address(worker_.get(), &address, &bytes);
    if (status != UCS_OK) {
        return ucx_failure(status, "asking UCX for the worker's address");
    }
    packer.add({reinterpret_cast<const char*>(address), bytes});
    ucp_worker_release_address(worker_.get(), address);

    void* key = nullptr;
    bytes = 0;
    if ((options.features & kOneSided) != 0) {
        status = ucp_rkey_pack(context_.get(), target_->handle(), &key, &bytes);
        if (status != UCS_OK) {
            return ucx_failure(status, "packing the key of the target memory");
        }
    }
    packer.add({static_cast<const char*>(key), bytes});
    if (key != nullptr) {
        ucp_rkey_buffer_release(key);
    }
    packer.add_number(reinterpret_cast<std::uint64_t>(target_->data()));
    return packer.take();
}

Status UcpLink::connect_to(const std::string& packed, const UcpOptions& options) {
    Unpacker unpacker(packed);
    const std::string address = unpacker.next();
    const std::string key = unpacker.next();
    remote_address_ = unpacker.next_number();

    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    if (options.error_handling) {
        parameters.field_mask |=
            UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        parameters.err_handler.cb = on_error;
        parameters.err_handler.arg = this;
    }
    ucs_status_t status = ucp_ep_create(worker_.get(), &parameters, &endpoint_);
    if (status != UCS_OK) {
        return ucx_failure(status, "connecting over UCP (does UCX_TLS name a transport that "
                                   "reaches the peer?)");
    }
    if (!key.empty()) {
        ucp_rkey_h opened = nullptr;
        status = ucp_ep_rkey_unpack(endpoint_, key.data(), &opened);
        if (status != UCS_OK) {
            return ucx_failure(status, "opening the peer's memory over UCP");
        }
        remote_key_.reset(opened);
    }
    return {};
}

void UcpLink::on_error(void* self, ucp_ep_h /*endpoint*/, ucs_status_t status) {
    auto* link = static_cast<UcpLink*>(self);
    link->failed_ = true;
    link->cause_ = status;
}

Status UcpLink::failure_status() const {
    UCG_ASSERT(failed_);
    return ucx_failure(cause_, "the peer over UCP is lost");
}

Status UcpLink::set_am_handler(unsigned id, ucp_am_recv_callback_t callback, void* argument,
                               unsigned flags) const {
    ucp_am_handler_param_t parameters{};
    parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                            UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    parameters.id = id;
    parameters.cb = callback;
    parameters.arg = argument;
    parameters.flags = flags;
    const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_.get(), &parameters);
    return status == UCS_OK ? Status() : ucx_failure(status, "setting UCP's message handler");
}

Status UcpLink::flush() const {
    ucp_request_param_t parameters{};
    const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_.get(), &parameters);
    ucs_status_t status = UCS_PTR_IS_PTR(request) ? UCS_INPROGRESS : UCS_PTR_STATUS(request);
    while (status == UCS_INPROGRESS) {
        progress();
        status = ucp_request_check_status(request);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    return status == UCS_OK ? Status() : ucx_failure(status, "flushing the UCP worker");
}

Status UcpLink::barrier() const {
    return runtime_.barrier([this] {
        if (worker_) {
            progress();
        }
    });
}

void UcpLink::close_endpoint() {
    if (endpoint_ == nullptr) {
        return;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = failed_ ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            progress();
        }
        ucp_request_free(request);
    }
    endpoint_ = nullptr;
}

UcpLink::~UcpLink() {
    // The first call that missed a lost process reports it. Without the peer an orderly close would
    // never end; the end of the worker drops the endpoint.
    const bool complete = barrier().ok();
    remote_key_.reset();
    if (complete) {
        close_endpoint();
        static_cast<void>(barrier());
    }
}

} // namespace ucg::perftest
