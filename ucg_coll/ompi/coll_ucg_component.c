/*
 * The component as Open MPI sees it: its structure, its parameters, its life, and the one context
 * of libucg that all modules of the process share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_ucg_background.h"
#include "coll_ucg_request.h"
#include "ompi/proc/proc.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/output.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_init_query(bool enable_progress_threads, bool enable_mpi_threads);

mca_coll_ucg_component_t mca_coll_ucg_component = {
    .super =
        {
            .collm_version =
                {
                    COLL_UCG_FRAMEWORK_VERSION,
                    .mca_component_name = "ucg",
                    MCA_BASE_MAKE_VERSION(component, COLL_UCG_MAJOR, COLL_UCG_MINOR,
                                          COLL_UCG_RELEASE),
                    .mca_open_component = component_open,
                    .mca_close_component = component_close,
                    .mca_register_component_params = component_register,
                },
            .collm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
            .collm_init_query = component_init_query,
            .collm_comm_query = mca_coll_ucg_comm_query,
        },
    .output = -1,
    .context_status = UCG_INPROGRESS,
};

/** Defined here, since gcc takes more instructions to read it in the file that defines it. */
_Thread_local bool coll_ucg_inside_library;

/* ------------------------------------------------------------------ names */

static const char* const function_names[COLL_UCG_FN_COUNT] = {
#define FUNCTION_NAME(name) [COLL_UCG_FN_##name] = #name,
    COLL_UCG_FOR_EACH(FUNCTION_NAME)
#undef FUNCTION_NAME
};

static const struct {
    const char* parameter; /**< coll_ucg_<parameter>. */
    const char* variable;  /**< UCG_<variable>. */
    const char* help;
} settings[COLL_UCG_SETTING_COUNT] = {
    {"tls", "TLS", "Transports that libucg may use: shm, ucx or \"shm,ucx\""},
    {"short_lane", "SHORT_LANE", "Send short messages through UCT directly: y or n"},
    {"heap_size", "HEAP_SIZE",
     "Address space of the memory that a process shares with its host's others, such as 256M"},
    {"help_peers", "HELP_PEERS",
     "Ranks of a host do what others of them owe of nonblocking collectives: auto, always, never"},
    {"staging", "STAGING",
     "Memory of each rank of a host that its peers read, such as 1M; 0: none"},
    {"cma", "CMA",
     "Copy long messages on a host once, by the kernel: y, n or from which length on"},
    {"profile", "PROFILE", "File with the costs of this machine; builtin: none"},
    {"topology", "TOPOLOGY", "File with the switches between the hosts; none: no file"},
    {"machine", "MACHINE",
     "Machine that processes are taken to be on, for tests: hwloc's synthetic description or a "
     "file of lstopo's XML"},
    {"sleep_after", "SLEEP_AFTER",
     "Microseconds that a call polls before it sleeps, auto or never"},
    {"stall_after", "STALL_AFTER",
     "Seconds after which a collective that does not go on is reported, with the ranks that it "
     "waits for; or never"},
    {"warn_unused_env_vars", "WARN_UNUSED_ENV_VARS",
     "Tell of variables UCG_* that mean nothing: y or n"},
    {"timeout", "TIMEOUT",
     "Seconds that setting up shared memory waits for a peer, and that a network connection which "
     "cannot be made is tried again"},
    {"verify", "VERIFY", "Prove every plan before it is used: y or n"},
    {"reproducible", "REPRODUCIBLE",
     "placement: reductions give the same bits wherever their ranks are; n: only on all ranks"},
    {"log_level", "LOG_LEVEL", "What libucg says: error, warn, info, debug or trace"},
};

/* ------------------------------------------------------------------ parameters */

/** Is this rank 0, by what launchers tell: mpirun, PMIx under any launcher, and Slurm? True where
 * none says anything. */
static bool may_be_first(void) {
    const char* const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"};
    const char* rank = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && NULL == rank; i++) {
        rank = getenv(names[i]);
    }
    return NULL == rank || 0 == strcmp(rank, "0");
}

/**
 * Does the component run with the series of Open MPI that it was built for? Open MPI compares the
 * versions of module structures too, but drops a component that does not fit without a word. This
 * function tells the user why nothing got faster.
 */
