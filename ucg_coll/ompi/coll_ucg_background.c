/*
 * Makes groups while the program does other things.
 */
#include "coll_ucg_background.h"

#include <stdlib.h>

#include "coll_ucg_forms.h"
#include "coll_ucg_oob.h"
#include "coll_ucg_setup.h"
#include "opal/runtime/opal_progress.h"

/** The making of one communicator's group in the background, from the first call that waits for it
 *  until no call does. "Guarded" in this file: by background.lock. */
typedef struct coll_ucg_background {
    opal_list_item_t super;
    mca_coll_ucg_module_t* module;
    coll_ucg_oob_t oob;
    ucg_group_creation_h creation;
    bool started;   /**< Guarded. */
    bool attended;  /**< A blocking call began it: its thread does nothing else meanwhile. */
    bool decided;   /**< It is known whether there is a group. Guarded. */
    bool driven;    /**< Some thread advances it, perhaps this one. Guarded. */
    unsigned round; /**< The last round in which it was advanced. Guarded. */
    int tries;      /**< Tries that ended because another group was being made. */
    unsigned polls, chance;   /**< Polls before the next try, a random number; its state. */
    ucg_status_t status;      /**< UCG_INPROGRESS: the group is being made. */
    coll_ucg_state_t settled; /**< The outcome: the module's state for calls that have waited. */
    opal_list_t waiting;      /**< Calls that wait, in their order. Guarded. */
} coll_ucg_background_t;

static OBJ_CLASS_INSTANCE(coll_ucg_background_t, opal_list_item_t, NULL, NULL);

static struct {
    opal_mutex_t lock; /**< Guards all here, and the fields of modules that this file uses. */
    opal_list_t all;
    opal_list_t begun; /**< Calls that have waited, and that are in progress now. */
    opal_list_t ended; /**< Calls whose ends the program is to be told. */
    bool polled;       /**< Open MPI's progress calls progress_background(). */
    unsigned rounds;   /**< Number of rounds, each of which advances all. */
} background;

/** The call that this thread is making again. */
typedef struct coll_ucg_again {
    const mca_coll_ucg_module_t* module; /**< NULL after its function has asked how to go on. */
    ompi_request_t** request;
    bool blocking; /**< It is one of the blocking function. */
    bool waits;    /**< It has to wait again, for a further try to make the group. */
} coll_ucg_again_t;
static _Thread_local coll_ucg_again_t again __attribute__((tls_model("initial-exec")));

/** Is the module's present call the one that this thread makes again? To be asked once per call. */
static bool is_made_again(const mca_coll_ucg_module_t* module) {
    const bool is = again.module == module;
    if (is) {
        again.module = NULL;
    }
    return is;
}

bool coll_ucg_is_making_again(void) {
    return NULL != again.request;
}

bool coll_ucg_is_making_blocking(void) {
    return again.blocking;
}

/* ------------------------------------------------------------------ making the group */

static int progress_background(void);

/** Guarded. */
static void start_polling(void) {
    if (!background.polled) {
        background.polled = true;
        (void)opal_progress_register(progress_background);
    }
}

static void stop_polling(void) {
    opal_mutex_lock(&background.lock);
    if (background.polled && opal_list_is_empty(&background.all) &&
        opal_list_is_empty(&background.begun) && opal_list_is_empty(&background.ended)) {
        background.polled = false;
        (void)opal_progress_unregister(progress_background);
    }
    opal_mutex_unlock(&background.lock);
}

/** Returns the module's background, made if there is none yet; NULL: no memory. Guarded. */
static coll_ucg_background_t* background_of(mca_coll_ucg_module_t* module) {
    if (NULL == module->background) {
        coll_ucg_background_t* made = OBJ_NEW(coll_ucg_background_t);
        if (NULL == made) {
            return NULL;
        }
        OBJ_CONSTRUCT(&made->waiting, opal_list_t);
        OBJ_RETAIN(module->comm);
        made->module = module;
        made->settled = COLL_UCG_FRESH;
        made->started = false;
        made->decided = false;
        made->driven = false;
        made->round = background.rounds;
        module->background = made;
        opal_list_append(&background.all, &made->super);
    }
    return module->background;
}

