// Programs that close descriptors which they did not open, and open files under the same numbers.
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/seccomp.hpp"
#include "test/unit/shm/heap_support.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using shm::Heap;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;
constexpr std::size_t kFileBytes = std::size_t{2} << 20;
constexpr std::uint32_t kPopulateWrite = 23; // MADV_POPULATE_WRITE, newer than some headers.

std::set<int> open_descriptors() {
    std::set<int> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        all.insert(static_cast<int>(std::strtol(entry.path().filename().c_str(), nullptr, 10)));
    }
    // The iterator's own descriptor is closed by now.
    std::erase_if(all, [](int number) { return ::fcntl(number, F_GETFD) < 0; });
    return all;
}

/// A file of the program's own under the numbers of the descriptors that the program has closed.
class FileInTheirPlace {
  public:
    explicit FileInTheirPlace(const std::set<int>& numbers) : numbers_(numbers) {
        const std::string text(kFileBytes, 'x');
        const int file = ::memfd_create("program", MFD_CLOEXEC);
        UCG_ASSERT(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        for (const int number : numbers_) {
            UCG_ASSERT(::dup2(file, number) == number);
        }
    }

    bool unharmed() const {
        for (const int number : numbers_) {
            std::string text(kFileBytes + 1, ' ');
            if (::pread(number, text.data(), text.size(), 0) != static_cast<ssize_t>(kFileBytes) ||
                text.find_first_not_of('x') != kFileBytes) {
                return false;
            }
        }
        return true;
    }

  private:
    std::set<int> numbers_;
};

/// A heap and the numbers of the descriptors that it has opened.
struct Opened {
    std::unique_ptr<Heap> heap;
    std::set<int> numbers;

    explicit Opened(std::uint64_t capacity) {
        // This opens the descriptors that a process opens only once.
        static_cast<void>(Heap::create({capacity}));
        const std::set<int> before = open_descriptors();
        auto made = Heap::create({capacity});
        heap = std::move(*made);
        for (const int number : open_descriptors()) {
            if (before.count(number) == 0) {
                numbers.insert(number);
            }
        }
    }
};

bool all_zero(const shm::Lease& lease) {
    for (std::uint64_t i = 0; i < lease.bytes(); ++i) {
        if (lease.data()[i] != std::byte{0}) {
            return false;
        }
    }
    return true;
}

std::string lease_after_closing() {
    Opened opened(kMebi);
    auto early = opened.heap->lease(kMebi / 4);
    if (opened.numbers.size() < 2 || !early) {
        return "no heap";
    }
    std::memset(early->data(), 1, early->bytes());
    const FileInTheirPlace file(opened.numbers);
    *early = shm::Lease();
    for (int again = 0; again < 2; ++again) {
        const auto lease = opened.heap->lease(kMebi / 2);
        if (!lease || !all_zero(*lease)) {
            return "a lease fails, or is not zeroed";
        }
        std::memset(lease->data(), 2, lease->bytes());
    }
    opened.heap.reset();
    return file.unharmed() ? "" : "a file of the program was changed or closed";
}

} // namespace

TEST_CASE("shm/descriptors: a heap serves a program that closed its descriptors", "[shm]") {
    test::require_all_ok(test::fork_ranks(
        1, 30s, [](const test::ForkedRank&) -> std::string { return lease_after_closing(); }));
}

TEST_CASE("shm/descriptors: a heap serves a program without standard input", "[shm]") {
    test::require_all_ok(test::fork_ranks(1, 30s, [](const test::ForkedRank&) -> std::string {
        ::close(STDIN_FILENO); // The next file gets this number.
        const auto heap = Heap::create({kMebi});
        if (!heap.ok()) {
            return std::string(heap.status().message());
        }
        return (*heap)->lease(kMebi / 4).ok() ? "" : "no lease";
    }));
}

TEST_CASE("shm/descriptors: without hole punching by address as well", "[shm]") {
    test::require_all_ok(test::fork_ranks(1, 30s, [](const test::ForkedRank&) -> std::string {
        return test::refuse_advice(MADV_REMOVE) ? lease_after_closing() : "";
    }));
}

TEST_CASE("shm/descriptors: older kernels reserve by the descriptor while it is there", "[shm]") {
    test::require_all_ok(test::fork_ranks(1, 30s, [](const test::ForkedRank&) -> std::string {
        if (!test::refuse_advice(kPopulateWrite)) {
            return "";
        }
        Opened opened(kMebi);
        const auto early = opened.heap->lease(kMebi / 4);
        if (!early || !all_zero(*early)) {
            return "no lease";
        }
        const FileInTheirPlace file(opened.numbers);
        const auto late = opened.heap->lease(kMebi / 4);
        if (late || late.status().message().find("closed the descriptor") == std::string::npos) {
            return "leased by a descriptor that is not the heap's";
        }
        return file.unharmed() ? "" : "a file of the program was changed or closed";
    }));
}

TEST_CASE("shm/descriptors: new peers are told, and nothing is sent to them", "[shm]") {
    test::require_all_ok(test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        Opened opened(kMebi);
        const auto all = test::exchange(rank, opened.heap->address());
        const std::vector<shm::HeapAddress> pair = {all[0], all[1]};
        if (rank.rank() < 2 && !opened.heap->attach(pair, 10s).ok()) {
            return "the first two do not meet";
        }
        rank.barrier();
        std::optional<FileInTheirPlace> file;
        if (rank.rank() == 1) {
            file.emplace(opened.numbers);
            if (!opened.heap->attach(pair, 10s).ok()) {
                return "whom it has met is not attached any more";
            }
        }
        const Status status = opened.heap->attach(all, 300s);
        if (!status.ok()) {
            opened.heap->withdraw();
        }
        const bool right =
            rank.rank() != 1 || (status.code() == Code::io_error && file->unharmed());
        rank.barrier();
        return right ? "" : "status " + std::string(status.message());
    }));
}
