/*
 * What commbench and persistbench share: options, and statistics of repetitions.
 */
#ifndef UCG_PERF_COLLBENCH_BENCH_OPTIONS_H
#define UCG_PERF_COLLBENCH_BENCH_OPTIONS_H

enum { REPETITIONS_MAX = 99, LIVE_MAX = 10000 };

struct bench_options {
    int repetitions;
    int cycles; /* Of each repetition. */
    int live;   /* Things that live at once. */
};

/* Returns -1 to go on, else the exit status. `live_min`: the least --live. */
int parse_bench_options(int argc, char** argv, const char* usage, int live_min,
                        struct bench_options* o, int rank);

/* For qsort(). */
int compare_doubles(const void* a, const void* b);

#endif