/** Starts to make the group. Called without the lock: the first messages of the exchange may make
 *  progress. */
static void start_making(coll_ucg_background_t* making, bool attended) {
    making->attended = attended;
    mca_coll_ucg_module_t* module = making->module;
    ucg_context_h context = NULL;
    making->oob = (coll_ucg_oob_t){.comm = module->comm};
    const ucg_group_params_t params = {
        .field_mask = UCG_GROUP_PARAM_FIELD_NAME | UCG_GROUP_PARAM_FIELD_OOB_START |
                      UCG_GROUP_PARAM_FIELD_FLAGS,
        .rank = (uint32_t)ompi_comm_rank(module->comm),
        .size = (uint32_t)ompi_comm_size(module->comm),
        .oob_arg = &making->oob,
        .name = module->comm->c_name,
        .oob_allgather_start = coll_ucg_oob_start,
        .oob_allgather_test = coll_ucg_oob_test,
        .flags = making->attended ? UCG_GROUP_FLAG_ATTENDED : 0,
    };
    /* A process without a context takes part as well: then all ranks go without a group. */
    (void)coll_ucg_context(module->comm, &context);
    const ucg_status_t status = ucg_group_create_start(context, &params, &making->creation);
    making->status = UCG_OK == status ? UCG_INPROGRESS : status;
    opal_mutex_lock(&background.lock);
    making->started = true;
    start_polling();
    opal_mutex_unlock(&background.lock);
}

/** Guarded. */
static bool begin(mca_coll_ucg_module_t* module) {
    coll_ucg_background_t* making = background_of(module);
    if (NULL == making) {
        return false;
    }
    making->creation = NULL;
    making->started = false;
    making->decided = false;
    making->tries = 0;
    making->chance = (unsigned)ompi_comm_rank(module->comm);
    module->state = COLL_UCG_FORMING;
    return true;
}

/** Has the making failed on this rank alone? A rank whose memory or messages have failed does not
 *  know the outcome on the others. */
static bool is_of_this_rank(const coll_ucg_background_t* made) {
    return made->oob.failed || UCG_ERR_NO_MEMORY == made->status ||
           UCG_ERR_INTERNAL == made->status;
}

void coll_ucg_give_up_lacking(mca_coll_ucg_module_t* module, bool lacks) {
    opal_mutex_lock(&background.lock);
    module->lacks_call = module->lacks_call || lacks;
    ucg_group_h group = module->lacks_call ? module->group : NULL;
    opal_mutex_unlock(&background.lock);
    if (NULL != group) {
        ucg_group_fail(group);
    }
}

/** Notes the outcome of the making. */
static void settle(coll_ucg_background_t* made, ucg_group_h group) {
    mca_coll_ucg_module_t* module = made->module;
    made->creation = NULL;
    if (UCG_OK == made->status) {
        module->group = group;
        coll_ucg_give_up_lacking(module, false);
        coll_ucg_poll_for(module);
        made->settled = COLL_UCG_READY;
    } else if (UCG_ERR_BUSY == made->status) {
        module->calls_before_group = coll_ucg_pause_after_busy(&module->pause);
        made->settled = COLL_UCG_FRESH;
    } else {
        made->settled = COLL_UCG_OFF;
        if (!is_of_this_rank(made)) {
            coll_ucg_tell_of_no_group(module, made->status);
        }
    }
}

/* ------------------------------------------------------------------ calls */

/** Counts a call of a communicator without a group; false: the group is due. Guarded. */
static bool counts(mca_coll_ucg_module_t* module) {
    const bool early = 0 < module->calls_before_group;
    module->calls_before_group -= early ? 1 : 0;
    return early;
}

/** Counts a nonblocking call of a communicator without a group, and begins to make the group if
 * that is due. Guarded. */