static bool runs_in_its_own_series(void) {
    char text[COLL_UCG_VERSION_BYTES];
    int major = -1;
    int minor = -1;
    if (!coll_ucg_library_version(text) || 2 != sscanf(text, "Open MPI v%d.%d", &major, &minor)) {
        snprintf(text, sizeof text, "an unknown MPI library");
    }
    if (OMPI_MAJOR_VERSION == major && OMPI_MINOR_VERSION == minor) {
        return true;
    }
    if (!may_be_first()) {
        return false;
    }
    text[strcspn(text, ",")] = '\0';
    opal_output(0,
                "coll/ucg: this component was built for Open MPI %d.%d and does not work with %s; "
                "collectives run without it. Use the component built for that series.",
                OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, text);
    return false;
}

static void register_switches(const mca_base_component_t* component) {
    for (int i = 0; i < COLL_UCG_FN_COUNT; i++) {
        char name[64];
        char help[128];
        snprintf(name, sizeof name, "enable_%s", function_names[i]);
        snprintf(help, sizeof help, "Whether the component serves %s; else the next one does",
                 function_names[i]);
        mca_coll_ucg_component.enabled[i] = true;
        (void)mca_base_component_var_register(component, name, help, MCA_BASE_VAR_TYPE_BOOL, NULL,
                                              0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ,
                                              &mca_coll_ucg_component.enabled[i]);
    }
}

/** Is the function served by the algorithms of another one? libucg serves alltoallw as alltoallv,
 *  and all neighbourhood collectives as neighbor_alltoallv. */
static bool has_algorithms_of_another(int function) {
    switch (function) {
    case COLL_UCG_FN_alltoallw:
    case COLL_UCG_FN_neighbor_allgather:
    case COLL_UCG_FN_neighbor_allgatherv:
    case COLL_UCG_FN_neighbor_alltoall:
    case COLL_UCG_FN_neighbor_alltoallw: return true;
    default: return false;
    }
}

/** Registers parameters like coll_ucg_allreduce_algorithm. */
static void register_algorithms(const mca_base_component_t* component) {
    for (int i = 0; i < COLL_UCG_FN_BLOCKING_COUNT; i++) {
        char name[64];
        char help[256];
        if (has_algorithms_of_another(i)) {
            continue;
        }
        snprintf(name, sizeof name, "%s_algorithm", function_names[i]);
        snprintf(help, sizeof help,
                 "Algorithm that serves %s wherever it can, instead of the planner's choice, maybe "
                 "by size (0-4k:NAME;4k-inf:NAME); the same as UCG_<COLLECTIVE>",
                 function_names[i]);
        (void)mca_base_component_var_register(component, name, help, MCA_BASE_VAR_TYPE_STRING, NULL,
                                              0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ,
                                              &mca_coll_ucg_component.algorithms[i]);
    }
}

static void register_settings(const mca_base_component_t* component) {
    for (int i = 0; i < COLL_UCG_SETTING_COUNT; i++) {
        char help[256];
        snprintf(help, sizeof help, "%s; takes precedence over UCG_%s", settings[i].help,
                 settings[i].variable);
        (void)mca_base_component_var_register(
            component, settings[i].parameter, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
            OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ, &mca_coll_ucg_component.settings[i]);
    }
}

/** Adds the counters of the modules that live to those of the modules that are gone. Tools may ask
 *  before MPI_Init, when the component is not open. */
