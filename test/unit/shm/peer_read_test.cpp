#include <array>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/peer_read.hpp"
#include "test/support/catch.hpp"

using namespace ucg;
using namespace ucg::shm;

TEST_CASE("shm/peer_read: a ticket names its process and a word that only it has", "[shm]") {
    const ReadTicket mine = own_read_ticket();
    CHECK(mine.process == ::getpid());
    CHECK(mine == own_read_ticket());
    if (!can_read(mine)) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    ReadTicket other = mine;
    other.word += 1;
    CHECK_FALSE(can_read(other)); // Another process of that number.
    other = mine;
    other.process = 0x7ffffffe; // Beyond any PID.
    CHECK_FALSE(can_read(other));
    CHECK_FALSE(can_read(ReadTicket{}));
}

TEST_CASE("shm/peer_read: bytes come whole, and what cannot be read is an error", "[shm]") {
    const ReadTicket mine = own_read_ticket();
    if (!can_read(mine)) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    std::array<std::byte, 300> from{};
    std::array<std::byte, 300> to{};
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<std::byte>(i);
    }
    CHECK(read_peer(mine, from.data(), to.data(), from.size()).ok());
    CHECK(from == to);
    void* hole = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(hole != MAP_FAILED);
    const Status status = read_peer(mine, static_cast<std::byte*>(hole), to.data(), 8);
    CHECK(status.code() == Code::io_error);
    ::munmap(hole, 4096);
}