static ucg_status_t count_or_begin(mca_coll_ucg_module_t* module, bool* begun) {
    if (counts(module) || !coll_ucg_serves_all_nonblocking()) {
        return UCG_ERR_UNSUPPORTED;
    }
    *begun = begin(module);
    module->lacks_call = module->lacks_call || !*begun;
    return *begun ? UCG_INPROGRESS : UCG_ERR_NO_MEMORY;
}

/** Returns the status of calls that have waited for a group that there is not: the error of this
 * rank alone, if it has one, since others may have the group, and calls that were passed on could
 * hang them; else UCG_ERR_UNSUPPORTED. */
static ucg_status_t error_of(const coll_ucg_background_t* made) {
    return is_of_this_rank(made) ? made->status : UCG_ERR_UNSUPPORTED;
}

ucg_status_t coll_ucg_enter_early(mca_coll_ucg_module_t* module) {
    bool begun = false;
    opal_mutex_lock(&background.lock);
    const bool made_again = is_made_again(module);
    const coll_ucg_background_t* made = module->background;
    ucg_status_t status = UCG_ERR_UNSUPPORTED;
    switch (made_again ? made->settled : (coll_ucg_state_t)module->state) {
    case COLL_UCG_READY: status = UCG_OK; break;
    case COLL_UCG_FORMING: status = UCG_INPROGRESS; break;
    case COLL_UCG_FRESH: status = count_or_begin(module, &begun); break;
    case COLL_UCG_SETTING_UP: break;
    case COLL_UCG_OFF: status = made_again ? error_of(made) : UCG_ERR_UNSUPPORTED; break;
    }
    opal_mutex_unlock(&background.lock);
    if (begun) {
        start_making(module->background, false);
    }
    return status;
}

ucg_status_t coll_ucg_pass_in_order(mca_coll_ucg_module_t* module) {
    return !is_made_again(module) && COLL_UCG_FORMING == module->state ? UCG_INPROGRESS
                                                                       : UCG_ERR_UNSUPPORTED;
}

ucg_status_t coll_ucg_defer(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                            const coll_ucg_arguments_t* arguments) {
    if (NULL != again.request && again.request == arguments->request) {
        again.waits = true;
        return UCG_OK;
    }
    coll_ucg_deferred_t* deferred = coll_ucg_make_deferred(module, function, arguments);
    if (NULL == deferred) {
        coll_ucg_give_up_lacking(module, true);
        return UCG_ERR_NO_MEMORY;
    }
    opal_mutex_lock(&background.lock);
    const bool waits = COLL_UCG_FORMING == module->state;
    if (waits) {
        opal_list_append(&module->background->waiting, &deferred->super.super.super.super);
    }
    opal_mutex_unlock(&background.lock);
    if (!waits) { /* Meanwhile another thread has made all calls that waited. */
        coll_ucg_drop_deferred(deferred);
        return UCG_INPROGRESS;
    }
    *arguments->request = &deferred->super.super;
    return UCG_OK;
}

ucg_status_t coll_ucg_enter_waiting(mca_coll_ucg_module_t* module) {
    opal_mutex_lock(&background.lock);
    const coll_ucg_state_t state = module->state;
    const bool due = COLL_UCG_FRESH == state && !counts(module);
    opal_mutex_unlock(&background.lock);
    const bool waits = due || COLL_UCG_FORMING == state;
    return waits ? UCG_INPROGRESS : (COLL_UCG_READY == state ? UCG_OK : UCG_ERR_UNSUPPORTED);
}

/** Gives a blocking call back to its function where there is no group. */
static void pass_back(const coll_ucg_background_t* made, coll_ucg_deferred_t* deferred) {
    deferred->passed = COLL_UCG_OFF == made->settled ? error_of(made) : UCG_ERR_UNSUPPORTED;
    if (COLL_UCG_FRESH == made->settled) {
        (void)counts(made->module);
    }
}

/** Makes a call again that has waited. Returns false if it has to wait again. The call may run the
 *  program's operator, which may call functions that come here again. */
