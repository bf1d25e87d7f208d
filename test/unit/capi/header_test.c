/* The public header, compiled strictly as C99, and the calls that need no peers. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucg/ucg.h>
#include <ucg/ucg_calls.h>

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

/* Defined in short_caller.c. */
int short_caller_creates(ucg_context_h* context_p);
int short_caller_makes(ucg_context_h context,
                       int (*gather)(void* arg, const void* send, void* recv, size_t bytes),
                       ucg_group_h* group_p);
int short_caller_runs(ucg_group_h group);
int short_caller_is_told(ucg_group_h group);

static void check_handshake(void) {
    ucg_context_h context;
    ucg_group_h group;

    check(ucg_context_create_version(UCG_API_MAJOR, UCG_API_MINOR + 1, NULL, NULL, &context) ==
              UCG_ERR_UNSUPPORTED,
          "a caller of a later version");
    check(ucg_context_create_version(UCG_API_MAJOR + 1, 0, NULL, NULL, &context) ==
              UCG_ERR_UNSUPPORTED,
          "a caller of another major version");
    check(short_caller_creates(&context), "a caller with a short structure");
    check(short_caller_makes(context, gather_alone, &group), "its group");
    check(short_caller_runs(group), "its collectives");
    check(short_caller_is_told(group), "what it is told");
    check(ucg_group_destroy(group) == UCG_OK, "the group's end");
    check(ucg_context_destroy(context) == UCG_OK, "its end");
}

/** Only modes that the library knows: other libraries have more of them, under other numbers. */
static void check_thread_modes(void) {
    int mode;
    for (mode = -1; mode <= 3; ++mode) {
        ucg_context_params_t params = {0};
        ucg_context_h context = NULL;
        const int known = mode == UCG_THREAD_MODE_SINGLE || mode == UCG_THREAD_MODE_MULTIPLE;
        ucg_status_t status;
        params.field_mask = UCG_CONTEXT_PARAM_FIELD_THREAD_MODE;
        params.thread_mode = (ucg_thread_mode_t)mode;
        status = ucg_context_create(&params, NULL, &context);
        check(status == (known ? UCG_OK : UCG_ERR_INVALID_PARAM), "thread modes");
        if (status == UCG_OK) {
            check(ucg_context_destroy(context) == UCG_OK, "end of a context");
        }
    }
}

static int lines;

static void count_line(const char* line, void* arg) {
    (void)line;
    (void)arg;
    ++lines;
}

/** A caller that falls back, or tries again later, reads nothing of it in the log. */
static void check_quiet_refusals(ucg_context_h context, ucg_group_h group) {
    const double in = 1;
    double out = 0;
    void* former_arg;
    const ucg_log_handler_t former = ucg_log_set_handler(count_line, NULL, &former_arg);
    lines = 0;
    check(ucg_allreduce(group, &in, &out, 1, UCG_DT_FLOAT64, UCG_OP_BAND) == UCG_ERR_UNSUPPORTED,
          "bits of a number");
    check(ucg_context_destroy(context) == UCG_ERR_BUSY, "a context with a group");
    check(lines == 0, "no line for a refusal by the contract");
    check(ucg_bcast(group, &out, 1, UCG_DT_FLOAT64, 1) == UCG_ERR_INVALID_PARAM, "no such root");
    check(lines == 1, "a line for a wrong argument");
    (void)ucg_log_set_handler(former, former_arg, NULL);
}

/** Whatever a call tries to start or to destroy at the wrong time stays as it is. */
static void check_wrong_times(ucg_context_h context, ucg_group_h group,
                              const ucg_coll_params_t* reduction) {
    ucg_coll_params_t params = *reduction;
    ucg_coll_h coll;

    params.op = UCG_OP_SUM;
    check(ucg_coll_init(group, &params, &coll) == UCG_OK, "prepare");
    check(ucg_group_destroy(group) == UCG_ERR_BUSY, "a group with a request");
    check(ucg_context_destroy(context) == UCG_ERR_BUSY, "a context with a group");
    check(ucg_coll_start(coll) == UCG_OK, "it is all still there");
    check(ucg_coll_free(coll) == UCG_OK, "free a request");
    check(ucg_coll_free(coll) == UCG_ERR_INVALID_PARAM, "free it twice");
    check(ucg_coll_start(coll) == UCG_ERR_INVALID_PARAM, "start what is free");
}

/** Every short form of a call, on a group of one rank, where the result is the rank's own
 * operand. */
