#include "shm/guarded_room.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

void* ucg_shm_guarded_room(uint64_t bytes, uint64_t alignment) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t slack = alignment - page;
    const size_t wanted = bytes + 2 * page;
    char* all =
        mmap(NULL, wanted + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char* room;
    size_t before;

    if (all == MAP_FAILED) {
        return NULL;
    }
    room = (char*)(((uintptr_t)all + page + alignment - 1) & ~(uintptr_t)(alignment - 1));
    before = (size_t)(room - all) - page;
    if (before > 0) {
        munmap(all, before);
    }
    if (before < slack) {
        munmap(room + bytes + page, slack - before);
    }
    return room;
}

void ucg_shm_guarded_room_end(void* room, uint64_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    munmap((char*)room - page, bytes + 2 * page);
}