static bool make_again(coll_ucg_background_t* made, coll_ucg_deferred_t* call) {
    if (NULL != call->thread && COLL_UCG_READY != made->settled) {
        pass_back(made, call);
        return true;
    }
    const coll_ucg_again_t outer = again;
    again = (coll_ucg_again_t){made->module, call->arguments.request, NULL != call->thread, false};
    const int rc = coll_ucg_nonblocking(made->module, call->function, call->arguments, NULL);
    const bool waits = again.waits;
    again = outer;
    if (NULL != call->thread) {
        coll_ucg_count_as_blocking(call);
    }
    if (OMPI_SUCCESS != rc) {
        coll_ucg_fail_deferred(call, rc);
    }
    return !waits;
}

/** Ends the making of a group when no call waits any more. Guarded. */
static void end(coll_ucg_background_t* made) {
    mca_coll_ucg_module_t* module = made->module;
    opal_list_remove_item(&background.all, &made->super);
    module->background = NULL;
    module->state = made->settled; /* From now on calls need not come here. */
}

static void discard(coll_ucg_background_t* made) {
    ompi_communicator_t* comm = made->module->comm;
    OBJ_DESTRUCT(&made->waiting);
    OBJ_RELEASE(made);
    OBJ_RELEASE(comm);
}

/** Makes the calls that wait, including those that come meanwhile. Returns false if one goes on
 *  waiting. */
static bool make_waiting(coll_ucg_background_t* made) {
    opal_mutex_lock(&background.lock);
    while (!opal_list_is_empty(&made->waiting)) {
        coll_ucg_deferred_t* next = (coll_ucg_deferred_t*)opal_list_get_first(&made->waiting);
        opal_list_item_t* item = &next->super.super.super.super;
        if (!coll_ucg_deferred_is_due(next, &again)) {
            opal_mutex_unlock(&background.lock);
            return false;
        }
        opal_list_remove_item(&made->waiting, item);
        opal_mutex_unlock(&background.lock);
        const bool begun = make_again(made, next);
        opal_mutex_lock(&background.lock);
        if (!begun) {
            opal_list_prepend(&made->waiting, item);
            opal_mutex_unlock(&background.lock);
            return false;
        }
        opal_list_append(&background.begun, item);
    }
    end(made);
    opal_mutex_unlock(&background.lock);
    discard(made);
    return true;
}

/** Keeps a blocking call in its place, and begins to make the group if it is not being made.
 *  UCG_INPROGRESS: the call need not wait. */
static ucg_status_t queue(coll_ucg_deferred_t* deferred) {
    mca_coll_ucg_module_t* module = deferred->module;
    opal_mutex_lock(&background.lock);
    const bool fresh = COLL_UCG_FRESH == module->state;
    const bool begun = fresh && begin(module);
    const bool waits = COLL_UCG_FORMING == module->state;
    if (waits) {
        opal_list_append(&module->background->waiting, &deferred->super.super.super.super);
    }
    module->lacks_call = module->lacks_call || (fresh && !begun);
    opal_mutex_unlock(&background.lock);
    if (begun) {
        start_making(module->background, true);
    }
    return waits ? UCG_OK : (fresh ? UCG_ERR_NO_MEMORY : UCG_INPROGRESS);
}

/** Takes a blocking call, whose function has come back from the progress, out of those that wait if
 *  it is the only one and its turn has come. *status_p: why libucg does not serve it;
 * UCG_INPROGRESS: the function is to be called again. */
static bool takes_out(coll_ucg_deferred_t* deferred, ucg_status_t* status_p) {
    opal_list_item_t* item = &deferred->super.super.super.super;
    opal_mutex_lock(&background.lock);
    coll_ucg_background_t* made = deferred->module->background;
    const bool first = NULL != made && made->decided && !made->driven &&
                       item == opal_list_get_first(&made->waiting);
    const bool alone = first && item == opal_list_get_last(&made->waiting);
    /* Else calls have come since, in callbacks: it is made before these, by the next progress. */
    deferred->is_due = first && !alone;
    if (alone) {
        opal_list_remove_item(&made->waiting, item);
        *status_p = COLL_UCG_OFF == made->settled ? error_of(made) : UCG_INPROGRESS;
        end(made);
    }
    opal_mutex_unlock(&background.lock);
    if (alone) {
        discard(made);
        stop_polling(); /* Not in the next progress: Open MPI would pass over a callback then. */
    }
    return alone;
}

