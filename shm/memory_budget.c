#include "shm/memory_budget.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The longest of these files, memory.stat, has some 2 KiB. */
enum { TEXT_BYTES = 8192, PATH_BYTES = 4096 };

/* Texts that are read, in memory of their own: threads that ask may have stacks of 16 KiB, signal
 * handlers less. */
struct scratch {
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    char groups[TEXT_BYTES]; /* The control groups of the process. */
};

/* The names that version 1 and version 2 give to the same things. */
struct group_files {
    const char* mount;
    const char* limit;
    const char* usage;
    const char* inactive;
    const char* active;
};
static const struct group_files version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                             "inactive_file", "active_file"};
static const struct group_files version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                             "memory.usage_in_bytes", "total_inactive_file",
                                             "total_active_file"};

/* A folder of the control groups: "<root><mount>" and the first `length` bytes of `path`. */
struct folder {
    struct scratch* scratch;
    const char* root;
    const char* mount;
    const char* path;
    int length;
};

/* Reads a file into `text`, which is one of the scratch's. Returns whether it could. */
static bool read_text(struct folder folder, const char* name, char* text) {
    char* path = folder.scratch->path;
    size_t length = 0;
    ssize_t got = 1;
    const int written = snprintf(path, PATH_BYTES, "%s%s%.*s/%s", folder.root, folder.mount,
                                 folder.length, folder.path, name);
    const int fd = written < PATH_BYTES ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0) {
        return false;
    }
    while (got > 0 || (got < 0 && errno == EINTR)) {
        got = read(fd, text + length, TEXT_BYTES - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    text[length] = '\0';
    return true;
}

/* Reads the number with which a file begins. Returns false when it says "max" or cannot be read. */
static bool read_number(struct folder folder, const char* name, uint64_t* value_p) {
    char* text = folder.scratch->text;
    char* end = text;

    if (!read_text(folder, name, text)) {
        return false;
    }
    *value_p = strtoull(text, &end, 10);
    return end != text;
}

/* Returns the number after `key` in lines of "key number"; 0 when there is none. */
static uint64_t field(const char* text, const char* key) {
    const size_t length = strlen(key);

    for (const char* line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            return strtoull(line + length, NULL, 10);
        }
    }
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Reduces the budget to what one control group allows. `machine` is the machine's memory. What a
 * group holds is only asked for where its limit is less: most have none, and each file takes the
 * kernel several microseconds. */
static void limit_by_group(struct folder folder, const struct group_files* files, uint64_t machine,
                           struct ucg_shm_budget* budget) {
    const char* statistics = folder.scratch->text;
    uint64_t limit = 0;
    uint64_t held = 0;
    uint64_t cache;

    if (!read_number(folder, files->limit, &limit) || limit >= machine) {
        return;
    }
    if (!read_number(folder, files->usage, &held)) {
        held = 0;
    }
    /* The page cache is charged to the group but is dropped before anything is killed. */
    if (!read_text(folder, "memory.stat", folder.scratch->text)) {
        statistics = "";
    }
    cache = field(statistics, files->inactive) + field(statistics, files->active);
    held -= least(held, cache);
    budget->total = least(budget->total, limit);
    budget->available = least(budget->available, limit - least(limit, held));
}

/* Reduces the budget to what the control group of `line` and all those above it, up to the root,
 * allow. The line says "id:controllers:path"; version 2 has id 0 and no controllers. */
static void limit_by_groups(struct folder proc, const char* line, int length, uint64_t machine,
                            struct ucg_shm_budget* budget) {
    const char* end = line + length;
    const char* controllers = memchr(line, ':', (size_t)length);
    const char* path =
        controllers == NULL ? NULL : memchr(controllers + 1, ':', (size_t)(end - controllers - 1));
    const struct group_files* files = &version_2;
    struct folder folder;

    if (path == NULL) {
        return;
    }
    if (path > controllers + 1) {
        const char* memory = strstr(controllers, "memory");
        const bool whole = memory != NULL && memory + strlen("memory") <= path &&
                           strchr(":,", memory[-1]) != NULL &&
                           strchr(":,", memory[strlen("memory")]) != NULL;
        if (!whole) {
            return;
        }
        files = &version_1;
    }
    folder =
        (struct folder){proc.scratch, proc.root, files->mount, path + 1, (int)(end - path - 1)};
    while (true) {
        limit_by_group(folder, files, machine, budget);
        if (folder.length == 0) {
            return;
        }
        do {
            --folder.length;
        } while (folder.length > 0 && folder.path[folder.length] != '/');
    }
}

static struct ucg_shm_budget read_budget(struct scratch* scratch, const char* root) {
    const struct folder proc = {scratch, root, "/proc", "", 0};
    struct ucg_shm_budget budget = {UINT64_MAX, UINT64_MAX};
    const char* text = scratch->text;

    if (read_text(proc, "meminfo", scratch->text) && field(text, "MemTotal:") > 0) {
        budget.total = field(text, "MemTotal:") * 1024;
        budget.available = field(text, "MemAvailable:") * 1024;
    }
    const uint64_t machine = budget.total;
    if (read_text(proc, "self/cgroup", scratch->groups)) {
        for (const char* line = scratch->groups; *line != '\0';) {
            const size_t length = strcspn(line, "\n");

            limit_by_groups(proc, line, (int)length, machine, &budget);
            line += length + (line[length] == '\n' ? 1 : 0);
        }
    }
    return budget;
}

struct ucg_shm_budget ucg_shm_memory_budget(const char* root) {
    struct ucg_shm_budget budget = {0, 0};
    struct scratch* scratch =
        mmap(NULL, sizeof(*scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (scratch == MAP_FAILED) {
        return budget; /* There is not even memory for this. */
    }
    budget = read_budget(scratch, root);
    munmap(scratch, sizeof(*scratch));
    return budget;
}
