/*
 * Options of commbench and persistbench, and statistics of their repetitions.
 */
#include "bench_options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "perf/option_value.h"

int parse_bench_options(int argc, char** argv, const char* usage, int live_min,
                        struct bench_options* o, int rank) {
    static const struct option longs[] = {{"repetitions", 1, NULL, 'r'}, {"cycles", 1, NULL, 'n'},
                                          {"live", 1, NULL, 'l'},        {"smoke", 0, NULL, 'k'},
                                          {"help", 0, NULL, 'h'},        {NULL, 0, NULL, 0}};
    int bad = 0;
    int c;

    opterr = rank == 0;
    while ((c = getopt_long(argc, argv, "r:n:l:h", longs, NULL)) != -1) {
        switch (c) {
        case 'r':
            o->repetitions =
                (int)option_count("--repetitions", optarg, 1, REPETITIONS_MAX, rank == 0);
            bad |= o->repetitions < 0;
            break;
        case 'n':
            o->cycles = (int)option_count("--cycles", optarg, 1, INT_MAX, rank == 0);
            bad |= o->cycles < 0;
            break;
        case 'l':
            o->live = (int)option_count("--live", optarg, live_min, LIVE_MAX, rank == 0);
            bad |= o->live < 0;
            break;
        case 'k': *o = (struct bench_options){2, 5, 3}; break;
        case 'h':
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || option_end(optind, argc, argv, rank == 0) != 0) {
        if (rank == 0) {
            fputs(usage, stderr);
        }
        return 2;
    }
    return -1;
}

int compare_doubles(const void* a, const void* b) {
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}
