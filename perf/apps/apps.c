#include "apps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char csv_header[] = "phase,bytes,calls,mean_us,result";

void* allocate(size_t bytes) {
    void* memory = NULL;

    if (posix_memalign(&memory, 4096, bytes > 0 ? bytes : 1) != 0) {
        fprintf(stderr, "%zu bytes cannot be allocated\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(memory, 0, bytes);
    return memory;
}

/* Makes a row, which is ordered by bytes among those of its name. Returns its index. */
static int insert(struct phases* p, const char* name, long bytes) {
    int at = p->count;
    int i;

    for (i = 0; i < p->count; ++i) {
        if (strcmp(p->rows[i].name, name) == 0) {
            at = p->rows[i].bytes < bytes ? i + 1 : i;
            if (at == i) {
                break;
            }
        }
    }
    memmove(p->rows + at + 1, p->rows + at, sizeof(p->rows[0]) * (size_t)(p->count - at));
    p->rows[at] = (struct phase){name, bytes, 0, 0};
    ++p->count;
    return at;
}

void phases_add(struct phases* p, const char* name, long bytes, double seconds) {
    int i = 0;

    while (i < p->count && (p->rows[i].bytes != bytes || strcmp(p->rows[i].name, name) != 0)) {
        ++i;
    }
    if (i == MAX_PHASES) {
        fprintf(stderr, "more than %d phases\n", MAX_PHASES);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (i == p->count) {
        i = insert(p, name, bytes);
    }
    ++p->rows[i].calls;
    p->rows[i].seconds += seconds;
}

static double slowest_of(const struct phases* p, const double* slowest, const char* name) {
    int i;

    for (i = 0; i < p->count; ++i) {
        if (strcmp(p->rows[i].name, name) == 0) {
            return slowest[i];
        }
    }
    return 0;
}

void phases_print(const struct phases* p, const char* whole, int csv, int wrong, MPI_Comm comm) {
    double own[MAX_PHASES], slowest[MAX_PHASES], all;
    int rank, i;

    for (i = 0; i < p->count; ++i) {
        own[i] = p->rows[i].seconds;
    }
    MPI_Reduce(own, slowest, p->count, MPI_DOUBLE, MPI_MAX, 0, comm);
    MPI_Comm_rank(comm, &rank);
    if (rank != 0) {
        return;
    }
    all = slowest_of(p, slowest, whole);
    if (csv) {
        puts(csv_header);
    } else {
        printf("# %-14s %10s %8s %12s %12s %7s\n", "phase", "bytes", "calls", "us per call",
               "total ms", "share");
    }
    for (i = 0; i < p->count; ++i) {
        const struct phase* row = &p->rows[i];
        double mean = slowest[i] / (double)row->calls * 1e6;
        if (csv) {
            printf("%s,%ld,%ld,%.4f,%s\n", row->name, row->bytes, row->calls, mean,
                   wrong ? "WRONG" : "ok");
        } else {
            printf("%-16s %10ld %8ld %12.3f %12.3f %6.1f%%\n", row->name, row->bytes, row->calls,
                   mean, slowest[i] * 1e3, all > 0 ? slowest[i] / all * 100 : 0);
        }
    }
    if (!csv) {
        printf("# result %s\n", wrong ? "WRONG" : "ok");
    }
}
