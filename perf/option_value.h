/*
 * Values of options: a whole number, a size in bytes, a number. A sign, an overflow or anything
 * behind the number is refused with the option, the range and what was found, on standard error
 * where `say` is true: ranks that all read the same command line leave that to one of them.
 */
#ifndef PERF_OPTION_VALUE_H
#define PERF_OPTION_VALUE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number begins with a digit here; strtol and strtod would skip blanks and take a sign. */
static inline int option_digit(const char* text) {
    return text[0] >= '0' && text[0] <= '9';
}

/* The powers of 1024 that a size may have behind it, as parse_size (ucg_coll/base) has them. */
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

/* From `least`, which is not negative, to `most`, maybe with k, M, G or T behind it; -1 where the
 * text is no such number. */
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

/* The same without a unit. */
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

/* Seconds above 0, at most a day; -1 where the text is no such number. */
static inline double option_seconds(const char* option, const char* text, int say) {
    /* Neither a sign, nor hexadecimal, nor a name of what is no number. */
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

/* Says what was expected of an option, where it is neither a number nor a size; returns -1. */
static inline int option_refused(const char* option, const char* expected, const char* found,
                                 int say) {
    if (say) {
        fprintf(stderr, "%s: expected %s, found '%s'\n", option, expected, found);
    }
    return -1;
}

/* For programs that take options alone, of which the first `read` words are some: 0 if there are no
 * more words, else -1. */
static inline int option_end(int read, int argc, char** argv, int say) {
    if (read < argc && say) {
        fprintf(stderr, "unexpected argument '%s'\n", argv[read]);
    }
    return read < argc ? -1 : 0;
}

#endif
