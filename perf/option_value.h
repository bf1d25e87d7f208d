/*
 * Parses the values of options: a whole number, a size in bytes, a number. A sign, an overflow or
 * anything behind the number is refused. The option, the range and what was found are printed on
 * standard error if `say` is true: where all ranks read the same command line, one of them prints.
 */
#ifndef PERF_OPTION_VALUE_H
#define PERF_OPTION_VALUE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a number begins here: with a digit, since strtol and strtod would skip blanks
 * and take a sign. */
static inline int option_digit(const char* text) {
    return text[0] >= '0' && text[0] <= '9';
}

/* Returns the power of two of a size's unit, as parse_size (ucg_coll/base) reads it; 0 for none. */
static inline int option_shift(char unit) {
    switch (unit) {
    case 'k':
    case 'K': return 10;
    case 'M': return 20;
    case 'G': return 30;
    case 'T': return 40;
    default: return 0;
    }
}

/* Returns a size from `least`, which is not negative, to `most`, perhaps with k, M, G or T
 * behind it; -1 if the text is no such size. */
static inline long option_size(const char* option, const char* text, long least, long most,
                               int say) {
    char* end = NULL;
    long value = -1;
    int shift = 0;

    errno = 0;
    if (option_digit(text)) {
        value = strtol(text, &end, 10);
        shift = option_shift(*end);
        if (errno != 0 || end[shift > 0] != '\0' || value > most >> shift) {
            value = -1;
        }
    }
    if (value < 0 || value << shift < least) {
        if (say) {
            fprintf(stderr,
                    "%s: expected a size from %ld to %ld, such as 65536, 64k, 16M or 1G; "
                    "found '%s'\n",
                    option, least, most, text);
        }
        return -1;
    }
    return value << shift;
}

/* Like option_size(), but for a number without a unit. */
static inline long option_count(const char* option, const char* text, long least, long most,
                                int say) {
    if (strspn(text, "0123456789") == strlen(text)) {
        const long value = option_size(option, text, least, most, 0);
        if (value >= 0) {
            return value;
        }
    }
    if (say) {
        fprintf(stderr, "%s: expected a whole number from %ld to %ld, found '%s'\n", option, least,
                most, text);
    }
    return -1;
}

/* Returns a number of seconds above 0, at most a day; -1 if the text is no such number. */
static inline double option_seconds(const char* option, const char* text, int say) {
    /* Signs, hexadecimal numbers, infinities and NaN are refused. */
    if (option_digit(text) && strspn(text, "0123456789.e-") == strlen(text)) {
        char* end = NULL;
        const double value = strtod(text, &end);
        if (*end == '\0' && value > 0 && value <= 86400) {
            return value;
        }
    }
    if (say) {
        fprintf(stderr, "%s: expected seconds above 0, at most 86400, found '%s'\n", option, text);
    }
    return -1;
}

/* Prints what was expected of an option that is neither a number nor a size; returns -1. */
static inline int option_refused(const char* option, const char* expected, const char* found,
                                 int say) {
    if (say) {
        fprintf(stderr, "%s: expected %s, found '%s'\n", option, expected, found);
    }
    return -1;
}

/* For programs that have options only. The first `read` words of the command line have been
 * read. Returns 0 if there are no more words, else -1. */
static inline int option_end(int read, int argc, char** argv, int say) {
    if (read < argc && say) {
        fprintf(stderr, "unexpected argument '%s'\n", argv[read]);
    }
    return read < argc ? -1 : 0;
}

#endif
