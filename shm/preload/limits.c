/* How much address space the segment gets. Pages are another matter: they come as they are touched.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "shm/preload/heap.h"

/* jemalloc grows its arenas in steps of 2 MiB and more; with room for fewer than eight of them the
 * segment would be full before a program has read its input. */
const uint64_t heap_bytes_min = UINT64_C(16) << 20;

/* Half of the 47 bits that every 64-bit system gives to a process at least. */
static const uint64_t address_bytes_max = UINT64_C(1) << 46;

enum { LEASE_SHARE = 4, LIMIT_SHARE = 2 };
enum { STRICT_OVERCOMMIT = '2' };

/* Reads a setting of the system into `text` of `room` bytes; it is empty if there is none. */
static void read_setting(const char* path, char* text, size_t room) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, room - 1);

    text[got < 0 ? 0 : got] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* Returns whether memory is accounted strictly. With strict accounting a page of a shared mapping
 * is refused when it is touched, by SIGBUS, where ordinary memory is refused when it is asked for,
 * by an error. */
static bool strict_accounting(void) {
    char mode[8];

    read_setting("/proc/sys/vm/overcommit_memory", mode, sizeof(mode));
    return mode[0] == STRICT_OVERCOMMIT;
}

bool heap_huge_pages_are_usual(void) {
    char choice[64]; /* "[always] madvise never" */

    read_setting("/sys/kernel/mm/transparent_hugepage/enabled", choice, sizeof(choice));
    return strstr(choice, "[always]") != NULL;
}

static uint64_t limit(int resource) {
    struct rlimit value;

    if (getrlimit(resource, &value) != 0 || value.rlim_cur == RLIM_INFINITY) {
        return UINT64_MAX;
    }
    return value.rlim_cur;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

struct heap_shape heap_shape_of(uint64_t bytes, uint64_t memory_bytes) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct heap_shape shape = {bytes / page * page, 0, NULL};

    shape.lease_bytes = least(bytes / LEASE_SHARE, memory_bytes / LEASE_SHARE) / page * page;
    return shape;
}

/* A process maps its own segment, those of its peers on the host, usually one for each CPU, and
 * while it forks a copy of its own: all of them have to fit. Shared memory is no data by the
 * system's count (RLIMIT_DATA); a copy of it is, and so is what a forked child has. */
struct heap_shape heap_shape_of_process(void) {
    const uint64_t mappings = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) + 1;
    uint64_t bytes = least(address_bytes_max, limit(RLIMIT_AS) / LIMIT_SHARE) / mappings;
    struct heap_shape shape = {0, 0, NULL};
    struct sysinfo machine;
    uint64_t memory;

    if (strict_accounting()) {
        shape.reason = "memory is accounted strictly (vm.overcommit_memory=2)";
        return shape;
    }
    if (sysinfo(&machine) != 0) {
        shape.reason = "the size of the memory is not known (sysinfo)";
        return shape;
    }
    memory = (uint64_t)machine.totalram * machine.mem_unit;
    bytes = least(bytes, memory + memory / LEASE_SHARE);
    bytes = least(bytes, limit(RLIMIT_FSIZE));
    bytes = least(bytes, limit(RLIMIT_DATA) / LIMIT_SHARE);
    if (bytes < heap_bytes_min) {
        shape.reason = "the limits of this process leave too little address space, data or file "
                       "size (ulimit -v, ulimit -d, ulimit -f)";
        return shape;
    }
    return heap_shape_of(bytes, memory);
}
