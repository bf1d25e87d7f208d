/* A program that was compiled with the header of API 0.1, of which it has no more than this:
   today's has functions of these names, which would be called instead wherever they are not
   inlined. */
#include <stdint.h>
#include <string.h>

typedef struct ucg_context* ucg_context_h;
typedef struct ucg_group* ucg_group_h;

/** API 0.1's ucg_group_attr_t, and what lies behind it in the caller's memory. */
struct attributes {
    uint64_t started[17];
    uint64_t planned;
    uint32_t host_count;
    uint32_t ranks_on_host;
    int uses_shm;
    int uses_ucx;
    uint64_t behind;
};

int ucg_context_create(const void* params, void* config, ucg_context_h* context_p);
int ucg_group_query(ucg_group_h group, struct attributes* attr_p);

int old_caller_creates(ucg_context_h* context_p);
int old_caller_is_told(ucg_group_h group);

int old_caller_creates(ucg_context_h* context_p) {
    return ucg_context_create(NULL, NULL, context_p) == 0;
}

/* Of a group of one that has started one allreduce. */
int old_caller_is_told(ucg_group_h group) {
    struct attributes attr;

    memset(&attr, 0x5a, sizeof(attr));
    return ucg_group_query(group, &attr) == 0 && attr.started[3 /* allreduce */] == 1 &&
           attr.planned == 1 && attr.host_count == 1 && attr.ranks_on_host == 1 &&
           attr.uses_ucx == 0 && attr.behind == 0x5a5a5a5a5a5a5a5aULL;
}
