/*
 * A preloaded library that makes PMIx fail when it is asked what a process has published for the
 * component: as often as FAILING_LOOKS says, with the error FAILING_STATUS. It passes all other
 * questions on.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef int get_t(const void* process, const char* key, const void* info, size_t count,
                  void** value);

__attribute__((visibility("default"))) get_t PMIx_Get;

static int number_of(const char* variable) {
    const char* text = getenv(variable);
    return NULL != text ? (int)strtol(text, NULL, 10) : 0;
}

/** Open MPI 4.1 loads the library for one of its components only, so it has to be looked up
 * there. */
static get_t* real_get(void) {
    get_t* function = NULL;
    void* library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
    void* symbol = dlsym(NULL != library ? library : RTLD_NEXT, "PMIx_Get");
    memcpy(&function, &symbol, sizeof function);
    return function;
}

int PMIx_Get(const void* process, const char* key, const void* info, size_t count, void** value) {
    static atomic_int looks;
    const int status = number_of("FAILING_STATUS");
    if (NULL != key && 0 == strncmp(key, "coll.ucg.", 9) &&
        atomic_fetch_add(&looks, 1) < number_of("FAILING_LOOKS")) {
        return status;
    }
    get_t* const get = real_get();
    return NULL != get ? get(process, key, info, count, value) : status;
}