ucg_status_t coll_ucg_wait_in_order(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                                    const coll_ucg_arguments_t* arguments, int* rc) {
    coll_ucg_deferred_t* deferred = coll_ucg_make_deferred(
        module, (enum coll_ucg_function)(function + COLL_UCG_FN_BLOCKING_COUNT), arguments);
    if (NULL == deferred) {
        coll_ucg_give_up_lacking(module, true);
        return UCG_ERR_NO_MEMORY;
    }
    ompi_request_t* request = &deferred->super.super;
    deferred->thread = &again;
    ucg_status_t status = queue(deferred);
    bool out = UCG_OK != status;
    while (!out && !REQUEST_COMPLETE(request)) {
        opal_progress();
        out = takes_out(deferred, &status);
    }
    if (!out) {
        *rc = request->req_status.MPI_ERROR;
        status = deferred->passed;
    }
    coll_ucg_drop_deferred(deferred);
    return status;
}

ucg_status_t coll_ucg_make_group_now(mca_coll_ucg_module_t* module) {
    opal_mutex_lock(&background.lock);
    const bool fresh = COLL_UCG_FRESH == module->state;
    const bool begun = fresh && begin(module);
    opal_mutex_unlock(&background.lock);
    if (fresh && !begun) {
        return UCG_ERR_NO_MEMORY;
    }
    if (begun) {
        start_making(module->background, true);
    }
    while (COLL_UCG_FORMING == module->state) {
        opal_progress();
    }
    return UCG_OK;
}

/* ------------------------------------------------------------------ progress */

/** Prepares another try after UCG_ERR_BUSY; false: there will be none. A process makes its shared
 *  memory with the group of one communicator at a time, and meanwhile no other group comes about.
 *  That ends soon, since all processes of that communicator have come. Groups that block one
 *  another in different processes get apart by chance: a try begins when its last process begins
 *  it. After some tries the calls are passed on. */
static bool tries_again(coll_ucg_background_t* making) {
    enum { TRIES_MAX = 24, EXPONENT_MAX = 10 };
    if (UCG_ERR_BUSY != making->status ||
        (TRIES_MAX <= making->tries && !coll_ucg_passes_none_on())) {
        return false;
    }
    const int exponent = making->tries < EXPONENT_MAX ? making->tries : EXPONENT_MAX;
    making->creation = NULL;
    making->tries += making->tries < TRIES_MAX ? 1 : 0;
    making->polls = (unsigned)rand_r(&making->chance) % (1U << exponent);
    making->status = UCG_INPROGRESS;
    return true;
}

/** The outcome of advancing one group. */
typedef enum coll_ucg_step {
    COLL_UCG_STEP_NONE,
    COLL_UCG_STEP_MADE, /**< It is made, or there will be none; a call waits again. */
    COLL_UCG_STEP_OVER  /**< No call waits any more, and its background is gone. */
} coll_ucg_step_t;

static coll_ucg_step_t go_on(coll_ucg_background_t* making) {
    ucg_group_h group = NULL;
    if (making->decided) {
        return make_waiting(making) ? COLL_UCG_STEP_OVER : COLL_UCG_STEP_NONE;
    }
    if (NULL != making->creation) {
        making->status = ucg_group_create_test(making->creation, &group);
    } else if (UCG_INPROGRESS == making->status && 0 == making->polls--) {
        start_making(making, making->attended);
    }
    if (tries_again(making) || UCG_INPROGRESS == making->status) {
        return COLL_UCG_STEP_NONE;
    }
    settle(making, group);
    opal_mutex_lock(&background.lock);
    making->decided = true;
    opal_mutex_unlock(&background.lock);
    return make_waiting(making) ? COLL_UCG_STEP_OVER : COLL_UCG_STEP_MADE;
}

