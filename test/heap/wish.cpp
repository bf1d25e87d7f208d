// A process whose malloc is served from a segment wishes for no part of a common one, and takes its
// own; one that libucg_heap.so cannot give a segment wishes for a part like any other.
//
//   wish served      malloc is served from the segment
//   wish ordinary    malloc is served from ordinary memory, by MALLOC_CONF
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "shm/heap.hpp"

namespace {

using ucg::shm::Heap;

#define REQUIRE_THAT(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "wrong: %s\n", #condition);                                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (false)

/// Returns whether this process wishes for a part of a common segment.
bool wishes() {
    const auto door = ucg::shm::Door::open();
    if (!door.ok()) {
        std::abort();
    }
    const auto wish = Heap::wish({}, *door);
    return wish.ok() && wish->capacity_bytes > 0;
}

/// Closes the descriptors of segments, as programs do that close what they did not open.
void close_segments() {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        if (std::filesystem::read_symlink(entry.path(), error).string().find("memfd:ucg") !=
            std::string::npos) {
            found.push_back(std::stoi(entry.path().filename()));
        }
    }
    for (const int descriptor : found) {
        ::close(descriptor);
    }
}

int served() {
    REQUIRE_THAT(!wishes());
    {
        const auto heap = Heap::create({});
        REQUIRE_THAT(heap.ok() && (*heap)->serves_malloc());
        REQUIRE_THAT(wishes()); // A second heap would have a segment of its own.
    }
    REQUIRE_THAT(!wishes());
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(wishes() ? 0 : 1);
    }
    int status = -1;
    REQUIRE_THAT(child > 0 && ::waitpid(child, &status, 0) == child && status == 0);
    close_segments();
    REQUIRE_THAT(wishes());
    return 0;
}

int ordinary() {
    REQUIRE_THAT(wishes());
    const auto heap = Heap::create({});
    REQUIRE_THAT(heap.ok() && !(*heap)->serves_malloc());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return argc > 1 && std::strcmp(argv[1], "ordinary") == 0 ? ordinary() : served();
}
