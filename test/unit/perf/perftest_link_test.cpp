#include <algorithm>
#include <cstring>
#include <functional>

#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/launch/runtime_local.hpp"
#include "perf/perftest/primitives/ucp_link.hpp"
#include "perf/perftest/primitives/uct_link.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/base/log.hpp"

using namespace ucg;
using namespace ucg::perftest;

namespace {

/// Did the bodies of all ranks return ok? If not, the launcher has said what went wrong.
bool succeeds(Rank size, const std::function<Status(Runtime&)>& body) {
    const Result<int> status = run_local(size, body);
    return status.ok() && *status == 0;
}

constexpr std::uint64_t kPattern = 0x0123456789abcdefULL;

/// Opens the interface and connects; the target memory begins as zeros.
Result<std::unique_ptr<UctLink>> connect(Runtime& runtime, const char* transport,
                                         const char* device) {
    Result<std::unique_ptr<UctResource>> resource = UctResource::open(transport, device);
    if (!resource) {
        return resource.status();
    }
    Result<std::unique_ptr<TestMemory>> target = TestMemory::allocate(**resource, 4096, 0);
    if (!target) {
        return target.status();
    }
    std::memset((*target)->data(), 0, 4096);
    return UctLink::connect(runtime, std::move(*resource), std::move(*target));
}

/// Puts a pattern into the peer's memory and waits for the peer's pattern.
Status put_and_wait(UctLink& link) {
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    while (status == UCS_ERR_NO_RESOURCE) {
        status = uct_ep_put_short(link.endpoint(), &kPattern, sizeof(kPattern),
                                  link.remote_address(), link.remote_key());
        link.resource().progress();
    }
    if (status != UCS_OK) {
        return failure(Code::io_error, "put: {}", ucs_status_string(status));
    }
    const auto* word = reinterpret_cast<const volatile std::uint64_t*>(link.target().data());
    while (*word != kPattern) {
        link.resource().progress();
    }
    return link.resource().flush();
}

ucs_status_t keep(void* argument, void* data, std::size_t length, unsigned /*flags*/) {
    std::memcpy(argument, data, std::min(length, sizeof(std::uint64_t)));
    return UCS_OK;
}

Status send_and_wait(UctLink& link) {
    volatile std::uint64_t received = 0;
    uct_iface_set_am_handler(link.resource().interface(), 1, keep,
                             const_cast<std::uint64_t*>(&received), 0);
    Status status = link.barrier();
    ucs_status_t sent = UCS_ERR_NO_RESOURCE;
    while (sent == UCS_ERR_NO_RESOURCE) {
        sent = uct_ep_am_short(link.endpoint(), 1, kPattern, nullptr, 0);
        link.resource().progress();
    }
    while (received != kPattern) {
        link.resource().progress();
    }
    if (status.ok()) {
        status = link.barrier();
    }
    uct_iface_set_am_handler(link.resource().interface(), 1, nullptr, nullptr, 0);
    return status;
}

} // namespace

TEST_CASE("a UCT link puts into the peer's memory", "[uct_link]") {
    const char* transport = GENERATE("posix", "sysv");
    CHECK(succeeds(2, [=](Runtime& runtime) {
        auto link = connect(runtime, transport, "memory");
        return link ? put_and_wait(**link) : link.status();
    }));
}

TEST_CASE("a UCT link carries active messages", "[uct_link]") {
    using Pair = std::pair<const char*, const char*>;
    const auto [transport, device] =
        GENERATE(Pair{"posix", "memory"}, Pair{"sysv", "memory"}, Pair{"tcp", "lo"});
    CHECK(succeeds(2, [=, t = transport, d = device](Runtime& runtime) {
        auto link = connect(runtime, t, d);
        return link ? send_and_wait(**link) : link.status();
    }));
}

TEST_CASE("a process connects to itself", "[uct_link]") {
    CHECK(succeeds(1, [](Runtime& runtime) {
        auto link = connect(runtime, "posix", "memory");
        return link ? put_and_wait(**link) : link.status();
    }));
}

TEST_CASE("a transport or device that is not there is named beside those that are", "[uct_link]") {
    const auto unknown = UctResource::open("quantum", "memory");
    REQUIRE_FALSE(unknown.ok());
    const std::string text(unknown.status().message());
    CHECK(text.find("'quantum'") != std::string::npos);
    CHECK(text.find("posix/memory") != std::string::npos);
    CHECK(text.find("tcp/lo") != std::string::npos);
    CHECK_FALSE(UctResource::open("tcp", "memory").ok());
    CHECK_FALSE(UctResource::open("", "").ok());
}

TEST_CASE("a pair is two processes, a loop one", "[uct_link]") {
    const auto refused = [](Rank size, bool loopback, std::string_view with) {
        return succeeds(size, [=](Runtime& runtime) -> Status {
            const Status status = find_peer(runtime, loopback).status();
            return status.message().find(with) != std::string_view::npos
                       ? Status()
                       : failure(Code::disagreement, "got '{}'", status.message());
        });
    };
    CHECK(succeeds(2, [](Runtime& runtime) { return find_peer(runtime, false).status(); }));
    CHECK(succeeds(1, [](Runtime& runtime) { return find_peer(runtime, true).status(); }));
    CHECK(refused(3, false, "two processes, or with -l one, not 3"));
    CHECK(refused(2, true, "takes one process, not 2"));
}

TEST_CASE("what fails on one rank fails on all, in its words", "[agree]") {
    CHECK(succeeds(3, [](Runtime& runtime) -> Status {
        const Status status =
            agree(runtime, runtime.rank() == 1 ? failure(Code::io_error, "no disk") : Status());
        return status.code() == Code::io_error && status.message() == "no disk"
                   ? agree(runtime, {})
                   : failure(Code::io_error, "got '{}'", status.message());
    }));
}

TEST_CASE("a UCP link puts into the peer's memory and carries messages", "[ucp_link]") {
    CHECK(succeeds(2, [](Runtime& runtime) -> Status {
        UcpOptions options;
        options.features = UCP_FEATURE_RMA | UCP_FEATURE_TAG;
        options.buffer_bytes = 64;
        auto opened = UcpLink::open(runtime, options);
        if (!opened) {
            return opened.status();
        }
        UcpLink& link = **opened;
        std::memset(link.target().data(), 0, 64);
        std::memcpy(link.source().data(), &kPattern, sizeof(kPattern));
        Status status = link.barrier();
        const ucp_request_param_t parameters{};
        ucs_status_ptr_t request =
            ucp_put_nbx(link.endpoint(), link.source().data(), sizeof(kPattern),
                        link.remote_address(), link.remote_key(), &parameters);
        if (status.ok()) {
            status = link.flush();
        }
        const auto* word = reinterpret_cast<const volatile std::uint64_t*>(link.target().data());
        while (*word != kPattern) {
            link.progress();
        }
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
        return status;
    }));
}
