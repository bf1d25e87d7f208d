/* The memory that the ranks of MPI_COMM_WORLD hold, with any library. */
#include "memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mpi.h>

enum { PATH_BYTES = 300, LINK_BYTES = 300, FILES_MAX = 8 };

/* An anonymous shared file that a process has open; several processes may share it. */
struct file {
    double inode;
    double bytes;
};

/* Finds the anonymous shared files of this process. Returns how many there are, FILES_MAX at
 * most. */
static int own_files(struct file files[FILES_MAX]) {
    DIR* folder = opendir("/proc/self/fd");
    struct dirent* entry;
    int count = 0;

    while (folder != NULL && count < FILES_MAX && (entry = readdir(folder)) != NULL) {
        char path[PATH_BYTES];
        char target[LINK_BYTES] = "";
        struct stat info;
        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof(target) - 1) > 0 &&
            strncmp(target, "/memfd:", strlen("/memfd:")) == 0 && stat(path, &info) == 0) {
            files[count].inode = (double)info.st_ino;
            files[count++].bytes = (double)info.st_blocks * 512;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* Returns the bytes of those files that no lower rank has open. */
static double file_bytes(void) {
    struct file mine[FILES_MAX] = {{0, 0}};
    struct file* all;
    double bytes = 0;
    int rank, size, i, j;
    const int count = own_files(mine);

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all = malloc((size_t)size * sizeof(mine));
    if (all == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 0;
    }
    MPI_Allgather(mine, 2 * FILES_MAX, MPI_DOUBLE, all, 2 * FILES_MAX, MPI_DOUBLE, MPI_COMM_WORLD);
    for (i = 0; i < count; ++i) {
        int seen = 0;
        for (j = 0; j < rank * FILES_MAX + i; ++j) {
            seen |= all[j].inode == mine[i].inode;
        }
        bytes += seen ? 0 : mine[i].bytes;
    }
    free(all);
    return bytes;
}

/* Returns the value of a key in /proc/self/status, in bytes. */
static double status_bytes(const char* key) {
    FILE* status = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;

    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtod(line + strlen(key), NULL);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return kib * 1024;
}

void measure_memory(double sums[MEMORY_KINDS]) {
    double mine[MEMORY_KINDS] = {file_bytes(), status_bytes("RssAnon:"), status_bytes("VmPTE:")};

    MPI_Allreduce(mine, sums, MEMORY_KINDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
