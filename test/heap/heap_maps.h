/* What a process can find out about its own heap from /proc alone, without any interface of
 * UCG's. */
#ifndef UCG_TEST_HEAP_MAPS_H_
#define UCG_TEST_HEAP_MAPS_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Does the address lie in memory that peers can map? */
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

/* How many kB of the heap a core file would hold, from VmFlags in smaps ("dd" means left out).
 * *holds_p says whether the page at `address` is among them. */
static inline long dumped_kb(const void* address, bool* holds_p) {
    FILE* smaps = fopen("/proc/self/smaps", "re");
    char line[512];
    unsigned long long first = 0, end = 0, from = 0, to = 0;
    bool heap = false;
    long kb = 0;

    *holds_p = false;
    while (smaps != NULL && fgets(line, sizeof(line), smaps) != NULL) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
            first = from;
            end = to;
            heap = strstr(line, "memfd:ucg") != NULL;
        } else if (heap && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == NULL) {
            kb += (long)((end - first) / 1024);
            *holds_p = *holds_p || ((uintptr_t)address >= first && (uintptr_t)address < end);
        }
    }
    if (smaps != NULL) {
        fclose(smaps);
    }
    return kb;
}

/* What smaps says of huge pages in the mapping that holds an address. */
struct huge_pages {
    bool possible;  /* Addresses and the file's offsets agree modulo the length of such a page. */
    bool asked_for; /* By madvise(). */
    long mapped_kb;
};

static inline struct huge_pages huge_pages_at(const void* address) {
    const unsigned long long huge = 2 << 20;
    FILE* smaps = fopen("/proc/self/smaps", "re");
    struct huge_pages found = {false, false, 0};
    char line[512];
    unsigned long long first = 0, end = 0, offset = 0;
    bool here = false;

    while (smaps != NULL && fgets(line, sizeof(line), smaps) != NULL) {
        if (sscanf(line, "%llx-%llx %*s %llx", &first, &end, &offset) == 3) {
            here = (uintptr_t)address >= first && (uintptr_t)address < end;
            found.possible = here ? first % huge == offset % huge : found.possible;
        } else if (here) {
            sscanf(line, "ShmemPmdMapped: %ld kB", &found.mapped_kb);
            found.asked_for = found.asked_for ||
                              (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL);
        }
    }
    if (smaps != NULL) {
        fclose(smaps);
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
