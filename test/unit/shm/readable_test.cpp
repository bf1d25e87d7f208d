#include <cstddef>
#include <sys/mman.h>
#include <vector>

#include "shm/peer_copy.hpp"
#include "shm/readable.hpp"
#include "test/support/catch.hpp"

using namespace ucg;
using namespace ucg::shm;

namespace {

constexpr std::size_t kPage = 4096;

/// Pages of memory, some of which the kernel reads for peers.
struct Pages {
    std::byte* start;
    std::size_t count;

    explicit Pages(std::size_t pages)
        : start(static_cast<std::byte*>(::mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          count(pages) {
        REQUIRE(start != MAP_FAILED);
    }
    ~Pages() { ::munmap(start, count * kPage); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    std::byte* page(std::size_t index) const { return start + index * kPage; }
    void forbid(std::size_t index) const {
        REQUIRE(::mprotect(page(index), kPage, PROT_NONE) == 0);
    }
};

bool kernel_refuses() {
    const bool refuses = !can_read(own_access_ticket());
    if (refuses) {
        WARN("this kernel refuses process_vm_readv");
    }
    return refuses;
}

} // namespace

TEST_CASE("shm/readable: a range is readable if both its ends are", "[shm]") {
    if (kernel_refuses()) {
        return;
    }
    const Pages pages(4);
    pages.forbid(3);
    ReadableMemory memory;
    CHECK(memory.has(pages.page(0), 3 * kPage));
    CHECK_FALSE(memory.has(pages.page(0), 3 * kPage + 1));
    CHECK_FALSE(memory.has(pages.page(3), 1));
    CHECK(memory.has(pages.page(2), kPage));
    CHECK(memory.has(pages.page(3), 0)); // Nothing is read for no bytes.
    CHECK(memory.has(nullptr, 0));
}

TEST_CASE("shm/readable: what was readable is not tried again, as pieces or as a whole", "[shm]") {
    if (kernel_refuses()) {
        return;
    }
    const Pages pages(8);
    ReadableMemory memory;
    for (std::size_t i = 0; i < pages.count; ++i) {
        CHECK(memory.has(pages.page(i), kPage));
    }
    std::vector<std::byte> others[5] = {};
    for (std::vector<std::byte>& other : others) { // These are fewer than are remembered.
        other.resize(kPage);
        CHECK(memory.has(other.data(), other.size()));
    }
    for (std::size_t i = 0; i < pages.count; ++i) {
        pages.forbid(i);
    }
    CHECK(memory.has(pages.page(0), pages.count * kPage));
    CHECK(memory.has(pages.page(3) + 5, 77));
    CHECK_FALSE(ReadableMemory().has(pages.page(0), kPage));
}

TEST_CASE("shm/readable: what is forgotten is tried again", "[shm]") {
    if (kernel_refuses()) {
        return;
    }
    const Pages pages(4);
    ReadableMemory memory;
    CHECK(memory.has(pages.page(0), 2 * kPage));
    pages.forbid(1);
    CHECK(memory.has(pages.page(0), 2 * kPage));
    memory.forget(pages.page(1), 1);
    CHECK_FALSE(memory.has(pages.page(0), 2 * kPage));
    CHECK(memory.has(pages.page(0), kPage));
}
