#include <dlfcn.h>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace {

ucp_params_t told{}; ///< What the latest context was made with.

} // namespace

/// Replaces UCX's function, which ucp_init() calls.
extern "C" ucs_status_t ucp_init_version(unsigned major, unsigned minor, const ucp_params_t* params,
                                         const ucp_config_t* config, ucp_context_h* context) {
    told = *params;
    static const auto next =
        reinterpret_cast<decltype(&::ucp_init_version)>(::dlsym(RTLD_NEXT, "ucp_init_version"));
    return next(major, minor, params, config, context);
}

using namespace ucg;
using namespace ucg::transport::ucx;

namespace {

constexpr const char* kInfo = R"(#
# UCP context
#
#     component 0  :  self
#     component 1  :  tcp
#
#            md 0  :  component 0  self
#            md 1  :  component 1  tcp
#            md 3  :  component 4  mlx5_0
#
#      resource 0  :  md 0  dev 0  flags -- self/memory0
#      resource 1  :  md 1  dev 1  flags -- tcp/eth0
#      resource 5  :  md 3  dev 3  flags -- rc_mlx5/mlx5_0:1
#
)";

} // namespace

TEST_CASE("ucx inventory: what UCP prints of its context", "[ucx]") {
    const Result<UcpInventory> read = parse_inventory(kInfo);
    REQUIRE(read.ok());
    const UcpInventory& found = *read;
    CHECK(found.domains == std::vector<std::string>{"self", "tcp", "mlx5_0"});
    REQUIRE(found.resources.size() == 3);
    CHECK(found.contains("tcp", "eth0"));
    CHECK(found.contains("rc_mlx5", "mlx5_0:1"));
    CHECK_FALSE(found.contains("tcp", "lo"));
    CHECK(found.has_network());
    CHECK_FALSE(found.only_tcp());
    CHECK(found.has_tcp());
}

TEST_CASE("ucx inventory: a text that names no transport is an error, not a host on its own",
          "[ucx]") {
    const char* const text =
        GENERATE("", "# UCP context\n#   tl 0 : tcp on eth0\n",
                 "#      resource 0  :  md 0  dev 0  flags -- tcp@eth0\n", "#      resource\n");
    const Result<UcpInventory> read = parse_inventory(text);
    REQUIRE_FALSE(read.ok());
    CHECK(read.status().code() == Code::unsupported);
}

TEST_CASE("ucx inventory: TCP alone is told from adapters and from memory", "[ucx]") {
    const auto only_tcp = [](std::vector<UcpInventory::Resource> resources) {
        UcpInventory inventory;
        inventory.resources = std::move(resources);
        return inventory.only_tcp();
    };
    CHECK(only_tcp({{"self", "memory"}, {"posix", "memory"}, {"tcp", "lo"}, {"tcp", "eth0"}}));
    CHECK_FALSE(only_tcp({{"tcp", "eth0"}, {"ud_mlx5", "mlx5_0:1"}}));
    CHECK_FALSE(only_tcp({{"posix", "memory"}}));
}

TEST_CASE("ucx inventory: copies to and from accelerators reach no other host", "[ucx]") {
    UcpInventory inventory;
    inventory.resources = {{"posix", "memory"},  {"cuda_copy", "cuda"}, {"cuda_ipc", "cuda"},
                           {"gdr_copy", "cuda"}, {"rocm_ipc", "rocm"},  {"ze_copy", "ze"}};
    CHECK_FALSE(inventory.has_network());
    inventory.resources.push_back({"tcp", "eth0"});
    CHECK(inventory.has_network());
    CHECK(inventory.only_tcp());
}

TEST_CASE("ucx inventory: the UCX of this machine prints what is expected", "[ucx]") {
    UcxOptions options;
    options.config = {{"TLS", "posix,cma"}};
    const Result<Ucp> ucp = open_ucp(options);
    REQUIRE(ucp.ok());
    CHECK(ucp->inventory.contains("posix", "memory"));
    CHECK_FALSE(ucp->inventory.has_network());
    CHECK_FALSE(ucp->address.empty());
}

TEST_CASE("ucx inventory: without a transport the failure names the remedy", "[ucx]") {
    UcxOptions options;
    options.config = {{"TLS", "no_such_transport"}, {"WARN_UNUSED_ENV_VARS", "n"}};
    const Result<Ucp> ucp = open_ucp(options);
    REQUIRE_FALSE(ucp.ok());
    CHECK(ucp.status().message().find("UCX_TLS") != std::string_view::npos);
}

TEST_CASE("ucx context: a connection holds 5 ms of a slow link, and of a fast one what it likes",
          "[ucx]") {
    CHECK(send_buffer_bytes(0) == 0);                // The rate is not known.
    CHECK(send_buffer_bytes(1'250'000) == 16 << 10); // 10 Mbit/s get the least size.
    CHECK(send_buffer_bytes(12'500'000) == 62'500);  // 100 Mbit/s
    // 1 Gbit/s gets what every process is granted.
    CHECK(send_buffer_bytes(125'000'000) == 208 << 10);
    CHECK(send_buffer_bytes(1'250'000'000) == 0); // 10 Gbit/s
}

TEST_CASE("ucx context: UCX hears how many processes there are, where that is known", "[ucx]") {
    UcxOptions options;
    options.config = {{"TLS", "posix,cma"}};
    REQUIRE(open_ucp(options).ok());
    CHECK((told.field_mask & UCP_PARAM_FIELD_ESTIMATED_NUM_EPS) == 0);
    CHECK((told.field_mask & UCP_PARAM_FIELD_ESTIMATED_NUM_PPN) == 0);
    options.estimated_num_eps = 1000;
    REQUIRE(open_ucp(options).ok());
    CHECK((told.field_mask & UCP_PARAM_FIELD_ESTIMATED_NUM_EPS) != 0);
    CHECK(told.estimated_num_eps == 1000);
    CHECK((told.field_mask & UCP_PARAM_FIELD_ESTIMATED_NUM_PPN) == 0);
    options.estimated_num_ppn = 50;
    REQUIRE(open_ucp(options).ok());
    CHECK((told.field_mask & UCP_PARAM_FIELD_ESTIMATED_NUM_PPN) != 0);
    CHECK(told.estimated_num_ppn == 50);
}
