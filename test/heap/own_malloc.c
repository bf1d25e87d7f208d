/*
 * A program that brings its own malloc, which hands out a static array and takes nothing back. What
 * is preloaded then serves nothing, holds no segment, and offers none to libucg.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ARRAY_BYTES = 16 << 20, ALIGNMENT = 64 };

static _Alignas(ALIGNMENT) char array[ARRAY_BYTES];
static atomic_size_t used;

#define VISIBLE __attribute__((visibility("default")))

/* Each block has its length before it. */
VISIBLE void* malloc(size_t bytes) {
    size_t first;

    if (bytes > ARRAY_BYTES) {
        return NULL;
    }
    first = atomic_fetch_add(&used, (bytes / ALIGNMENT + 2) * ALIGNMENT) + ALIGNMENT;
    if (first + bytes > ARRAY_BYTES) {
        return NULL;
    }
    memcpy(array + first - sizeof(bytes), &bytes, sizeof(bytes));
    return array + first;
}

VISIBLE void free(void* block) {
    (void)block;
}

VISIBLE void* calloc(size_t count, size_t bytes) {
    return malloc(count * bytes); /* All of it is fresh. */
}

VISIBLE void* realloc(void* block, size_t bytes) {
    char* other = malloc(bytes);
    size_t before = 0;

    if (block != NULL && other != NULL) {
        memcpy(&before, (char*)block - sizeof(before), sizeof(before));
        memcpy(other, block, before < bytes ? before : bytes);
    }
    return other;
}

static bool segment_is_mapped(void) {
    FILE* maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;

    while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL) {
        found = strstr(line, "memfd:ucg") != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

int main(void) {
    union {
        void* address;
        int (*function)(void*);
    } claim = {dlsym(RTLD_DEFAULT, "ucg_heap_claim_1")};
    uint64_t segment[16];

    if (claim.address == NULL || claim.function(segment) != ENOTSUP) {
        fprintf(stderr, "the segment can be claimed\n");
        return 1;
    }
    return segment_is_mapped() ? 1 : 0;
}
