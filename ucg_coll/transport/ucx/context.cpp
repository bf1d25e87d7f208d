#include "ucg_coll/transport/ucx/context.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "ucg_coll/transport/ucx/room.hpp"

namespace ucg::transport::ucx {

namespace {

/// Returns the text that ucp_context_print_info() writes.
std::string context_info(ucp_context_h context) {
    char* text = nullptr;
    std::size_t bytes = 0;
    FILE* stream = open_memstream(&text, &bytes);
    if (stream == nullptr) {
        return {};
    }
    ucp_context_print_info(context, stream);
    std::fclose(stream);
    std::string info(text, bytes);
    std::free(text);
    return info;
}

/// Sets UCX_TCP_SNDBUF while UCX opens its interfaces: UCX takes settings of transports from the
/// environment alone. Does nothing where several threads call the library, of which another may
/// read the environment meanwhile, nor where the user has set the variable.
class SendBuffer {
  public:
    explicit SendBuffer(const UcxOptions& options) {
        const std::uint64_t bytes = send_buffer_bytes(options.link_bytes_per_second);
        set_ = bytes > 0 && !options.threads && std::getenv(kName) == nullptr &&
               ::setenv(kName, std::to_string(bytes).c_str(), 1) == 0;
    }
    ~SendBuffer() {
        if (set_) {
            ::unsetenv(kName);
        }
    }
    SendBuffer(const SendBuffer&) = delete;
    SendBuffer& operator=(const SendBuffer&) = delete;

  private:
    static constexpr const char* kName = "UCX_TCP_SNDBUF";
    bool set_ = false;
};

Status open_context(const UcxOptions& options, UcpContext& context) {
    ucp_config_t* raw = nullptr;
    ucs_status_t status = ucp_config_read(nullptr, nullptr, &raw);
    if (status != UCS_OK) {
        return ucx_failure(status, "reading UCX's configuration");
    }
    const UcpConfig config(raw);
    for (const auto& [name, value] : options.config) {
        status = ucp_config_modify(config.get(), name.c_str(), value.c_str());
        if (status != UCS_OK) {
            return ucx_failure(status, fmt::format("setting UCX's {} to '{}'", name, value));
        }
    }
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    parameters.features = UCP_FEATURE_AM;
    parameters.name = "ucg";
    ucp_context_h opened = nullptr;
    status = ucp_init(&parameters, config.get(), &opened);
    if (status != UCS_OK) {
        return ucx_failure(status, "opening a UCX context (does UCX_TLS name a transport that "
                                   "this machine has?)");
    }
    context.reset(opened);
    return {};
}

Status open_worker(Ucp& ucp) {
    ucp_worker_params_t parameters{};
    parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucp_worker_h worker = nullptr;
    ucs_status_t status = ucp_worker_create(ucp.context.get(), &parameters, &worker);
    if (status != UCS_OK) {
        return ucx_failure(status, "creating a UCX worker");
    }
    ucp.worker.reset(worker);
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    status = ucp_worker_get_address(worker, &address, &bytes);
    if (status != UCS_OK) {
        return ucx_failure(status, "asking UCX for the worker's address");
    }
    ucp.address.assign(reinterpret_cast<const char*>(address), bytes);
    ucp_worker_release_address(worker, address);
    return {};
}

/// Adds the resource that the last word of a line names: "#  resource 1  :  md 1  dev 1  flags --
/// tcp/lo" gives tcp and lo.
void parse_resource(const std::string& last_word, UcpInventory& inventory) {
    const std::size_t slash = last_word.find('/');
    if (slash != std::string::npos) {
        inventory.resources.push_back({last_word.substr(0, slash), last_word.substr(slash + 1)});
    }
}

} // namespace

bool UcpInventory::contains(std::string_view transport, std::string_view device) const {
    return std::any_of(resources.begin(), resources.end(), [&](const Resource& resource) {
        return resource.transport == transport && resource.device == device;
    });
}

namespace {

/// Is it shared memory, or something that copies to and from accelerators?
bool stays_on_host(const UcpInventory::Resource& resource) {
    constexpr std::array<std::string_view, 6> kMemory = {"self",  "sysv", "posix",
                                                         "xpmem", "cma",  "knem"};
    constexpr std::array<std::string_view, 4> kAccelerators = {"cuda_", "gdr_copy", "rocm_", "ze_"};
    const std::string_view name = resource.transport;
    return std::find(kMemory.begin(), kMemory.end(), name) != kMemory.end() ||
           std::any_of(kAccelerators.begin(), kAccelerators.end(),
                       [&](std::string_view begin) { return name.starts_with(begin); });
}

} // namespace

std::uint64_t send_buffer_bytes(std::uint64_t link_bytes_per_second) {
    // 5 ms of the link. A round trip between hosts is shorter, so that the link stays busy.
    constexpr std::uint64_t kPerSecond = 200;
    constexpr std::uint64_t kLeast = 16 << 10;
    // What Linux grants to everybody (net.core.wmem_max). Links that send it within half a
    // millisecond, not much more than a round trip, are left alone.
    constexpr std::uint64_t kMost = 208 << 10;
    constexpr std::uint64_t kFastest = kMost * 2000;
    return link_bytes_per_second == 0 || link_bytes_per_second > kFastest
               ? 0
               : std::clamp(link_bytes_per_second / kPerSecond, kLeast, kMost);
}

bool UcpInventory::has_network() const {
    return !std::all_of(resources.begin(), resources.end(), stays_on_host);
}

bool UcpInventory::only_tcp() const {
    return has_network() &&
           std::all_of(resources.begin(), resources.end(), [](const Resource& resource) {
               return stays_on_host(resource) || resource.transport == "tcp";
           });
}

UcpInventory parse_inventory(std::string_view text) {
    UcpInventory inventory;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string hash;
        std::string what;
        words >> hash >> what;
        std::string last;
        for (std::string word; words >> word;) {
            last = word;
        }
        if (what == "md" && !last.empty()) {
            inventory.domains.push_back(last);
        } else if (what == "resource") {
            parse_resource(last, inventory);
        }
    }
    return inventory;
}

Result<Ucp> open_ucp(const UcxOptions& options) {
    Ucp ucp;
    const SendBuffer send_buffer(options);
    Status status = find_room();
    if (status.ok()) {
        status = in_own_thread([&] {
            Status opened = open_context(options, ucp.context);
            return opened.ok() ? open_worker(ucp) : opened;
        });
    }
    if (!status.ok()) {
        return status;
    }
    ucp.inventory = parse_inventory(context_info(ucp.context.get()));
    return ucp;
}

Status ucx_failure(ucs_status_t status, std::string_view what) {
    const Code code = status == UCS_ERR_UNREACHABLE ? Code::unreachable
                      : status == UCS_ERR_NO_MEMORY ? Code::out_of_memory
                                                    : Code::io_error;
    return failure(code, "{}: {}", what, ucs_status_string(status));
}

} // namespace ucg::transport::ucx
