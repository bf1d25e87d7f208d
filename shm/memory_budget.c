#include "shm/memory_budget.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The longest of the texts, memory.stat, has some 2 KiB. */
enum { TEXT_BYTES = 8192, PATH_BYTES = 4096 };

/* Texts that are read, in memory of their own: threads that ask may have stacks of 16 KiB, signal
 * handlers less. */
struct scratch {
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    char groups[TEXT_BYTES]; /* The control groups of the process. */
    char lines[TEXT_BYTES];
};

/* The names that version 1 and version 2 give to the same things. */
struct group_files {
    const char*
        limits[2]; /* From the second on the kernel slows the group down, and kills nobody. */
    const char* usage;
    const char* inactive;
    const char* active;
};
static const struct group_files version_2 = {
    {"memory.max", "memory.high"}, "memory.current", "inactive_file", "active_file"};
static const struct group_files version_1 = {{"memory.limit_in_bytes", NULL},
                                             "memory.usage_in_bytes",
                                             "total_inactive_file",
                                             "total_active_file"};

/* A folder: "<root><mount>" and the first `length` bytes of `path`. */
struct folder {
    struct scratch* scratch;
    const char* root;
    const char* mount;
    const char* path;
    size_t length;
};

/* Opens a file for reading. Returns -1 if it cannot. */
static int open_file(struct folder folder, const char* name) {
    char* path = folder.scratch->path;
    const int written = snprintf(path, PATH_BYTES, "%s%s%.*s/%s", folder.root, folder.mount,
                                 (int)folder.length, folder.path, name);

    return written < PATH_BYTES ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* Like read(), but is not interrupted. */
static size_t read_some(int fd, char* text, size_t room) {
    ssize_t got;

    do {
        got = read(fd, text, room);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

/* Reads a file into `text`, which is one of the scratch's. Returns whether it could. */
static bool read_text(struct folder folder, const char* name, char* text) {
    const int fd = open_file(folder, name);
    size_t length = 0;
    size_t got;

    if (fd < 0) {
        return false;
    }
    while ((got = read_some(fd, text + length, TEXT_BYTES - 1 - length)) > 0) {
        length += got;
    }
    close(fd);
    text[length] = '\0';
    return true;
}

/* A file of any length that is read line by line. */
struct lines {
    int fd;
    char* text; /* TEXT_BYTES */
    size_t first;
    size_t end;
};

/* Returns the next line, without its end, which lasts until the next call; NULL after the last one.
 * Leaves out lines that are longer than the text may be. */
static char* next_line(struct lines* lines) {
    bool cut = false;
    size_t got;

    while (true) {
        char* line = lines->text + lines->first;
        char* end = memchr(line, '\n', lines->end - lines->first);

        if (end != NULL) {
            *end = '\0';
            lines->first = (size_t)(end - lines->text) + 1;
            if (!cut) {
                return line;
            }
            cut = false;
            continue;
        }
        lines->end -= lines->first;
        memmove(lines->text, line, lines->end);
        lines->first = 0;
        if (lines->end == TEXT_BYTES) {
            cut = true;
            lines->end = 0;
        }
        got = read_some(lines->fd, lines->text + lines->end, TEXT_BYTES - lines->end);
        if (got == 0) {
            return NULL;
        }
        lines->end += got;
    }
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

/* ------------------------------------------------------------------ control groups */

/* Returns the least of the group's limits; UINT64_MAX if it has none. */
static uint64_t read_limit(struct folder folder, const struct group_files* files) {
    uint64_t limit = UINT64_MAX;

    for (size_t i = 0; i < sizeof(files->limits) / sizeof(*files->limits); ++i) {
        uint64_t value = 0;

        if (files->limits[i] != NULL && read_number(folder, files->limits[i], &value)) {
            limit = least(limit, value);
        }
    }
    return limit;
}

/* Reduces the budget to what one control group allows. `machine` is the machine's memory. What a
 * group holds is only asked for where its limit is less: most have none, and each file takes the
 * kernel several microseconds. */
static void limit_by_group(struct folder folder, const struct group_files* files, uint64_t machine,
                           struct ucg_shm_budget* budget) {
    const uint64_t limit = read_limit(folder, files);
    const char* statistics = folder.scratch->text;
    uint64_t held = 0;
    uint64_t cache;

    if (limit >= machine) {
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

/* Returns whether a list "cpu,memory" of `length` bytes has the word. */
static bool lists(const char* list, size_t length, const char* word) {
    const char* end = list + length;

    while (true) {
        const char* comma = memchr(list, ',', (size_t)(end - list));
        const char* stop = comma == NULL ? end : comma;

        if ((size_t)(stop - list) == strlen(word) && memcmp(list, word, strlen(word)) == 0) {
            return true;
        }
        if (comma == NULL) {
            return false;
        }
        list = comma + 1;
    }
}

/* Returns the path of the process's group in the hierarchy of that version which rules memory: that
 * of the line "4:cpu,memory:/user" or "0::/user". NULL if there is none. */
static const char* group_path(const char* groups, const struct group_files* files,
                              size_t* length_p) {
    for (const char* line = groups; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char* end = line + length;
        const char* controllers = memchr(line, ':', length);
        const char* path = controllers == NULL
                               ? NULL
                               : memchr(controllers + 1, ':', (size_t)(end - controllers - 1));

        if (path != NULL) {
            const size_t listed = (size_t)(path - controllers - 1);

            if (files == &version_2 ? listed == 0 : lists(controllers + 1, listed, "memory")) {
                *length_p = (size_t)(end - path - 1);
                return path + 1;
            }
        }
        line = end + (*end == '\n' ? 1 : 0);
    }
    return NULL;
}

/* Undoes, in place, the escapes of mountinfo: a backslash and three octal digits. */
static void unescape(char* text) {
    char* to = text;

    for (const char* from = text; *from != '\0'; ++to) {
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

struct mount {
    const struct group_files* files;
    char* root;  /* The folder of the hierarchy that is mounted; not "/" in many containers. */
    char* point; /* Where it is mounted. */
};

/* Reads, in place, a line "36 35 0:32 /root /point rw,relatime shared:9 - cgroup2 cgroup2 rw". The
 * fields before "-" vary in number. Returns false if this is no mount of groups that rule memory.
 */
static bool parse_mount(char* line, struct mount* mount_p) {
    enum { ROOT = 3 };
    const char* const separator = " - ";
    char* tail = strstr(line, separator);
    const char* type;

    if (tail == NULL) {
        return false;
    }
    *tail = '\0';
    tail += strlen(separator);
    type = strsep(&tail, " ");
    strsep(&tail, " "); /* What is mounted: any name. Options follow. */
    if (strcmp(type, "cgroup2") == 0) {
        mount_p->files = &version_2;
    } else if (strcmp(type, "cgroup") == 0 && tail != NULL && lists(tail, strlen(tail), "memory")) {
        mount_p->files = &version_1;
    } else {
        return false;
    }
    for (int i = 0; i < ROOT; ++i) {
        strsep(&line, " ");
    }
    mount_p->root = strsep(&line, " ");
    mount_p->point = strsep(&line, " ");
    if (mount_p->point == NULL) {
        return false;
    }
    unescape(mount_p->root);
    unescape(mount_p->point);
    return true;
}

/* Returns how much of the path is the mount's root; all of it for a group outside the mount
 * (another container's view, "/../.."), of which nothing but the root can be seen. */
static size_t root_length(const char* path, size_t length, const char* root) {
    const size_t prefix = strcmp(root, "/") == 0 ? 0 : strlen(root);
    const char* up = memmem(path, length, "/..", strlen("/.."));
    const bool inside = prefix <= length && memcmp(path, root, prefix) == 0 &&
                        (prefix == length || path[prefix] == '/') && up == NULL;

    return inside ? prefix : length;
}

/* Reduces the budget to what the process's group and all those above it allow, as far as the mount
 * shows them. */
static void limit_by_mount(struct folder proc, struct mount mount, uint64_t machine,
                           struct ucg_shm_budget* budget) {
    size_t length = 0;
    const char* path = group_path(proc.scratch->groups, mount.files, &length);
    struct folder folder = {proc.scratch, proc.root, mount.point, path, 0};
    size_t hidden;

    if (path == NULL) {
        return;
    }
    hidden = root_length(path, length, mount.root);
    folder.path = path + hidden;
    folder.length = length - hidden;
    while (true) {
        limit_by_group(folder, mount.files, machine, budget);
        if (folder.length == 0) {
            return;
        }
        do {
            --folder.length;
        } while (folder.length > 0 && folder.path[folder.length] != '/');
    }
}

static void limit_by_groups(struct folder proc, uint64_t machine, struct ucg_shm_budget* budget) {
    struct scratch* scratch = proc.scratch;
    struct lines mounts = {-1, scratch->lines, 0, 0};
    struct mount mount;
    char* line;

    if (!read_text(proc, "self/cgroup", scratch->groups)) {
        return;
    }
    mounts.fd = open_file(proc, "self/mountinfo");
    if (mounts.fd < 0) {
        return;
    }
    while ((line = next_line(&mounts)) != NULL) {
        if (parse_mount(line, &mount)) {
            limit_by_mount(proc, mount, machine, budget);
        }
    }
    close(mounts.fd);
}

/* ------------------------------------------------------------------ memory nodes */

enum { NODES = 1024, WORD_BITS = 8 * sizeof(unsigned long) }; /* As many as any system has. */

/* A set of memory nodes (NUMA), in the form that system calls use. */
struct nodes {
    unsigned long words[NODES / WORD_BITS];
};

static size_t count_nodes(const struct nodes* set) {
    size_t count = 0;

    for (size_t i = 0; i < sizeof(set->words) / sizeof(*set->words); ++i) {
        count += (size_t)__builtin_popcountl(set->words[i]);
    }
    return count;
}

static bool has_node(const struct nodes* set, unsigned long node) {
    return (set->words[node / WORD_BITS] >> node % WORD_BITS & 1) != 0;
}

/* Reads a list "0-3,8". */
static struct nodes parse_nodes(const char* list) {
    struct nodes set = {{0}};
    char* end = NULL;

    while (true) {
        const unsigned long first = strtoul(list, &end, 10);
        unsigned long last = first;

        if (end == list) {
            return set;
        }
        if (*end == '-') {
            list = end + 1;
            last = strtoul(list, &end, 10);
        }
        for (unsigned long node = first; node <= last && node < NODES; ++node) {
            set.words[node / WORD_BITS] |= 1UL << node % WORD_BITS;
        }
        list = end + (*end == ',' ? 1 : 0);
    }
}

/* Keeps of a set only the nodes of another one. */
static void restrict_to(struct nodes* set, const struct nodes* other) {
    for (size_t i = 0; i < sizeof(set->words) / sizeof(*set->words); ++i) {
        set->words[i] &= other->words[i];
    }
}

/* Restricts the nodes to those of the process's cpuset. */
static void restrict_to_cpuset(struct folder proc, struct nodes* nodes) {
    const char* const key = "Mems_allowed_list:";
    struct lines status = {open_file(proc, "self/status"), proc.scratch->lines, 0, 0};
    const char* line;

    if (status.fd < 0) {
        return;
    }
    while ((line = next_line(&status)) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            const struct nodes allowed = parse_nodes(line + strlen(key));

            restrict_to(nodes, &allowed);
        }
    }
    close(status.fd);
}

/* Restricts the nodes to those to which the calling thread's memory is bound (numactl --membind).
 * Other policies fall back on further nodes. Containers may forbid the question. */
static void restrict_to_policy(struct nodes* nodes) {
    struct nodes bound = {{0}};
    int mode = 0;

    if (syscall(SYS_get_mempolicy, &mode, bound.words, (unsigned long)NODES, NULL, 0UL) == 0 &&
        (mode & ~MPOL_MODE_FLAGS) == MPOL_BIND && (mode & MPOL_F_RELATIVE_NODES) == 0) {
        restrict_to(nodes, &bound);
    }
}

/* Returns the bytes of a line "Node 0 MemFree: 12 kB"; `key` is " MemFree:". */
static uint64_t node_bytes(const char* text, const char* key) {
    const char* found = strstr(text, key);

    return found == NULL ? 0 : strtoull(found + strlen(key), NULL, 10) * 1024;
}

/* Reduces the budget to what the nodes have that the process may use, where it may not use all:
 * when they are full the kernel kills, whatever the others have left. */
static void limit_by_nodes(struct folder proc, struct ucg_shm_budget* budget) {
    const struct folder system = {proc.scratch, proc.root, "/sys/devices/system/node", "", 0};
    const char* text = proc.scratch->text;
    struct ucg_shm_budget sum = {0, 0};
    struct nodes all;
    struct nodes usable;
    char name[32];

    if (!read_text(system, "has_memory", proc.scratch->text)) {
        return;
    }
    all = parse_nodes(text);
    if (count_nodes(&all) < 2) {
        return;
    }
    usable = all;
    restrict_to_cpuset(proc, &usable);
    restrict_to_policy(&usable);
    if (memcmp(&usable, &all, sizeof(all)) == 0) {
        return;
    }
    for (unsigned long node = 0; node < NODES; ++node) {
        snprintf(name, sizeof(name), "node%lu/meminfo", node);
        if (has_node(&usable, node)) {
            if (!read_text(system, name, proc.scratch->text)) {
                return;
            }
            sum.total += node_bytes(text, " MemTotal:");
            sum.available += node_bytes(text, " MemFree:") + node_bytes(text, " Active(file):") +
                             node_bytes(text, " Inactive(file):");
        }
    }
    if (sum.total > 0) {
        budget->total = least(budget->total, sum.total);
        budget->available = least(budget->available, sum.available);
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
    limit_by_groups(proc, budget.total, &budget);
    limit_by_nodes(proc, &budget);
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
