/*
 * Options of commbench and persistbench, and statistics of their repetitions.
 */
#include "bench_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

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
        case 'r': o->repetitions = (int)strtol(optarg, NULL, 10); break;
        case 'n': o->cycles = (int)strtol(optarg, NULL, 10); break;
        case 'l': o->live = (int)strtol(optarg, NULL, 10); break;
        case 'k': *o = (struct bench_options){2, 5, 3}; break;
        case 'h':
            if (rank == 0) {
                fputs(usage, stdout);
            }
            return 0;
        default: bad = 1;
        }
    }
    if (bad || optind < argc || o->repetitions < 1 || o->repetitions > REPETITIONS_MAX ||
        o->cycles < 1 || o->live < live_min || o->live > LIVE_MAX) {
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
