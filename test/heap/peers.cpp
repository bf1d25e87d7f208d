// Two processes are started with libucg_heap.so preloaded, as ranks of a job are. Memory that one
// of them got from malloc is read and written in place by the other one through the transport. A
// forked child has what was its parent's, and keeps no memory of the job alive.
//
// Without an argument the program starts itself twice and reports.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <spawn.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "shm/heap.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace {

using ucg::Rank;
using ucg::graph::BufferKind;
using ucg::transport::ShmAddress;
using ucg::transport::ShmTransport;

constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr std::array<Rank, 2> kRanks = {0, 1};

#define REQUIRE_THAT(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "rank %d: wrong: %s\n", rank, #condition);                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (false)

/// Exchanges a value. Both sides send and receive, so it is a barrier as well.
template <typename T>
bool swap_with_peer(int socket, const T& mine, T& theirs) {
    return ::send(socket, &mine, sizeof(T), MSG_NOSIGNAL) == sizeof(T) &&
           ::recv(socket, &theirs, sizeof(T), MSG_WAITALL) == sizeof(T);
}

bool meet(int socket) {
    char theirs = 0;
    return swap_with_peer(socket, 'x', theirs);
}

struct FreeDeleter {
    void operator()(std::byte* data) const { std::free(data); }
};
using Memory = std::unique_ptr<std::byte, FreeDeleter>;

Memory filled(int value) {
    Memory memory(static_cast<std::byte*>(std::malloc(kBytes)));
    std::memset(memory.get(), value, kBytes);
    return memory;
}

bool holds(const std::byte* data, int value) {
    return data[0] == static_cast<std::byte>(value) && std::memcmp(data, data + 1, kBytes - 1) == 0;
}

/// Returns whether this process has a descriptor or a shared mapping of a segment.
bool has_segments() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        if (std::filesystem::read_symlink(entry.path(), error).string().find("memfd:ucg") !=
            std::string::npos) {
            return true;
        }
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("memfd:ucg") != std::string::npos && line.find("s ") < line.find(' ') + 6) {
            return true;
        }
    }
    return false;
}

/// Returns whether memory is mapped so that it can have huge pages.
bool can_be_huge(const std::byte* data) {
    constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long long first = 0;
        unsigned long long end = 0;
        unsigned long long offset = 0;
        const auto at = reinterpret_cast<std::uintptr_t>(data);
        if (std::sscanf(line.c_str(), "%llx-%llx %*s %llx", &first, &end, &offset) == 3 &&
            first <= at && at < end) {
            return first % kHugePage == offset % kHugePage;
        }
    }
    return false;
}

bool ended_well(pid_t child) {
    int status = -1;
    return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

int run_rank(int rank, int socket) {
    auto heap = ucg::shm::Heap::create({});
    REQUIRE_THAT(heap.ok() && (*heap)->serves_malloc());
    // The program's allocations are there already; a second heap of the process has a segment of
    // its own.
    auto second = ucg::shm::Heap::create({});
    REQUIRE_THAT(second.ok() && !(*second)->serves_malloc());

    auto transport = ShmTransport::create(**heap, std::span<const Rank>(kRanks), rank, {});
    REQUIRE_THAT(transport.ok());
    std::array<ShmAddress, 2> addresses = {};
    addresses[static_cast<std::size_t>(rank)] = (*transport)->address();
    REQUIRE_THAT(swap_with_peer(socket, (*transport)->address(),
                                addresses[static_cast<std::size_t>(1 - rank)]));
    REQUIRE_THAT((*transport)->connect(addresses).ok());

    const Memory input = filled(10 + rank);
    const Memory output = filled(20 + rank);
    REQUIRE_THAT((*heap)->locate(input.get(), kBytes).has_value());
    REQUIRE_THAT(!(*second)->locate(input.get(), kBytes).has_value());
    REQUIRE_THAT((*transport)->is_mapped_by_peers(input.get(), kBytes));
    REQUIRE_THAT((*transport)->expose(0, {{{input.get(), false}, {output.get(), false}, {}}}, 0));
    REQUIRE_THAT(meet(socket));

    std::byte* theirs = (*transport)->peer_buffer(1 - rank, BufferKind::input, 0).data;
    REQUIRE_THAT(theirs != nullptr && holds(theirs, 10 + 1 - rank));
    REQUIRE_THAT(can_be_huge(input.get()) && can_be_huge(theirs));
    std::byte* target = (*transport)->peer_buffer(1 - rank, BufferKind::output, 0).data;
    REQUIRE_THAT(target != nullptr && holds(target, 20 + 1 - rank));
    REQUIRE_THAT(meet(socket));
    std::memset(target, 30 + rank, kBytes);
    REQUIRE_THAT(meet(socket));
    REQUIRE_THAT(holds(output.get(), 30 + 1 - rank));
    REQUIRE_THAT(holds(input.get(), 10 + rank));

    second->reset();
    const auto lease = (*heap)->lease(kBytes);
    REQUIRE_THAT(lease.ok());
    std::memset(lease->data(), 40 + rank, kBytes);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool right =
            !has_segments() && holds(input.get(), 10 + rank) && holds(lease->data(), 40 + rank);
        ::_exit(right ? 0 : 1);
    }
    REQUIRE_THAT(ended_well(child));
    REQUIRE_THAT(has_segments());
    REQUIRE_THAT(meet(socket));
    REQUIRE_THAT(holds(target, 30 + rank)); // The peer's memory is still there.
    return 0;
}

pid_t start_rank(char* program, int rank, int socket) {
    std::string number = std::to_string(rank);
    std::string descriptor = std::to_string(socket);
    std::array<char*, 4> arguments = {program, number.data(), descriptor.data(), nullptr};
    pid_t child = -1;
    return ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) == 0
               ? child
               : -1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3) {
        ::alarm(60);
        const int rank = static_cast<int>(std::strtol(argv[1], nullptr, 10));
        return run_rank(rank, static_cast<int>(std::strtol(argv[2], nullptr, 10)));
    }
    std::array<int, 2> sockets = {};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) {
        return 1;
    }
    std::array<pid_t, 2> children = {};
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
        children[rank] = start_rank(argv[0], static_cast<int>(rank), sockets[rank]);
    }
    ::close(sockets[0]);
    ::close(sockets[1]);
    int failures = 0;
    for (const pid_t child : children) {
        failures += ended_well(child) ? 0 : 1;
    }
    return failures == 0 ? 0 : 1;
}
