/* A caller whose structures end before the fields that their masks do not name, as those of
 * programs do that were compiled before these fields were there. Behind each structure there is no
 * memory, and what it has, but has not set, is garbage. */
#define _DEFAULT_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucg/ucg.h>
#include <unistd.h>

int short_caller_creates(ucg_context_h* context_p);
int short_caller_makes(ucg_context_h context,
                       int (*gather)(void* arg, const void* send, void* recv, size_t bytes),
                       ucg_group_h* group_p);
int short_caller_runs(ucg_group_h group);
int short_caller_is_told(ucg_group_h group);

/** Two pages, of which the second cannot be read. */
struct pages {
    unsigned char* first;
    size_t bytes;
};

static struct pages make_pages(void) {
    struct pages pages;

    pages.bytes = (size_t)sysconf(_SC_PAGESIZE);
    pages.first =
        mmap(NULL, 2 * pages.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages.first == MAP_FAILED || mprotect(pages.first + pages.bytes, pages.bytes, PROT_NONE)) {
        pages.first = NULL;
    }
    return pages;
}

/** Returns a place at the end of the first page, with garbage. */
static void* place_for(const struct pages* pages, size_t bytes) {
    return memset(pages->first + pages->bytes - bytes, 0x5a, bytes);
}

static void free_pages(const struct pages* pages) {
    (void)munmap(pages->first, 2 * pages->bytes);
}

int short_caller_creates(ucg_context_h* context_p) {
    const struct pages pages = make_pages();
    ucg_context_params_t* params;
    ucg_status_t status;

    if (pages.first == NULL) {
        return 0;
    }
    params = place_for(&pages, offsetof(ucg_context_params_t, progress));
    params->field_mask = UCG_CONTEXT_PARAM_FIELD_THREAD_MODE;
    params->thread_mode = UCG_THREAD_MODE_SINGLE;
    /* A minor version that is no later than the library's. */
    status = ucg_context_create_version(UCG_API_MAJOR, UCG_API_MINOR - 1, params, NULL, context_p);
    free_pages(&pages);
    return status == UCG_OK;
}

/** Makes a group of one rank. */
int short_caller_makes(ucg_context_h context,
                       int (*gather)(void* arg, const void* send, void* recv, size_t bytes),
                       ucg_group_h* group_p) {
    const struct pages pages = make_pages();
    ucg_group_params_t* params;
    ucg_status_t status;

    if (pages.first == NULL) {
        return 0;
    }
    params = place_for(&pages, offsetof(ucg_group_params_t, name));
    params->field_mask = 0;
    params->rank = 0;
    params->size = 1;
    params->oob_allgather = gather;
    status = ucg_group_create(context, params, group_p);
    free_pages(&pages);
    return status == UCG_OK;
}

/** Starts two broadcasts, of which the second is known, and an allreduce. */
int short_caller_runs(ucg_group_h group) {
    const struct pages pages = make_pages();
    const double in = 3;
    double out = 0;
    ucg_coll_params_t* params;
    int right;

    if (pages.first == NULL) {
        return 0;
    }
    params = place_for(&pages, offsetof(ucg_coll_params_t, datatype));
    params->field_mask = 0;
    params->type = UCG_COLL_BCAST;
    params->flags = 0;
    params->root = 0;
    params->recv_buffer = &out;
    params->count = 1;
    params->element_bytes = sizeof(out);
    right = ucg_coll_run(group, params) == UCG_OK && ucg_coll_run(group, params) == UCG_OK;
    params = place_for(&pages, offsetof(ucg_coll_params_t, send_counts));
    params->field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params->type = UCG_COLL_ALLREDUCE;
    params->flags = 0;
    params->root = 0;
    params->send_buffer = &in;
    params->recv_buffer = &out;
    params->count = 1;
    params->element_bytes = sizeof(out);
    params->datatype = UCG_DT_FLOAT64;
    params->op = UCG_OP_SUM;
    right = right && ucg_coll_run(group, params) == UCG_OK && memcmp(&in, &out, sizeof(in)) == 0;
    free_pages(&pages);
    return right;
}

/** Queries that group. */
int short_caller_is_told(ucg_group_h group) {
    const struct pages pages = make_pages();
    ucg_group_attr_t* attr;
    int right;

    if (pages.first == NULL) {
        return 0;
    }
    attr = place_for(&pages, offsetof(ucg_group_attr_t, host_count));
    attr->field_mask = UCG_GROUP_ATTR_FIELD_STARTED | UCG_GROUP_ATTR_FIELD_PLANNED;
    right = ucg_group_query(group, attr) == UCG_OK && attr->started[UCG_COLL_BCAST] == 2 &&
            attr->started[UCG_COLL_ALLREDUCE] == 1 && attr->planned == 2;
    free_pages(&pages);
    return right;
}
