/*
 * The making of groups whose processes wait for it: those of inter-communicators at one of their
 * first collectives, and those of persistent requests. Those of intra-communicators:
 * coll_ucg_background.c.
 */

#include "coll_ucg_background.h"
#include "coll_ucg_inter.h"
#include "coll_ucg_pool.h"
#include "coll_ucg_repeat.h"
#include "coll_ucg_restart.h"
#include "opal/util/output.h"

/* ------------------------------------------------------------------ exchange */

/** Is this thread making a group? The functions that exchange data for it make progress, so that
 *  callbacks of the program run, which may call collectives of other communicators. */
static _Thread_local bool making __attribute__((tls_model("initial-exec")));

/** Returns the processes of an intra-communicator, which exchange in its group. */
static coll_ucg_exchange_t exchange_of_all(mca_coll_ucg_module_t* module) {
    return (coll_ucg_exchange_t){
        .module = module,
        .rank = (uint32_t)ompi_comm_rank(module->comm),
        .size = (uint32_t)ompi_comm_size(module->comm),
    };
}

/** Gathers among processes that have a group already. */
static int gather_in_group(coll_ucg_exchange_t* exchange, const void* source, void* target,
                           int bytes) {
    const ucg_coll_params_t params = {
        .type = UCG_COLL_ALLGATHER,
        .send_buffer = source,
        .recv_buffer = target,
        .count = (uint64_t)bytes,
        .element_bytes = 1,
    };
    return UCG_OK == ucg_coll_run(exchange->module->group, &params) ? OMPI_SUCCESS : OMPI_ERROR;
}

static int find_worst_in_group(coll_ucg_exchange_t* exchange, const int* mine, int* worst) {
    const ucg_coll_params_t params = {
        .field_mask = UCG_COLL_PARAM_FIELD_REDUCE,
        .type = UCG_COLL_ALLREDUCE,
        .send_buffer = mine,
        .recv_buffer = worst,
        .count = 1,
        .element_bytes = sizeof *mine,
        .datatype = UCG_DT_INT32,
        .op = UCG_OP_MAX,
    };
    return UCG_OK == ucg_coll_run(exchange->module->group, &params) ? OMPI_SUCCESS : OMPI_ERROR;
}

ucg_status_t coll_ucg_find_least(mca_coll_ucg_module_t* module, uint64_t* numbers, size_t count) {
    const ucg_coll_params_t params = {
        .field_mask = UCG_COLL_PARAM_FIELD_REDUCE,
        .type = UCG_COLL_ALLREDUCE,
        .flags = UCG_COLL_FLAG_IN_PLACE,
        .recv_buffer = numbers,
        .count = count,
        .element_bytes = sizeof *numbers,
        .datatype = UCG_DT_UINT64,
        .op = UCG_OP_MIN,
    };
    return ucg_coll_run(module->group, &params);
}

static int exchange_allgather(void* arg, const void* source, void* target, size_t bytes) {
    coll_ucg_exchange_t* exchange = arg;
    const int rc = bytes <= INT_MAX ? exchange->gather(exchange, source, target, (int)bytes)
                                    : OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    exchange->failed = exchange->failed || OMPI_SUCCESS != rc;
    return rc;
}

/** Returns the worst status of all ranks, the same on all: an error before UCG_INPROGRESS before
 *  UCG_OK. Also acts as a barrier. Allocates no memory: a rank without memory would leave the
 *  others waiting. */
static ucg_status_t agree(coll_ucg_exchange_t* exchange, ucg_status_t mine) {
    const int severity = UCG_INPROGRESS == mine ? 1 : -2 * (int)mine;
    int worst = 0;
    if (OMPI_SUCCESS != exchange->find_worst(exchange, &severity, &worst)) {
        exchange->failed = true;
        return UCG_ERR_IO_ERROR;
    }
    return 1 == worst ? UCG_INPROGRESS : (ucg_status_t)(-worst / 2);
}

/* ------------------------------------------------------------------ order */

/*
 * ucg_group_create() requires that processes which two groups share make them in the same order. A
 * correct program's first collectives have such an order, with two exceptions.
 *
 * With MPI_THREAD_MULTIPLE, threads may start the first collectives of several communicators in
 * different orders in different processes. So the ranks of a communicator agree that it has its
 * turn in all of them: each process grants its turn to the communicator of lowest id among those
 * whose ranks have all arrived, and a communicator that does not get it in all processes gives it
 * back and asks again. The lowest of all gets it, so some communicator always goes on.
 *
 * And a callback of the program may call a collective while its rank makes the group of another
 * communicator, on some ranks and not on others. Then that communicator gets no group yet.
 *
 * No rank knows by itself which of these holds for the others, so the ranks ask one another first.
 */

/** Waits until all ranks have arrived, since one that is still to come must not keep others from
 *  their turn, and finds out how they make their group. UCG_OK: at once. UCG_INPROGRESS: when it
 *  has its turn, since some have threads. UCG_ERR_BUSY: not now, since some are `within` the making
 *  of another group. */
