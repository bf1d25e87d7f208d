// The states of the message that an inbox receives at the moment.
#include <csignal>
#include <cstdint>
#include <span>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/shm/incoming.hpp"

namespace ucg::transport {
namespace {

using Way = Incoming::Way;

/// Returns whether the call ends its process by an assertion.
template <typename Call>
bool is_refused(Call call) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const rlimit none = {0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        ::close(STDERR_FILENO);
        std::signal(SIGABRT, SIG_DFL); // Catch2 would report it.
        call();
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

Message read_on_arrival() {
    Message message;
    message.bytes = 100;
    message.state = MessageState::posted;
    message.read_on_arrival = true;
    return message;
}

TEST_CASE("what was lent comes back to the way by which the message comes") {
    const Way way = GENERATE(Way::ring, Way::alone);
    const std::vector<std::byte> bytes(60);
    Message message = read_on_arrival();
    Incoming incoming;
    incoming.begin(message, way);
    REQUIRE(incoming.lend(bytes));
    CHECK(incoming.lent());
    CHECK(message.state == MessageState::part);
    CHECK(message.part == bytes.data());
    CHECK(message.part_bytes == bytes.size());
    incoming.take_back();
    CHECK(incoming.way() == way);
    CHECK(message.state == MessageState::posted);
    message.moved = message.bytes;
    REQUIRE(incoming.whole());
    incoming.end();
    CHECK_FALSE(incoming.begun());
    CHECK(message.state == MessageState::done);
}

TEST_CASE("nothing is lent of a message of which a part was copied, or that is not read where it "
          "arrives") {
    const std::vector<std::byte> bytes(40);
    Message message = read_on_arrival();
    message.moved = GENERATE(60, 0);
    message.read_on_arrival = message.moved > 0;
    Incoming incoming;
    incoming.begin(message, Way::ring);
    CHECK_FALSE(incoming.lend(bytes));
    CHECK(incoming.way() == Way::ring);
    CHECK(message.state == MessageState::posted);
}

TEST_CASE("half an early arrival is received on into the message that is posted for it") {
    Message early = read_on_arrival();
    Message message = read_on_arrival();
    Incoming incoming;
    incoming.begin(early, Way::aside);
    incoming.adopt(message);
    CHECK(&incoming.message() == &message);
    CHECK(incoming.way() == Way::ring);
}

TEST_CASE("a step that no state allows is found at once") {
    const std::vector<std::byte> bytes(40);
    Message message = read_on_arrival();
    Message other = read_on_arrival();
    Incoming incoming;
    CHECK(is_refused([&] { incoming.drop(); }));
    incoming.begin(message, Way::both);
    CHECK(is_refused([&] { incoming.begin(other, Way::ring); }));
    CHECK(is_refused([&] { incoming.adopt(other); }));
    CHECK(is_refused([&] { incoming.lend(bytes); })); // The sender may be writing, too.
    CHECK(is_refused([&] { incoming.take_back(); }));
    CHECK(is_refused([&] { incoming.end(); }));
    incoming.go_alone();
    CHECK(is_refused([&] { incoming.go_alone(); }));
    REQUIRE(incoming.lend(bytes));
    CHECK(is_refused([&] { incoming.end(); }));
    CHECK_FALSE(is_refused([&] { incoming.take_back(); }));
    CHECK(&incoming.drop() == &message);
}

} // namespace
} // namespace ucg::transport
