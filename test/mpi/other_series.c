/*
 * A preloaded library that makes Open MPI report another series: the component must refuse it and
 * say so.
 */
#include <string.h>

__attribute__((visibility("default"))) int PMPI_Get_library_version(char* version, int* length);

int PMPI_Get_library_version(char* version, int* length) {
    static const char text[] = "Open MPI v99.3.1, package: test, ident: 99.3.1";
    memcpy(version, text, sizeof text);
    *length = (int)sizeof text - 1;
    return 0;
}
