// Where limits leave no room for UCX it is not started, since it would end the process.
#include <sys/resource.h>
#include <unistd.h>

#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "ucg_coll/transport/ucx/room.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using transport::ucx::find_room;
using transport::ucx::Room;

rlim_t open_now() {
    const int fd = ::dup(0);
    ::close(fd);
    return static_cast<rlim_t>(fd);
}

/// The answer of a process with that limit to `ask`. For descriptors the limit counts those that
/// are open now in addition.
template <typename Ask>
test::RankResult limited(int resource, rlim_t value, Ask ask) {
    return test::fork_ranks(1, 20s, [&](const test::ForkedRank&) -> std::string {
        const rlim_t all = value + (resource == RLIMIT_NOFILE ? open_now() : 0);
        const rlimit limit = {all, all};
        return ::setrlimit(resource, &limit) == 0 ? ask() : "setrlimit";
    })[0];
}

/// Empty if UCX is refused for want of room, with a reason that names `remedy`.
std::string refused(const std::string& remedy) {
    const auto worker = transport::ucx::UcxWorker::create({});
    if (worker.ok()) {
        return "UCX was started";
    }
    const std::string text(worker.status().message());
    const bool told =
        worker.status().code() == Code::out_of_memory && text.find(remedy) != std::string::npos;
    return told ? "" : text;
}

} // namespace

TEST_CASE("transport/ucx: a process with room finds it and keeps nothing", "[ucx]") {
    const rlim_t before = open_now();
    CHECK(find_room().ok());
    CHECK(open_now() == before);
}

TEST_CASE("transport/ucx: no room, no UCX, and the limit is named", "[ucx][limits]") {
    const struct {
        int resource;
        rlim_t value;
        const char* remedy;
    } cases[] = {{RLIMIT_FSIZE, 0, "ulimit -f"},
                 {RLIMIT_FSIZE, 1 << 20, "ulimit -f"},
                 {RLIMIT_NOFILE, 3, "ulimit -n"},
                 {RLIMIT_NOFILE, 0, "ulimit -n"},
                 {RLIMIT_AS, rlim_t{1} << 20, "ulimit -v"}};
    for (const auto& each : cases) {
        const auto result =
            limited(each.resource, each.value, [&] { return refused(each.remedy); });
        INFO(each.remedy << " " << each.value << ": " << result.output);
        CHECK(result.ok());
    }
}

TEST_CASE("transport/ucx: limits with just enough room do not count", "[ucx]") {
    const Room room;
    // Some numbers above the lowest free one are in use: the line to the parent, and the output.
    constexpr rlim_t kTaken = 8;
    CHECK(limited(RLIMIT_NOFILE, room.descriptors + kTaken, [] {
              return std::string(find_room().message());
          }).ok());
    CHECK(limited(RLIMIT_FSIZE, room.file_bytes, [] {
              return std::string(find_room().message());
          }).ok());
}
