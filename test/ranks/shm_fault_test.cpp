// Killed processes leave nothing of the node heap behind.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <set>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "shm/shm.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using transport::ShmAddress;
using transport::ShmTransport;

constexpr std::size_t kRanks = 3;

/// Memory shared with the children from before any of them has a heap.
struct Board {
    std::array<std::atomic<int>, kRanks> stage;
    std::array<ShmAddress, kRanks> address;
};

/// The node heap's files only: other programs create files at any time.
std::set<std::string> files_of_heaps() {
    std::set<std::string> names;
    DIR* folder = ::opendir("/dev/shm");
    REQUIRE(folder != nullptr);
    while (const dirent* entry = ::readdir(folder)) {
        if (const std::string name = entry->d_name; name.find("ucg") != std::string::npos) {
            names.insert(name);
        }
    }
    ::closedir(folder);
    return names;
}

/// Is the socket of a heap bound in this network namespace?
bool socket_exists(const shm::Token& token) {
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);) {
        if (line.find("@ucg-" + to_text(token)) != std::string::npos) {
            return true;
        }
    }
    return false;
}

void await_stage(const std::atomic<int>& stage, int wanted) {
    for (int i = 0; i < 2000 && stage.load() < wanted; ++i) {
        ::usleep(5000);
    }
}

/// Connects, reports it, and then sends to all others for ever.
[[noreturn]] void live(Board& board, std::size_t self) {
    auto heap = shm::Heap::create({std::uint64_t{1} << 26});
    const std::vector<Rank> ranks = {0, 1, 2};
    auto made = ShmTransport::create(**heap, ranks, static_cast<Rank>(self), {});
    board.address[self] = (*made)->address();
    board.stage[self] = 1;
    for (const auto& stage : board.stage) {
        await_stage(stage, 1);
    }
    if (!(*made)->connect(board.address).ok()) {
        ::_exit(1);
    }
    std::vector<std::byte> data(4096);
    std::vector<transport::Message> messages(2 * kRanks);
    for (std::uint32_t sequence = 0;; ++sequence) {
        for (std::size_t peer = 0; peer < kRanks; ++peer) {
            for (const bool send : {false, true}) {
                auto& m = messages[2 * peer + (send ? 1 : 0)];
                if (peer == self || m.state == transport::MessageState::posted) {
                    continue;
                }
                m.data = data.data();
                m.bytes = data.size();
                m.peer = static_cast<Rank>(peer);
                m.direction = send ? transport::Direction::send : transport::Direction::recv;
                (*made)->post({&m, 1});
            }
        }
        (*made)->progress();
        if (sequence == 100) {
            board.stage[self] = 2;
        }
    }
}

} // namespace

TEST_CASE("shm: nothing is left when ranks are killed", "[fault][shm]") {
    const std::size_t killed_first = GENERATE(std::size_t{1}, kRanks);
    const auto files = files_of_heaps();
    void* memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto& board = *static_cast<Board*>(memory);
    std::array<pid_t, kRanks> children = {};
    for (std::size_t i = 0; i < kRanks; ++i) {
        children[i] = ::fork();
        REQUIRE(children[i] >= 0);
        if (children[i] == 0) {
            live(board, i);
        }
    }
    for (const auto& stage : board.stage) {
        await_stage(stage, 2);
        CHECK(stage.load() == 2);
    }
    CHECK(files_of_heaps() == files);
    for (std::size_t i = 0; i < killed_first; ++i) {
        ::kill(children[i], SIGKILL);
        ::waitpid(children[i], nullptr, 0);
        CHECK_FALSE(socket_exists(board.address[i].heap.token));
    }
    for (std::size_t i = killed_first; i < kRanks; ++i) {
        // The survivors go on, since a dead peer's memory stays mapped.
        ::usleep(20000);
        CHECK(::waitpid(children[i], nullptr, WNOHANG) == 0);
        CHECK(socket_exists(board.address[i].heap.token));
        ::kill(children[i], SIGKILL);
        ::waitpid(children[i], nullptr, 0);
        CHECK_FALSE(socket_exists(board.address[i].heap.token));
    }
    CHECK(files_of_heaps() == files);
    ::munmap(memory, sizeof(Board));
}
