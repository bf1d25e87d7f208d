/* What a process knows of its own heap, from /proc alone: no interface of ours. */
#ifndef UCG_TEST_HEAP_MAPS_H_
#define UCG_TEST_HEAP_MAPS_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Is the address in memory that peers can map? */
static inline bool in_heap(const void* address) {
    FILE* maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;

    while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long long first = 0, end = 0;

        found = strstr(line, "memfd:ucg") != NULL && strstr(line, " rw-s ") != NULL &&
                sscanf(line, "%llx-%llx", &first, &end) == 2 && (uintptr_t)address >= first &&
                (uintptr_t)address < end;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static inline long resident_kb(void) {
    FILE* status = fopen("/proc/self/status", "re");
    char line[256];
    long kb = -1;

    while (status != NULL && kb < 0 && fgets(line, sizeof(line), status) != NULL) {
        sscanf(line, "VmRSS: %ld kB", &kb);
    }
    if (status != NULL) {
        fclose(status);
    }
    return kb;
}

#endif