/** Returns one that this round has not advanced yet and that no other thread advances now, or NULL.
 *  Guarded. */
static coll_ucg_background_t* next_of_round(unsigned round) {
    coll_ucg_background_t* making;
    OPAL_LIST_FOREACH(making, &background.all, coll_ucg_background_t) {
        /* Another thread's later round may have advanced it; rounds may wrap. */
        if (making->started && !making->driven && (int)(round - making->round) > 0) {
            making->driven = true;
            making->round = round;
            return making;
        }
    }
    return NULL;
}

/** Advances all, each by one thread at a time: a call that waits for one group may wait for another
 *  thread, and that for another group. */
static int go_on_with_all(void) {
    int events = 0;
    coll_ucg_background_t* making;
    opal_mutex_lock(&background.lock);
    const unsigned round = ++background.rounds;
    while (NULL != (making = next_of_round(round))) {
        opal_mutex_unlock(&background.lock);
        const coll_ucg_step_t step = go_on(making);
        events += COLL_UCG_STEP_NONE != step;
        opal_mutex_lock(&background.lock);
        if (COLL_UCG_STEP_OVER != step) {
            making->driven = false;
        }
    }
    opal_mutex_unlock(&background.lock);
    return events;
}

/** Guarded. */
static void find_ended(void) {
    coll_ucg_deferred_t* call;
    coll_ucg_deferred_t* next;
    OPAL_LIST_FOREACH_SAFE(call, next, &background.begun, coll_ucg_deferred_t) {
        if (coll_ucg_deferred_has_ended(call)) {
            opal_list_item_t* item = &call->super.super.super.super;
            opal_list_remove_item(&background.begun, item);
            opal_list_append(&background.ended, item);
        }
    }
}

/** Tells the program the ends of calls that have waited. Returns how many. Called without the lock,
 *  since completions call back; what these wait for may be another of the ends. */
static int end_complete(void) {
    coll_ucg_deferred_t* call;
    int events = 0;
    opal_mutex_lock(&background.lock);
    find_ended();
    while (NULL != (call = (coll_ucg_deferred_t*)opal_list_remove_first(&background.ended))) {
        opal_mutex_unlock(&background.lock);
        coll_ucg_end_deferred(call);
        events++;
        opal_mutex_lock(&background.lock);
    }
    opal_mutex_unlock(&background.lock);
    return events;
}

/** Called by opal_progress(). */
static int progress_background(void) {
    const int events = go_on_with_all() + end_complete();
    stop_polling();
    return events;
}

/* ------------------------------------------------------------------ life */

static void abandon(coll_ucg_background_t* made) {
    if (NULL != made->creation) {
        ucg_group_create_abandon(made->creation);
        made->creation = NULL;
    }
}

void coll_ucg_open_background(void) {
    OBJ_CONSTRUCT(&background.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&background.all, opal_list_t);
    OBJ_CONSTRUCT(&background.begun, opal_list_t);
    OBJ_CONSTRUCT(&background.ended, opal_list_t);
    background.polled = false;
    background.rounds = 0;
}

void coll_ucg_close_background(void) {
    coll_ucg_background_t* left;
    if (background.polled) {
        (void)opal_progress_unregister(progress_background);
    }
    OPAL_LIST_FOREACH(left, &background.all, coll_ucg_background_t) {
        abandon(left);
    }
    OBJ_DESTRUCT(&background.ended);
    OBJ_DESTRUCT(&background.begun);
    OBJ_DESTRUCT(&background.all);
    OBJ_DESTRUCT(&background.lock);
}

void coll_ucg_abandon_background(mca_coll_ucg_module_t* module) {
    coll_ucg_background_t* made = module->background;
    if (NULL == made) {
        return;
    }
    opal_mutex_lock(&background.lock);
    made->settled = COLL_UCG_OFF;
    end(made);
    opal_mutex_unlock(&background.lock);
    abandon(made);
    /* Calls that wait never complete, and an exchange in progress may still write to its buffers,
       so both stay. */
}
