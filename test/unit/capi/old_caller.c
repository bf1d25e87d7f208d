/* A program that was compiled with the header of API 0.1. It declares the few things of that
 * header that it needs: today's header has functions of the same names, which would be called
 * instead wherever they are not inlined. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct ucg_context* ucg_context_h;
typedef struct ucg_group* ucg_group_h;

/** The ucg_group_attr_t of API 0.1, and what follows it in the caller's memory. */
struct attributes {
    uint64_t started[17];
    uint64_t planned;
    uint32_t host_count;
    uint32_t ranks_on_host;
    int uses_shm;
    int uses_ucx;
    uint64_t behind;
};

/** The ucg_group_params_t of API 0.1, whose last field is the name. */
struct group_params {
    uint64_t field_mask;
    uint32_t rank;
    uint32_t size;
    int (*oob_allgather)(void* arg, const void* send, void* recv, size_t bytes);
    void* oob_arg;
    const char* name;
};

int ucg_group_create(ucg_context_h context, const struct group_params* params,
                     ucg_group_h* group_p);
int ucg_context_create(const void* params, void* config, ucg_context_h* context_p);
int ucg_group_query(ucg_group_h group, struct attributes* attr_p);

int old_caller_creates(ucg_context_h* context_p);
int old_caller_makes(ucg_context_h context,
                     int (*gather)(void* arg, const void* send, void* recv, size_t bytes),
                     ucg_group_h* group_p);
int old_caller_is_told(ucg_group_h group);

int old_caller_creates(ucg_context_h* context_p) {
    return ucg_context_create(NULL, NULL, context_p) == 0;
}

/* Makes a group of one rank. The memory behind the structure is not part of it. */
int old_caller_makes(ucg_context_h context,
                     int (*gather)(void* arg, const void* send, void* recv, size_t bytes),
                     ucg_group_h* group_p) {
    struct group_params* params = malloc(sizeof(*params));
    int status;

    if (params == NULL) {
        return 0;
    }
    memset(params, 0x5a, sizeof(*params));
    params->field_mask = 0;
    params->rank = 0;
    params->size = 1;
    params->oob_allgather = gather;
    status = ucg_group_create(context, params, group_p);
    free(params);
    return status == 0;
}

/* Queries a group of one rank that has started one allreduce. */
int old_caller_is_told(ucg_group_h group) {
    struct attributes attr;

    memset(&attr, 0x5a, sizeof(attr));
    return ucg_group_query(group, &attr) == 0 && attr.started[3 /* allreduce */] == 1 &&
           attr.planned == 1 && attr.host_count == 1 && attr.ranks_on_host == 1 &&
           attr.uses_ucx == 0 && attr.behind == 0x5a5a5a5a5a5a5a5aULL;
}
