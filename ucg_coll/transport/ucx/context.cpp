#include "ucg_coll/transport/ucx/context.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "ucg_coll/transport/ucx/room.hpp"

namespace ucg::transport::ucx {

namespace {

/// Returns the text that ucp_context_print_info() writes.
Result<std::string> context_info(ucp_context_h context) {
    char* text = nullptr;
    std::size_t bytes = 0;
    FILE* stream = open_memstream(&text, &bytes);
    if (stream == nullptr) {
        return failure(Code::out_of_memory, "no memory to ask UCX for its transports");
    }
    ucp_context_print_info(context, stream);
    const bool whole = std::fclose(stream) == 0;
    std::string info(whole ? text : "", whole ? bytes : 0);
    std::free(text);
    return whole ? Result<std::string>(std::move(info))
                 : failure(Code::out_of_memory, "no memory for what UCX says of its transports");
}

/// Sets a variable of UCX while UCX opens its interfaces: UCX takes settings of transports from the
/// environment alone. Does nothing where several threads call the library, of which another may
/// read the environment meanwhile, nor where the user has set the variable.
class Setting {
  public:
    Setting(const UcxOptions& options, const char* name, std::uint64_t value)
        : name_(name), set_(value > 0 && !options.threads && std::getenv(name) == nullptr &&
                            ::setenv(name, std::to_string(value).c_str(), 1) == 0) {}
    ~Setting() {
        if (set_) {
            ::unsetenv(name_);
        }
    }
    Setting(const Setting&) = delete;
    Setting& operator=(const Setting&) = delete;

  private:
    const char* name_;
    bool set_;
};

ucp_params_t context_parameters(const UcxOptions& options) {
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    parameters.features = UCP_FEATURE_AM;
    parameters.name = "ucg";
    if (options.estimated_num_eps > 0) {
        parameters.field_mask |= UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
        parameters.estimated_num_eps = options.estimated_num_eps;
    }
    if (options.estimated_num_ppn > 0) {
        parameters.field_mask |= UCP_PARAM_FIELD_ESTIMATED_NUM_PPN;
        parameters.estimated_num_ppn = options.estimated_num_ppn;
    }
    return parameters;
}

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
    const ucp_params_t parameters = context_parameters(options);
    ucp_context_h opened = nullptr;
    status = ucp_init(&parameters, config.get(), &opened);
    if (status != UCS_OK) {
        return ucx_failure(status, "opening a UCX context (does UCX_TLS name a transport that "
                                   "this machine has?)");
    }
    context.reset(opened);
    log(LogLevel::debug, "ucx: opened for {} processes, {} on a host (0: not known)",
        options.estimated_num_eps, options.estimated_num_ppn);
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

/// Is this a version of UCX that was seen to read the value of syn_count() as it is meant?
bool reads_syn_count() {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    return major == 1 && (minor == 13 || minor == 18);
}

/// Opens the context, reads what it has, and opens the worker, and with that the interfaces.
Status open_all(const UcxOptions& options, Ucp& ucp) {
    Status status = open_context(options, ucp.context);
    if (!status.ok()) {
        return status;
    }
    const Result<std::string> info = context_info(ucp.context.get());
    Result<UcpInventory> inventory = info.ok() ? parse_inventory(*info) : info.status();
    if (!inventory.ok()) {
        return inventory.status();
    }
    ucp.inventory = std::move(*inventory);
    if (!ucp.inventory.has_tcp()) { // UCX warns of settings that nothing reads.
        return open_worker(ucp);
    }
    const Setting send_buffer(options, "UCX_TCP_SNDBUF",
                              send_buffer_bytes(options.link_bytes_per_second));
    const Setting repetitions(options, "UCX_TCP_SYN_CNT",
                              reads_syn_count() ? syn_count(options.connect_timeout) : 0);
    return open_worker(ucp);
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

std::uint64_t syn_count(std::chrono::milliseconds connect_timeout) {
    // A kernel waits 1 s after the first packet, and after each repetition twice as long.
    constexpr std::chrono::seconds kWithTwo{7};
    // UCX reads 64 bits into a field of 32. In UCX 1.13 the rest is how many buffers it may have,
    // which is all ones where nobody sets it; in UCX 1.18 it is nothing.
    constexpr std::uint64_t kRest = 0xffffffff00000000U;
    if (std::endian::native != std::endian::little) {
        return 0;
    }
    return kRest | (connect_timeout < kWithTwo ? 1U : 2U);
}

bool UcpInventory::has_network() const {
    return !std::all_of(resources.begin(), resources.end(), stays_on_host);
}

bool UcpInventory::has_tcp() const {
    return std::any_of(resources.begin(), resources.end(),
                       [](const Resource& resource) { return resource.transport == "tcp"; });
}

bool UcpInventory::only_tcp() const {
    return has_network() &&
           std::all_of(resources.begin(), resources.end(), [](const Resource& resource) {
               return stays_on_host(resource) || resource.transport == "tcp";
           });
}

Result<UcpInventory> parse_inventory(std::string_view text) {
    UcpInventory inventory;
    std::istringstream lines{std::string(text)};
    bool understood = true;
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
        } else if (what == "resource") { // "#  resource 1  :  md 1  dev 1  flags -- tcp/lo"
            const std::size_t slash = last.find('/');
            understood = understood && slash != std::string::npos;
            inventory.resources.push_back(
                {last.substr(0, slash), understood ? last.substr(slash + 1) : std::string()});
        }
    }
    if (!understood || inventory.resources.empty()) {
        return failure(Code::unsupported,
                       "UCX {} lists its transports in a way that this version of UCG cannot read",
                       ucp_get_version_string());
    }
    return inventory;
}

Result<Ucp> open_ucp(const UcxOptions& options) {
    Ucp ucp;
    Status status = find_room();
    if (status.ok()) {
        status = in_own_thread([&] { return open_all(options, ucp); });
    }
    if (!status.ok()) {
        return status;
    }
    return ucp;
}

Status ucx_failure(ucs_status_t status, std::string_view what) {
    const Code code = status == UCS_ERR_UNREACHABLE ? Code::unreachable
                      : status == UCS_ERR_NO_MEMORY ? Code::out_of_memory
                                                    : Code::io_error;
    return failure(code, "{}: {}", what, ucs_status_string(status));
}

} // namespace ucg::transport::ucx