static void sum_counters(coll_ucg_counters_t* sum) {
    opal_list_item_t* item;
    memset(sum, 0, sizeof *sum);
    if (mca_coll_ucg_component.output < 0) {
        return;
    }
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    *sum = mca_coll_ucg_component.counters;
    OPAL_LIST_FOREACH(item, &mca_coll_ucg_component.enabled_modules, opal_list_item_t) {
        if (!coll_ucg_module_of(item)->is_side) {
            coll_ucg_add_counters(sum, &coll_ucg_module_of(item)->counters);
        }
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

static int read_taken(const mca_base_pvar_t* variable, void* value, void* object) {
    coll_ucg_counters_t sum;
    (void)object;
    sum_counters(&sum);
    *(unsigned long long*)value = sum.taken[(intptr_t)variable->ctx];
    return OMPI_SUCCESS;
}

static int read_passed(const mca_base_pvar_t* variable, void* value, void* object) {
    coll_ucg_counters_t sum;
    (void)object;
    sum_counters(&sum);
    *(unsigned long long*)value = sum.passed[(intptr_t)variable->ctx];
    return OMPI_SUCCESS;
}

static void register_counter(const mca_base_component_t* component, const char* kind, int function,
                             const char* what, mca_base_get_value_fn_t read) {
    char name[64];
    char help[128];
    snprintf(name, sizeof name, "%s_%s", kind, function_names[function]);
    snprintf(help, sizeof help, "Calls of %s that %s", function_names[function], what);
    (void)mca_base_component_pvar_register(
        component, name, help, OPAL_INFO_LVL_5, MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read, NULL, NULL,
        (void*)(intptr_t)function);
}

/** Sets parameters to their defaults. Open MPI takes as the default what it finds, which after
 *  another life of the component in this process (sessions, tools) is what was valid then. */
static void set_defaults(void) {
    /* Above components that serve (tuned 30), below those that wrap whatever serves: sync 50, cuda
       78, monitoring. */
    mca_coll_ucg_component.priority = 45;
    mca_coll_ucg_component.verbose = 0;
    /* Setting up takes as long as some twenty short collectives; this many were the first in NWChem
       and CP2K that took no more time than without the component. */
    mca_coll_ucg_component.setup_after = 16;
    mca_coll_ucg_component.assume_alike = false;
}

static int component_register(void) {
    const mca_base_component_t* component = &mca_coll_ucg_component.super.collm_version;
    set_defaults();
    if (!runs_in_its_own_series()) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    (void)mca_base_component_var_register(
        component, "priority", "Priority of the component, up to 100; negative: not used",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_ucg_component.priority);
    (void)mca_base_component_var_register(component, "verbose",
                                          "0: errors only; 1: also what was served, at the end, "
                                          "from rank 0; 2: also each communicator",
                                          MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_9,
                                          MCA_BASE_VAR_SCOPE_LOCAL,
                                          &mca_coll_ucg_component.verbose);
    (void)mca_base_component_var_register(
        component, "setup_after",
        "Collectives that a communicator other than MPI_COMM_WORLD calls before libucg serves it; "
        "the next component serves those, since many communicators call few and setting one up "
        "takes as long as these",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_ucg_component.setup_after);
    (void)mca_base_component_var_register(
        component, "assume_alike",
        "Take it that all processes of this job have this component and the same parameters, "
        "instead of asking PMIx about each in MPI_Init; where that is wrong, the job hangs",
        MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_ALL_EQ,
        &mca_coll_ucg_component.assume_alike);
    register_switches(component);
    register_settings(component);
    register_algorithms(component);
    for (int i = 0; i < COLL_UCG_FN_COUNT; i++) {
        register_counter(component, "taken", i, "libucg served", read_taken);
        register_counter(component, "passed", i, "went to the next component", read_passed);
    }
    return OMPI_SUCCESS;
}

/* ------------------------------------------------------------------ context */

/** Sets a variable of libucg to the value of a parameter if the user gave it. */
static ucg_status_t set_variable(ucg_config_h config, const char* variable, const char* value) {
    if (NULL == value || '\0' == value[0]) {
        return UCG_OK;
    }
    return ucg_config_modify(config, variable, value);
}

static ucg_status_t set_algorithm(ucg_config_h config, int function) {
    char variable[64];
    size_t i = 0;
    for (; '\0' != function_names[function][i]; i++) {
        /* toupper() depends on the program's locale. */
        const char c = function_names[function][i];
        variable[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    variable[i] = '\0';
    return set_variable(config, variable, mca_coll_ucg_component.algorithms[function]);
}

static ucg_status_t configure(ucg_config_h config) {
    ucg_status_t status = UCG_OK;
    for (int i = 0; i < COLL_UCG_SETTING_COUNT && UCG_OK == status; i++) {
        status = set_variable(config, settings[i].variable, mca_coll_ucg_component.settings[i]);
    }
    for (int i = 0; i < COLL_UCG_FN_BLOCKING_COUNT && UCG_OK == status; i++) {
        status = set_algorithm(config, i);
    }
    return status;
}

static void drop_line(const char* line, void* unused) {
    (void)line;
    (void)unused;
}

/** Reads the configuration. `is_told`: another process, with the same settings, reports what is
 *  wrong with them, so this one does not. */
static ucg_status_t read_config(bool is_told, ucg_config_h* config_p) {
    void* programs_arg = NULL; /* The program may use libucg itself. */
    ucg_log_handler_t programs = NULL;
    if (is_told) {
        programs = ucg_log_set_handler(drop_line, NULL, &programs_arg);
    }
    ucg_status_t status = ucg_config_read(config_p);
    if (UCG_OK == status) {
        status = configure(*config_p);
        if (UCG_OK != status) {
            ucg_config_release(*config_p);
        }
    }
    if (is_told) {
        ucg_log_set_handler(programs, programs_arg, NULL);
    }
    return status;
}

/** A handler of the log. */
typedef struct log_taker_t {
    ucg_log_handler_t handler; /* NULL: standard error. */
    void* arg;
} log_taker_t;

static void drop_lines_of_profiles(const char* line, void* former) {
    const log_taker_t* taker = former;
    if (NULL != strstr(line, "UCG_PROFILE")) {
        return;
    }
    if (NULL != taker->handler) {
        taker->handler(line, taker->arg);
    } else {
        (void)fputs(line, stderr);
    }
}

/** Makes the context. `is_told`: another process of this host reports what is wrong with a file
 *  that a setting names, so this one does not. */
static ucg_status_t create_with(const ucg_context_params_t* params, ucg_config_h config,
                                bool is_told, ucg_context_h* context_p) {
    static log_taker_t former; /* Static: another thread may finish a line after the return. */
    if (is_told) {
        former.handler = ucg_log_set_handler(NULL, NULL, &former.arg);
        (void)ucg_log_set_handler(drop_lines_of_profiles, &former, NULL);
    }
    const ucg_status_t status = ucg_context_create(params, config, context_p);
    if (is_told) {
        (void)ucg_log_set_handler(former.handler, former.arg, NULL);
    }
    return status;
}

static ucg_status_t create_context(ompi_communicator_t* comm, ucg_context_h* context_p) {
    const bool is_told = coll_ucg_first_is_set_alike(comm);
    ucg_config_h config;
    ucg_status_t status = read_config(is_told, &config);
    if (UCG_OK == status) {
        const ucg_context_params_t params = {
            .field_mask = UCG_CONTEXT_PARAM_FIELD_THREAD_MODE | UCG_CONTEXT_PARAM_FIELD_PROGRESS |
                          UCG_CONTEXT_PARAM_FIELD_NAME | UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES |
                          UCG_CONTEXT_PARAM_FIELD_YIELDS | UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK |
                          UCG_CONTEXT_PARAM_FIELD_ESTIMATED_NUM_EPS,
            .thread_mode = coll_ucg_threads() ? UCG_THREAD_MODE_MULTIPLE : UCG_THREAD_MODE_SINGLE,
            .progress = coll_ucg_progress_host,
            .name = "coll/ucg",
            .local_processes = (uint32_t)opal_process_info.num_local_peers + 1,
            .yields = opal_progress_yield_when_idle,
            .local_rank = (uint32_t)opal_process_info.my_local_rank,
            /* Not estimated_num_ppn: hosts of a job may differ in it, and processes must not. */
            .estimated_num_eps = (size_t)ompi_proc_world_size(),
        };
        status = create_with(&params, config, is_told && 0 != opal_process_info.my_local_rank,
                             context_p);
        ucg_config_release(config);
    }
    return status;
}

ucg_status_t coll_ucg_context(ompi_communicator_t* comm, ucg_context_h* context_p) {
    mca_coll_ucg_component_t* component = &mca_coll_ucg_component;
    opal_mutex_lock(&component->lock);
    if (UCG_INPROGRESS == component->context_status) {
        coll_ucg_find_host_progress();
        component->context_status = create_context(comm, &component->context);
    }
    *context_p = component->context;
    ucg_status_t status = component->context_status;
    opal_mutex_unlock(&component->lock);
    return status;
}

/* ------------------------------------------------------------------ life */

/** Returns the value that the user gave a setting, as a parameter or in the environment; "" if
 *  there is none. */
static const char* given(const char* variable) {
    char name[64];
    for (int i = 0; i < COLL_UCG_SETTING_COUNT; i++) {
        const char* value = mca_coll_ucg_component.settings[i];
        if (0 == strcmp(settings[i].variable, variable) && NULL != value && '\0' != value[0]) {
            return value;
        }
    }
    snprintf(name, sizeof name, "UCG_%s", variable);
    const char* value = getenv(name);
    return NULL != value ? value : "";
}

bool coll_ucg_serves_all_nonblocking(void) {
    for (int i = 0; i < COLL_UCG_FN_NONBLOCKING_COUNT; i++) {
        if (!mca_coll_ucg_component.enabled[COLL_UCG_FN_BLOCKING_COUNT + i]) {
            return false;
        }
    }
    return true;
}

bool coll_ucg_passes_none_on(void) {
    return 0 == mca_coll_ucg_component.calls_before;
}

/** Returns how many collectives communicators call before they get a group: none if the user wants
 *  reproducible results, which have the same bits only if they all come from libucg. */
static int find_calls_before(void) {
    const char* value = given("REPRODUCIBLE");
    const bool reproducible = '\0' != value[0] && 0 != strcmp(value, "n");
    return reproducible ? 0 : mca_coll_ucg_component.setup_after;
}

static int component_open(void) {
    mca_coll_ucg_component_t* component = &mca_coll_ucg_component;
    OBJ_CONSTRUCT(&component->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&component->waiting, opal_list_t);
    OBJ_CONSTRUCT(&component->enabled_modules, opal_list_t);
    component->output = opal_output_open(NULL);
    component->context = NULL;
    component->context_status = UCG_INPROGRESS;
    component->turn_taken = false;
    component->polled = false;
    atomic_store(&component->told, 0);
    memset(&component->counters, 0, sizeof component->counters);
    component->calls_before = find_calls_before();
    coll_ucg_open_requests();
    coll_ucg_open_background();
    coll_ucg_open_peers();
    return OMPI_SUCCESS;
}

static int component_init_query(bool enable_progress_threads, bool enable_mpi_threads) {
    (void)enable_progress_threads;
    (void)
        enable_mpi_threads; /* Open MPI 5.0 does not say so of a session: see coll_ucg_threads(). */
    return OMPI_SUCCESS;
}

static void report_counters(void) {
    coll_ucg_counters_t sum;
    sum_counters(&sum);
    for (int i = 0; i < COLL_UCG_FN_COUNT; i++) {
        if (0 != sum.taken[i] || 0 != sum.passed[i]) {
            opal_output(mca_coll_ucg_component.output,
                        "coll/ucg: rank 0 called %s: %llu by libucg, %llu passed on",
                        function_names[i], (unsigned long long)sum.taken[i],
                        (unsigned long long)sum.passed[i]);
        }
    }
}

/** Leaves all groups. A communicator that a request still holds, because the program forgot to free
 *  the request, is never destroyed, and neither is its module. The modules that were there before
 *  are not released: their components may be closed. */
static void leave_groups(void) {
    opal_list_item_t* item;
    OPAL_LIST_FOREACH(item, &mca_coll_ucg_component.enabled_modules, opal_list_item_t) {
        mca_coll_ucg_module_t* module = coll_ucg_module_of(item);
        module->state = COLL_UCG_OFF;
        coll_ucg_tear_down(module);
    }
}

/**
 * Closes the component. Open MPI closes the framework after it has destroyed the communicators,
 * MPI_COMM_WORLD and most of those that the program forgot to free alike; so the context is
 * destroyed here and not with any communicator.
 */
static int component_close(void) {
    mca_coll_ucg_component_t* component = &mca_coll_ucg_component;
    if (component->verbose >= 1 && 0 == OPAL_PROC_MY_NAME.vpid) {
        report_counters();
    }
    leave_groups();
    coll_ucg_close_background();
    coll_ucg_close_requests();
    coll_ucg_stop_polling();
    if (NULL != component->context) {
        ucg_context_destroy(component->context);
        component->context = NULL;
    }
    coll_ucg_close_peers();
    OBJ_DESTRUCT(&component->enabled_modules);
    OBJ_DESTRUCT(&component->waiting);
    OBJ_DESTRUCT(&component->lock);
    opal_output_close(component->output);
    component->output = -1;
    return OMPI_SUCCESS;
}
