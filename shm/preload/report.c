#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/preload/heap.h"

enum { LINE_BYTES = 512, HOST_BYTES = 65 };

void heap_warn(const char* format, ...) {
    const char* level = getenv("UCG_LOG_LEVEL");
    char host[HOST_BYTES] = "";
    char text[LINE_BYTES];
    char line[LINE_BYTES + HOST_BYTES + 64];
    va_list arguments;
    int length;

    if (level != NULL && strcmp(level, "error") == 0) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    gethostname(host, sizeof(host) - 1);
    length = snprintf(line, sizeof(line), "[%s:%d] ucg warning: %s\n", host, (int)getpid(), text);
    (void)!write(STDERR_FILENO, line, (size_t)length); /* Where nobody listens, nobody is told. */
}
