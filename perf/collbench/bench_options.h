/* What commbench and persistbench share: options, and functions for statistics of repetitions. */
#ifndef UCG_PERF_COLLBENCH_BENCH_OPTIONS_H
#define UCG_PERF_COLLBENCH_BENCH_OPTIONS_H

enum { REPETITIONS_MAX = 99, LIVE_MAX = 10000 };

struct bench_options {
    int repetitions;
    int cycles; /* Cycles of each repetition. */
    int live;   /* Objects that live at once. */
};

/* Returns -1 to go on, else the exit status. `live_min` is the least value of --live. */
int parse_bench_options(int argc, char** argv, const char* usage, int live_min,
                        struct bench_options* o, int rank);

/* Compares two doubles for qsort(). */
int compare_doubles(const void* a, const void* b);

#endif