static void check_short_forms(ucg_group_h group) {
    const uint64_t counts[] = {2};
    const int64_t displs[] = {1};
    const float in[2] = {3, 4};
    float out[3], first[3] = {3, 4, 0}, second[3] = {0, 3, 4};

#define CHECK_FORM(call, expected)                                                                 \
    memset(out, 0, sizeof(out));                                                                   \
    check((call) == UCG_OK && memcmp(out, expected, sizeof(out)) == 0, #call)
    CHECK_FORM(ucg_reduce(group, in, out, 2, UCG_DT_FLOAT32, UCG_OP_SUM, 0), first);
    CHECK_FORM(ucg_allreduce(group, in, out, 2, UCG_DT_FLOAT32, UCG_OP_MAX), first);
    CHECK_FORM(ucg_scan(group, in, out, 2, UCG_DT_FLOAT32, UCG_OP_SUM), first);
    CHECK_FORM(ucg_allgather(group, in, out, 2, UCG_DT_FLOAT32), first);
    CHECK_FORM(ucg_alltoall(group, in, out, 8, UCG_DT_UINT8), first);
    CHECK_FORM(ucg_gather(group, in, out, 1, UCG_DT_COMPLEX64, 0), first);
    CHECK_FORM(ucg_scatter(group, in, out, 1, UCG_DT_COMPLEX64, 0), first);
    CHECK_FORM(ucg_reduce_scatter_block(group, in, out, 2, UCG_DT_FLOAT32, UCG_OP_SUM), first);
    CHECK_FORM(ucg_reduce_scatter(group, in, out, counts, UCG_DT_FLOAT32, UCG_OP_SUM), first);
    CHECK_FORM(ucg_allgatherv(group, in, out, counts, displs, UCG_DT_FLOAT32), second);
    CHECK_FORM(ucg_gatherv(group, in, 2, out, counts, displs, UCG_DT_FLOAT32, 0), second);
    CHECK_FORM(ucg_scatterv(group, first, counts, displs, out, 2, UCG_DT_FLOAT32, 0),
               ((const float[]){4, 0, 0}));
    CHECK_FORM(ucg_alltoallv(group, first, counts, displs, out, counts, displs, UCG_DT_FLOAT32),
               ((const float[]){0, 4, 0}));
#undef CHECK_FORM
    check(ucg_barrier(group) == UCG_OK, "barrier");
    check(ucg_bcast(group, out, 3, UCG_DT_FLOAT32, 0) == UCG_OK, "bcast");
    check(ucg_exscan(group, in, out, 2, UCG_DT_FLOAT32, UCG_OP_SUM) == UCG_OK, "exscan");
    memcpy(out, in, sizeof(in));
    check(ucg_allreduce(group, ucg_in_place, out, 2, UCG_DT_FLOAT32, UCG_OP_SUM) == UCG_OK &&
              memcmp(out, in, sizeof(in)) == 0,
          "in place");
    memcpy(out, in, sizeof(in));
    check(ucg_scatter(group, out, (void*)ucg_in_place, 2, UCG_DT_FLOAT32, 0) == UCG_OK &&
              ucg_scatterv(group, out, counts, displs, (void*)ucg_in_place, 2, UCG_DT_FLOAT32, 0) ==
                  UCG_OK &&
              memcmp(out, in, sizeof(in)) == 0,
          "a root that scatters in place");
    check(ucg_allreduce(group, in, out, 1, UCG_DT_OPAQUE, UCG_OP_SUM) == UCG_ERR_INVALID_PARAM,
          "elements of no size");
    check(ucg_bcast(group, out, 3, UCG_DT_FLOAT32, 1) == UCG_ERR_INVALID_PARAM, "no such root");
    check(ucg_allreduce(group, in, out, 1, UCG_DT_COMPLEX64, UCG_OP_MIN) == UCG_ERR_UNSUPPORTED,
          "an order of complex numbers");
    check(ucg_datatype_bytes(UCG_DT_INT16_INT32) == 8 &&
              ucg_datatype_bytes(UCG_DT_FLOAT64_INT64) == 16 &&
              ucg_datatype_bytes(UCG_DT_LAST) == 0,
          "sizes of datatypes");
}

/** How many more times the exchange is tested before it reports its end. */
static int looks_left;

/** What the last exchange sends. That exchange may never end; this pointer keeps its memory
 * reachable. */
static const void* volatile told;

static int gather_kept(void* arg, const void* send, void* recv, size_t bytes) {
    told = send;
    return gather_alone(arg, send, recv, bytes);
}

static ucg_status_t look(void* arg) {
    (void)arg;
    return looks_left-- > 0 ? UCG_INPROGRESS : UCG_OK;
}

/** A group of one rank is made without waiting, and the making of another one is given up. */
static void check_creation(ucg_context_h context) {
    ucg_group_params_t params = {0};
    ucg_group_creation_h creation;
    ucg_group_h group;

    params.size = 1;
    params.oob_allgather_start = gather_kept;
    params.oob_allgather_test = look;
    check(ucg_group_create_start(context, &params, &creation) == UCG_ERR_INVALID_PARAM,
          "a creation without its mask is refused");
    params.field_mask = UCG_GROUP_PARAM_FIELD_OOB_START;
    looks_left = 2;
    check(ucg_group_create_start(context, &params, &creation) == UCG_OK, "start");
    check(ucg_context_destroy(context) == UCG_ERR_BUSY, "a context with a creation");
    check(ucg_group_create_test(creation, &group) == UCG_INPROGRESS &&
              ucg_group_create_test(creation, &group) == UCG_INPROGRESS &&
              ucg_group_create_test(creation, &group) == UCG_OK,
          "its end");
    check(ucg_barrier(group) == UCG_OK && ucg_group_destroy(group) == UCG_OK, "its group");
    check(ucg_group_create_start(context, &params, &creation) == UCG_OK, "start another");
    ucg_group_create_abandon(creation);
}

static void check_group_of_one(ucg_context_h context) {
    ucg_group_params_t group_params = {0};
    ucg_coll_params_t params = {0};
    double in[3] = {1, 2, 3}, out[3] = {0, 0, 0};
    ucg_group_attr_t attr = {0};
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
    attr.field_mask = UCG_GROUP_ATTR_FIELD_STARTED;
    attr.host_count = 77;
    check(ucg_group_query(group, &attr) == UCG_OK && attr.started[UCG_COLL_ALLREDUCE] == 1 &&
              attr.started[UCG_COLL_MAX - 1] == 0,
          "counters");
    check(attr.host_count == 77, "what was not asked for is left");
    check_wrong_times(context, group, &params);
    check_quiet_refusals(context, group);
    check_short_forms(group);
    check(ucg_group_destroy(group) == UCG_OK, "the end of the group");
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
    check_handshake();
    check_thread_modes();
    ucg_config_release(config);
    check_creation(context);
    check_group_of_one(context);
    check_memory(context);
    check(ucg_context_destroy(context) == UCG_OK, "the end of the context");
    return failures == 0 ? 0 : 1;
}