static ucg_status_t arrive(coll_ucg_exchange_t* exchange, bool within) {
    const ucg_status_t alone = coll_ucg_threads() ? UCG_INPROGRESS : UCG_OK;
    return agree(exchange, within ? UCG_ERR_BUSY : alone);
}

static mca_coll_ucg_module_t* module_waiting(opal_list_item_t* item) {
    return (mca_coll_ucg_module_t*)((char*)item - offsetof(mca_coll_ucg_module_t, waiting));
}

static bool is_lowest(const ompi_communicator_t* comm) {
    opal_list_item_t* item;
    OPAL_LIST_FOREACH(item, &mca_coll_ucg_component.waiting, opal_list_item_t) {
        if (coll_ucg_comes_before(module_waiting(item)->comm, comm)) {
            return false;
        }
    }
    return true;
}

static bool try_turn(mca_coll_ucg_module_t* module) {
    mca_coll_ucg_component_t* component = &mca_coll_ucg_component;
    opal_mutex_lock(&component->lock);
    const bool granted = !component->turn_taken && is_lowest(module->comm);
    component->turn_taken = component->turn_taken || granted;
    opal_mutex_unlock(&component->lock);
    return granted;
}

static void give_turn_back(void) {
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    mca_coll_ucg_component.turn_taken = false;
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

static void set_waiting(mca_coll_ucg_module_t* module, bool waiting) {
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    if (waiting) {
        opal_list_append(&mca_coll_ucg_component.waiting, &module->waiting);
    } else {
        opal_list_remove_item(&mca_coll_ucg_component.waiting, &module->waiting);
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

/** Waits until the communicator has its turn in all processes. All its ranks have arrived. */
static ucg_status_t take_turn(coll_ucg_exchange_t* exchange) {
    set_waiting(exchange->module, true);
    ucg_status_t status = UCG_INPROGRESS;
    while (UCG_INPROGRESS == status) {
        const bool granted = try_turn(exchange->module);
        status = agree(exchange, granted ? UCG_OK : UCG_INPROGRESS);
        if (granted && UCG_OK != status) {
            give_turn_back();
        }
    }
    set_waiting(exchange->module, false);
    return status;
}

/* ------------------------------------------------------------------ set-up */

ucg_status_t coll_ucg_create_group(coll_ucg_exchange_t* exchange, ucg_context_h context,
                                   ucg_group_h* group_p) {
    const ucg_group_params_t params = {
        .field_mask = UCG_GROUP_PARAM_FIELD_NAME,
        .rank = exchange->rank,
        .size = exchange->size,
        .oob_allgather = exchange_allgather,
        .oob_arg = exchange,
        .name = exchange->module->comm->c_name,
    };
    const ucg_status_t status = ucg_group_create(context, &params, group_p);
    if (UCG_ERR_NO_MEMORY == status || UCG_ERR_INTERNAL == status) {
        exchange->failed = true; /* On this rank alone. */
    }
    return status;
}

/** Makes the context and the group, whose ranks have all arrived; at its turn if it `takes_turns`.
 *  Every rank returns the same status, unless an exchange fails. */
static ucg_status_t make_group(coll_ucg_exchange_t* exchange, bool takes_turns,
                               ucg_group_h* group_p) {
    ucg_context_h context = NULL;
    ucg_status_t status;
    /* A process without a context takes part as well: then all ranks go without a group. */
    (void)coll_ucg_context(exchange->module->comm, &context);
    if (takes_turns) {
        status = take_turn(exchange);
        if (UCG_OK != status) {
            return status;
        }
    }
    if (exchange->with_side && UCG_OK != coll_ucg_make_group_of_side(exchange, context)) {
        context = NULL; /* Then the other side does without as well. */
    }
    status = coll_ucg_create_group(exchange, context, group_p);
    if (takes_turns) {
        give_turn_back();
    }
    return status;
}

void coll_ucg_poll_for(mca_coll_ucg_module_t* module) {
    coll_ucg_poll_library_for(module->group);
    COLL_UCG_VERBOSE(2, "coll/ucg: %s: rank %d of %d is set up", module->comm->c_name,
                     ompi_comm_rank(module->comm), ompi_comm_size(module->comm));
}

/** Says once that a communicator goes without libucg. `rank` and `size` are those in the group that
 *  could not be made. */
static void tell(const mca_coll_ucg_module_t* module, int rank, int size, ucg_status_t status) {
    const bool told = coll_ucg_was_told(COLL_UCG_FOR_NO_GROUP);
    if (0 == rank && (!told || mca_coll_ucg_component.verbose >= 2)) {
        const ucg_status_t own = mca_coll_ucg_component.context_status;
        const bool has_none = UCG_OK != own && UCG_INPROGRESS != own;
        opal_output(0, "coll/ucg: %s (%d processes) uses Open MPI's other collectives: %s%s",
                    module->comm->c_name, size, ucg_status_string(has_none ? own : status),
                    has_none ? "; libucg has said why" : "");
    }
}

void coll_ucg_tell_of_no_group(const mca_coll_ucg_module_t* module, ucg_status_t status) {
    tell(module, ompi_comm_rank(module->comm), ompi_comm_size(module->comm), status);
}

/** Makes a group at its turn, as coll_ucg_make_group_by() does. */
static ucg_status_t make_at_turn(coll_ucg_exchange_t* exchange, ucg_group_h* group_p) {
    const bool within = making;
    making = true;
    ucg_status_t status = arrive(exchange, within);
    if (UCG_OK == status || UCG_INPROGRESS == status) {
        const bool takes_turns = UCG_INPROGRESS == status;
        do {
            status = make_group(exchange, takes_turns, group_p);
        } while (UCG_ERR_BUSY == status && coll_ucg_passes_none_on());
    }
    making = within;
    if (UCG_OK == status || UCG_ERR_BUSY == status || exchange->failed) {
        /* If it failed, other ranks may have succeeded: going on with other collectives here could
         * hang them all. */
        return status;
    }
    tell(exchange->module, (int)exchange->rank, (int)exchange->size, status);
    return UCG_ERR_UNSUPPORTED;
}

ucg_status_t coll_ucg_make_group_by(coll_ucg_exchange_t* exchange, ucg_group_h* group_p) {
    mca_coll_ucg_module_t* module = exchange->module;
    const coll_ucg_state_t before = module->state;
    /* The previous modules may call other collectives of the communicator. */
    module->state = COLL_UCG_SETTING_UP;
    const ucg_status_t status = make_at_turn(exchange, group_p);
    module->state = before;
    return status;
}

int coll_ucg_pause_after_busy(int* pause) {
    enum { PAUSE_MIN = 16, PAUSE_MAX = 1 << 14 };
    if (coll_ucg_passes_none_on()) {
        return 0;
    }
    *pause = *pause < PAUSE_MIN / 2 ? PAUSE_MIN : (*pause > PAUSE_MAX / 2 ? PAUSE_MAX : 2 * *pause);
    return *pause;
}

void coll_ucg_count_call(mca_coll_ucg_module_t* module) {
    if (COLL_UCG_FRESH == module->state && 0 < module->calls_before_group) {
        module->calls_before_group--;
    }
}

/** Does what coll_ucg_set_up() does, for an inter-communicator. */
static ucg_status_t set_up_across(mca_coll_ucg_module_t* module) {
    if (COLL_UCG_FRESH != module->state) {
        return UCG_ERR_UNSUPPORTED;
    }
    /* All ranks call a communicator's collectives in one order, so they count alike. That includes
       calls that callbacks make while this rank makes the group of another communicator. */
    if (0 < module->calls_before_group) {
        coll_ucg_count_call(module);
        return UCG_ERR_UNSUPPORTED;
    }
    coll_ucg_exchange_t exchange = coll_ucg_exchange_of_sides(module);
    const ucg_status_t status = coll_ucg_make_group_by(&exchange, &module->group);
    if (UCG_ERR_BUSY == status) {
        module->calls_before_group = coll_ucg_pause_after_busy(&module->pause);
        return UCG_ERR_UNSUPPORTED;
    }
    if (UCG_OK == status) {
        coll_ucg_poll_for(module);
    }
    module->state = UCG_OK == status ? COLL_UCG_READY : COLL_UCG_OFF;
    return status;
}

ucg_status_t coll_ucg_set_up(mca_coll_ucg_module_t* module) {
    return OMPI_COMM_IS_INTER(module->comm) ? set_up_across(module)
                                            : coll_ucg_enter_waiting(module);
}

ucg_status_t coll_ucg_make_further_group(mca_coll_ucg_module_t* module, ucg_group_h* group_p) {
    coll_ucg_exchange_t exchange = OMPI_COMM_IS_INTER(module->comm)
                                       ? coll_ucg_exchange_of_sides(module)
                                       : exchange_of_all(module);
    exchange.gather = gather_in_group;
    exchange.find_worst = find_worst_in_group;
    exchange.with_side = false; /* The side has its group already. */
    const ucg_status_t status = make_at_turn(&exchange, group_p);
    return UCG_ERR_BUSY == status ? UCG_ERR_UNSUPPORTED : status;
}

void coll_ucg_tear_down(mca_coll_ucg_module_t* module) {
    coll_ucg_forget(module);
    coll_ucg_forget_starts(module);
    coll_ucg_leave_pool(module);
    coll_ucg_abandon_background(module);
    if (NULL != module->sides) {
        coll_ucg_leave_sides(module->sides);
    }
    if (NULL != module->group) {
        ucg_group_destroy(module->group);
        module->group = NULL;
    }
}
