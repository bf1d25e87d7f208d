#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "shm/peer_copy.hpp"
#include "shm/readable.hpp"
#include "test/support/catch.hpp"
#include "test/support/seccomp.hpp"

using namespace ucg;
using namespace ucg::shm;

TEST_CASE("shm/peer_copy: a ticket names its process and a word that only it has", "[shm]") {
    const AccessTicket mine = own_access_ticket();
    CHECK(mine.process == ::getpid());
    CHECK(mine == own_access_ticket());
    if (!can_read(mine)) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    AccessTicket other = mine;
    other.word += 1;
    CHECK_FALSE(can_read(other)); // This stands for another process of that number.
    other = mine;
    other.process = 0x7ffffffe; // No process has such a number.
    CHECK_FALSE(can_read(other));
    CHECK_FALSE(can_read(AccessTicket{}));
}

TEST_CASE("shm/peer_copy: bytes go and come whole, and what cannot be reached is an error",
          "[shm]") {
    PeerAccess access(true, true);
    const PeerReach self = {nullptr, own_access_ticket(), &access};
    if (!can_read(self.process)) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    CHECK(can_write(self.process));
    CHECK(self.process == own_access_ticket()); // The ticket is still the same.
    std::array<std::byte, 300> from{};
    std::array<std::byte, 300> to{};
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<std::byte>(i);
    }
    const auto remote = [](const void* data) {
        return RemoteBytes{reinterpret_cast<std::uintptr_t>(data), 0};
    };
    CHECK(pull(self, remote(from.data()), to.data(), from.size()).ok());
    CHECK(from == to);
    to = {};
    CHECK(push(self, remote(to.data()).at(100), from.data() + 100, 200).ok());
    CHECK(std::equal(from.begin() + 100, from.end(), to.begin() + 100));
    CHECK(to[99] == std::byte{0});
    void* hole = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(hole != MAP_FAILED);
    CHECK(pull(self, remote(hole), to.data(), 8).code() == Code::invalid_argument);
    CHECK(pull(self, remote(from.data()), static_cast<std::byte*>(hole), 8).code() ==
          Code::io_error);
    CHECK(push(self, remote(hole), from.data(), 8).code() == Code::io_error);
    ::munmap(hole, 4096);
    CHECK(access.reads()); // The kernel failed the copy, but that is not a refusal.
    CHECK(access.writes());
    CHECK_FALSE(has_ended(self.process));
}

TEST_CASE("shm/peer_copy: nothing is taken from or given to another process of the peer's number",
          "[shm]") {
    AccessTicket other = own_access_ticket();
    if (!can_read(other)) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    SECTION("that has another word there") {
        ++other.word;
    }
    SECTION("that has nothing there") {
        other.address = 8;
    }
    PeerAccess access(true, true);
    const PeerReach peer = {nullptr, other, &access};
    CHECK(has_ended(peer));
    std::array<std::byte, 64> from{};
    std::array<std::byte, 64> to{};
    from.fill(std::byte{7});
    const auto remote = [](const void* data) {
        return RemoteBytes{reinterpret_cast<std::uintptr_t>(data), 0};
    };
    CHECK(pull(peer, remote(from.data()), to.data(), to.size()).code() == Code::io_error);
    CHECK(pull(peer, remote(nullptr), to.data(), to.size()).code() == Code::io_error);
    to = {};
    CHECK(push(peer, remote(to.data()), from.data(), from.size()).code() == Code::io_error);
    CHECK(to[0] == std::byte{0});
    CHECK(access.reads()); // The kernel failed the copy, but that is not a refusal.
    CHECK(access.writes());
}

TEST_CASE("shm/peer_copy: a copy that ends in the middle is none", "[shm]") {
    PeerAccess access(true, true);
    const PeerReach self = {nullptr, own_access_ticket(), &access};
    if (!can_read(self.process)) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    constexpr std::size_t kPage = 4096;
    void* const memory =
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto* const start = static_cast<std::byte*>(memory);
    start[kPage - 1] = std::byte{7};
    REQUIRE(::mprotect(start + kPage, kPage, PROT_NONE) == 0);
    std::vector<std::byte> here(2 * kPage);
    const RemoteBytes there = {reinterpret_cast<std::uintptr_t>(memory), 0};
    CHECK(pull(self, there, here.data(), here.size()).code() == Code::invalid_argument);
    CHECK(pull(self, there, here.data(), kPage).ok());
    CHECK(here[kPage - 1] == std::byte{7});
    CHECK(push(self, there, here.data(), here.size()).code() == Code::io_error);
    CHECK(push(self, there, here.data(), kPage).ok());
    ::munmap(memory, 2 * kPage);
}

TEST_CASE("shm/peer_copy: what the kernel refuses later is not tried again", "[shm]") {
    const int error = GENERATE(EPERM, EINVAL, ENOTSUP); // A filter may choose any.
    PeerAccess access(true, true);
    const PeerReach self = {nullptr, own_access_ticket(), &access};
    std::uint64_t from = 7;
    std::uint64_t to = 0;
    const RemoteBytes there = {reinterpret_cast<std::uintptr_t>(&from), 0};
    if (!can_read(self.process)) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) { // The child reads the parent's memory, and the kernel refuses.
        const PeerReach parent = self;
        int wrong = test::refuse_process_vm_readv(static_cast<std::uint32_t>(error)) ? 0 : 1;
        wrong |= pull(parent, there, reinterpret_cast<std::byte*>(&to), sizeof to).code() ==
                         Code::unsupported
                     ? 0
                     : 2;
        wrong |= access.reads() ? 4 : 0;
        wrong |= access.writes() ? 0 : 8; // The refused read says nothing about writing.
        wrong |= has_ended(parent.process) ? 16 : 0;
        ReadableMemory memory;
        wrong |= memory.has(reinterpret_cast<std::byte*>(&to), sizeof to) ? 32 : 0;
        ::_exit(wrong);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    access.refuse_reading(); // The copy is not tried, though it would succeed.
    CHECK(pull(self, there, reinterpret_cast<std::byte*>(&to), sizeof to).code() ==
          Code::unsupported);
    access.refuse_writing();
    CHECK(push(self, there, reinterpret_cast<std::byte*>(&to), sizeof to).code() ==
          Code::unsupported);
    CHECK(from == 7);
    CHECK(to == 0);
}

TEST_CASE("shm/peer_copy: who has ended is known where reading is refused, too", "[shm]") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    AccessTicket ticket = own_access_ticket();
    ticket.process = child;
    // The child has the parent's word, since it did not ask for a ticket of its own.
    CHECK((!can_read(ticket) || !has_ended(ticket)));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(has_ended(ticket));
}

TEST_CASE("shm/peer_copy: what lies in a mapped segment needs no kernel", "[shm]") {
    std::array<std::byte, 128> segment{};
    std::array<std::byte, 8> bytes{};
    bytes.fill(std::byte{7});
    const PeerReach peer = {segment.data(), {}, nullptr};
    const RemoteBytes there = {0xdead, 33}; // The offset is 32.
    REQUIRE(peer.pulls_from(there));
    REQUIRE(peer.pushes_to(there));
    CHECK_FALSE(peer.pulls_from({0xdead, 0}));
    CHECK_FALSE(peer.pushes_to({0xdead, 0}));
    CHECK(push(peer, there.at(8), bytes.data(), bytes.size()).ok());
    CHECK(segment[39] == std::byte{0});
    CHECK(segment[40] == std::byte{7});
    bytes = {};
    CHECK(pull(peer, there.at(8), bytes.data(), bytes.size()).ok());
    CHECK(bytes[7] == std::byte{7});
}
