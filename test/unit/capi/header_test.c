/* The public header compiled as C, strictly; and what can be called without peers. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucg/ucg.h>

static int failures;

static void check(int right, const char* what) {
    if (!right) {
        fprintf(stderr, "wrong: %s\n", what);
        ++failures;
    }
}

static void check_version(void) {
    unsigned major = 99, minor = 99;

    ucg_get_version(&major, &minor, NULL);
    check(major == UCG_API_MAJOR && minor == UCG_API_MINOR, "version of header and library");
    check(strlen(ucg_get_version_string()) > 0, "version string");
}

static void check_strings(void) {
    check(strcmp(ucg_status_string(UCG_OK), "Success") == 0, "name of UCG_OK");
    check(strcmp(ucg_coll_type_string(UCG_COLL_REDUCE_SCATTER_BLOCK), "reduce_scatter_block") == 0,
          "name of a collective");
    check(ucg_coll_type_string(UCG_COLL_LAST) == NULL, "no name for what is none");
}

static int gather_alone(void* arg, const void* send, void* recv, size_t bytes) {
    (void)arg;
    memcpy(recv, send, bytes);
    return 0;
}

static void check_group_of_one(ucg_context_h context) {
    ucg_group_params_t group_params = {0};
    ucg_coll_params_t params = {0};
    double in[3] = {1, 2, 3}, out[3] = {0, 0, 0};
    ucg_group_attr_t attr;
    ucg_group_h group;

    check(ucg_group_create(context, &group_params, &group) == UCG_ERR_INVALID_PARAM,
          "a group without allgather is refused");
    group_params.size = 1;
    group_params.oob_allgather = gather_alone;
    check(ucg_group_create(context, &group_params, &group) == UCG_OK, "a group of one");

    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = UCG_COLL_ALLREDUCE;
    params.send_buffer = in;
    params.recv_buffer = out;
    params.count = 3;
    params.element_bytes = sizeof(double);
    params.datatype = UCG_DT_FLOAT64;
    params.op = UCG_OP_SUM;
    check(ucg_coll_run(group, &params) == UCG_OK, "allreduce alone");
    check(memcmp(in, out, sizeof(in)) == 0, "its result");
    params.op = UCG_OP_BAND;
    check(ucg_coll_run(group, &params) == UCG_ERR_UNSUPPORTED, "bits of doubles");
    check(ucg_group_query(group, &attr) == UCG_OK && attr.started[UCG_COLL_ALLREDUCE] == 1,
          "counters");
    ucg_group_destroy(group);
}

static void check_memory(ucg_context_h context) {
    const size_t bytes = 100000;
    unsigned char* memory = NULL;
    void* other = NULL;
    void* nothing = context;
    size_t i;

    check(ucg_mem_alloc(context, bytes, (void**)&memory) == UCG_OK, "memory");
    check(((uintptr_t)memory & 4095) == 0, "its alignment");
    for (i = 0; i < bytes && memory[i] == 0; ++i) {
    }
    check(i == bytes, "it is zero");
    memset(memory, 7, bytes);
    check(ucg_mem_alloc(context, 1, &other) == UCG_OK && other != (void*)memory, "other memory");
    check(ucg_mem_free(context, memory + 4096) == UCG_ERR_INVALID_PARAM, "no such memory");
    check(ucg_mem_free(context, memory) == UCG_OK, "free");
    check(ucg_mem_free(context, memory) == UCG_ERR_INVALID_PARAM, "free twice");
    check(ucg_mem_free(context, other) == UCG_OK, "free the other");
    check(ucg_mem_alloc(context, 0, &nothing) == UCG_OK && nothing == NULL, "no memory");
    check(ucg_mem_free(context, NULL) == UCG_OK, "free nothing");
    check(ucg_mem_alloc(context, (size_t)1 << 60, &nothing) == UCG_ERR_NO_MEMORY && nothing == NULL,
          "too much memory");
    check(ucg_mem_alloc(context, bytes, &nothing) == UCG_OK, "memory that goes with its context");
}

int main(void) {
    ucg_config_h config;
    ucg_context_h context;

    check_version();
    check_strings();
    check(ucg_config_read(&config) == UCG_OK, "read the configuration");
    check(ucg_config_modify(config, "NO_SUCH", "1") == UCG_ERR_INVALID_PARAM, "unknown variable");
    check(ucg_config_modify(config, "LOG_LEVEL", "error") == UCG_OK, "log level");
    check(ucg_context_create(NULL, config, &context) == UCG_OK, "context");
    ucg_config_release(config);
    check_group_of_one(context);
    check_memory(context);
    ucg_context_destroy(context);
    return failures == 0 ? 0 : 1;
}
