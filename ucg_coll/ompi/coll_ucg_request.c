/*
 * The life of a request: from the free list through its starts and completions back to it.
 */
#include "coll_ucg_request.h"

#include "coll_ucg_background.h"
#include "coll_ucg_restart.h"
#include "ompi/errhandler/errcode-internal.h"
#include "ompi/request/request.h"

/** All requests of this process. Open MPI's own free list needs instructions that the processors of
 *  a distribution may lack (a compare-and-swap of 16 bytes). */
static struct {
    opal_mutex_t lock; /**< Guards the lists of requests that nobody uses: */
    coll_ucg_request_t* spare;
    coll_ucg_request_t* bare;     /**< Those whose memory was freed since the others keep enough. */
    volatile int32_t outstanding; /**< Requests posted whose ends are not told yet. */
    /* Hints, see looks_for_end(): */
    volatile int32_t patience;   /**< Number of looks that the next start is worth. */
    volatile uint32_t impatient; /**< Number of starts that did not see their end. */
    opal_list_t persistent;      /**< Persistent requests. Guarded by the component's lock, like: */
    atomic_bool polled;          /**< Open MPI's progress polls. Read without the lock. */
} requests;

/* ------------------------------------------------------------------ class */

static void request_construct(coll_ucg_request_t* request) {
    request->super.super.req_type = OMPI_REQUEST_COLL;
    request->call.own = (coll_ucg_workspace_t){0};
    request->coll = NULL;
    request->restartable = NULL;
    request->group = NULL;
    OBJ_CONSTRUCT(&request->link, opal_list_item_t);
}

static void request_destruct(coll_ucg_request_t* request) {
    coll_ucg_workspace_free(&request->call.own);
    OBJ_DESTRUCT(&request->link);
}

OBJ_CLASS_INSTANCE(coll_ucg_request_t, ompi_coll_base_nbc_request_t, request_construct,
                   request_destruct);

static coll_ucg_request_t* take_request(mca_coll_ucg_module_t* module) {
    OPAL_THREAD_LOCK(&requests.lock);
    coll_ucg_request_t* request = requests.spare;
    if (OPAL_LIKELY(NULL != request)) {
        requests.spare = request->next;
    } else if (NULL != (request = requests.bare)) {
        requests.bare = request->next;
    }
    OPAL_THREAD_UNLOCK(&requests.lock);
    if (OPAL_UNLIKELY(NULL == request)) {
        request = OBJ_NEW(coll_ucg_request_t);
    }
    if (OPAL_LIKELY(NULL != request)) {
        request->super.super.req_mpi_object.comm = module->comm;
        request->super.super.req_status = ompi_status_empty;
        request->combination.op = NULL;
    }
    return request;
}

static void give_back(coll_ucg_request_t* request) {
    if (NULL != request->restartable) {
        atomic_store_explicit(&request->restartable->out, false, memory_order_release);
        return;
    }
    const bool keeps = coll_ucg_trim(&request->call.own);
    OPAL_THREAD_LOCK(&requests.lock);
    coll_ucg_request_t** const list = OPAL_LIKELY(keeps) ? &requests.spare : &requests.bare;
    request->next = *list;
    *list = request;
    OPAL_THREAD_UNLOCK(&requests.lock);
}

/* ------------------------------------------------------------------ ends */

static void free_coll(coll_ucg_request_t* request) {
    if (NULL != request->coll) {
        ucg_coll_free(request->coll);
        request->coll = NULL;
    }
}

/** Ends a call: its result goes to the program, its status to the request. Returns that status. */
static ucg_status_t settle(coll_ucg_request_t* request, ucg_status_t status) {
    ompi_request_t* super = &request->super.super;
    if (OPAL_LIKELY(UCG_OK == status) && !request->call.empty) {
        status = coll_ucg_store(&request->call);
    }
    if (OPAL_UNLIKELY(NULL != request->combination.op)) {
        status = UCG_OK == status ? coll_ucg_combine(&request->combination) : status;
    }
    super->req_status.MPI_ERROR = OPAL_LIKELY(UCG_OK == status)
                                      ? MPI_SUCCESS
                                      : ompi_errcode_get_mpi_code(coll_ucg_error(status));
    if (!super->req_persistent) {
        free_coll(request);
    } else if (OPAL_UNLIKELY(UCG_OK != status)) {
        request->intact = false;
    }
    return status;
}

/* ------------------------------------------------------------------ progress */

enum { COMPLETIONS_AT_ONCE = 16 };

/** Ends of requests that libucg has told of. */
typedef struct coll_ucg_ends {
    ucg_completion_t of[COMPLETIONS_AT_ONCE];
    unsigned next; /**< The first that the program has not been told of. */
    unsigned count;
} coll_ucg_ends_t;

/** Is this thread asking libucg for ends? */
static _Thread_local bool polling __attribute__((tls_model("initial-exec")));
/** The ends that this thread is telling the program. Their callbacks may start collectives and wait
 *  for them. */
static _Thread_local coll_ucg_ends_t* telling __attribute__((tls_model("initial-exec")));

static int progress_requests(void);

static void start_polling(void) {
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    if (!atomic_load(&requests.polled)) {
        atomic_store(&requests.polled, true);
        (void)opal_progress_register(progress_requests);
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

/** Ends polling, unless a request has been started since: a thread that starts one counts it in
 *  `outstanding` before it looks at `polled`. */
static void stop_polling(void) {
    if (0 != opal_mutex_trylock(&mca_coll_ucg_component.lock)) {
        return;
    }
    if (atomic_load(&requests.polled)) {
        atomic_store(&requests.polled, false);
        atomic_thread_fence(memory_order_seq_cst);
        if (0 == requests.outstanding) {
            (void)opal_progress_unregister(progress_requests);
        } else {
            atomic_store(&requests.polled, true);
        }
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

static int tell(coll_ucg_ends_t* ends) {
    int count = 0;
    while (ends->next < ends->count) {
        const ucg_completion_t* end = &ends->of[ends->next++];
        coll_ucg_request_t* request = end->user_data;
        (void)settle(request, end->status);
        (void)ompi_request_complete(&request->super.super, true);
        (void)OPAL_THREAD_ADD_FETCH32(&requests.outstanding, -1);
        count++;
    }
    return count;
}

/** Called by opal_progress(), also when libucg calls that while a blocking call waits: a peer may
 *  wait for the end of a request, since Open MPI chains collectives to one another. A callback,
 *  too, may wait for an end that came together with the one that calls it. */
static int progress_requests(void) {
    if (polling) {
        return 0;
    }
    coll_ucg_ends_t* const outer = telling;
    const int left = NULL == outer ? 0 : tell(outer);
    if (OPAL_UNLIKELY(0 == requests.outstanding)) {
        stop_polling();
        return left;
    }
    coll_ucg_ends_t ends;
    ends.next = 0;
    polling = true; /* Operators of the program run here. */
    ends.count = ucg_context_poll(mca_coll_ucg_component.context, ends.of, COMPLETIONS_AT_ONCE);
    polling = false;
    telling = &ends;
    const int told = tell(&ends);
    telling = outer;
    return left + told;
}

/** The most looks for the end of a start, which take some 3 us, and after how many starts that did
 *  not see their end as many are tried again. */
enum { PATIENCE_MAX = 256, STARTS_TO_FORGET = 32 };

/**
 * Returns how often a start should look for its end. Most short collectives of ranks in step end
 * within some looks, and then MPI_Wait need not look at everything else that Open MPI has, which
 * takes longer than the collective. Where peers are late, or calls long, starts learn not to wait.
 * A program with other requests outstanding is not in a hurry.
 */
static unsigned looks_for_end(void) {
    return 1 == requests.outstanding && NULL == telling ? (unsigned)requests.patience : 0;
}

/** Learns from a start that has looked `looks` times. */
static void learn_patience(ucg_status_t status, unsigned looks) {
    if (OPAL_LIKELY(0 == looks)) {
        return;
    }
    if (UCG_INPROGRESS != status) {
        requests.patience = PATIENCE_MAX;
        return;
    }
    requests.patience = looks > 1 ? (int32_t)looks / 2 : 1;
    if (0 == ++requests.impatient % STARTS_TO_FORGET) {
        requests.patience = PATIENCE_MAX;
    }
}

/** Counts a request that is posted now, before another thread may find its end. Returns how many
 *  looks for the end it is worth. */
static unsigned begin_post(void) {
    (void)OPAL_THREAD_ADD_FETCH32(&requests.outstanding, 1);
    return looks_for_end();
}

/** Goes on after a post. UCG_INPROGRESS: progress_requests() goes on with the request, or has ended
 *  it. */
static ucg_status_t end_post(ucg_status_t status, unsigned looks) {
    learn_patience(status, looks);
    if (OPAL_LIKELY(UCG_INPROGRESS != status)) {
        (void)OPAL_THREAD_ADD_FETCH32(&requests.outstanding, -1);
        return status;
    }
    if (OPAL_UNLIKELY(opal_using_threads())) { /* Pairs with the one of stop_polling(). */
        atomic_thread_fence(memory_order_seq_cst);
    }
    if (OPAL_UNLIKELY(!atomic_load(&requests.polled))) {
        start_polling();
    }
    return status;
}

/** Posts a call that repeats none. */
static ucg_status_t post_call(coll_ucg_request_t* request) {
    unsigned looks = begin_post();
    const ucg_status_t status = ucg_coll_run_or_post(request->call.group, &request->call.params,
                                                     &looks, request, &request->coll);
    return end_post(status, looks);
}

/** Posts a prepared collective that has been started. */
static ucg_status_t post_started(coll_ucg_request_t* request, ucg_coll_h coll) {
    unsigned looks = begin_post();
    const ucg_status_t status = ucg_coll_post_started(coll, &looks, request);
    return end_post(status, looks);
}

/* ------------------------------------------------------------------ functions of requests */

int coll_ucg_refuse_to_cancel(ompi_request_t* request, int flag) {
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST;
}

/** Frees the request after MPI_Wait and its like; MPI says that it is erroneous to free one in
 *  progress. */
static int free_nonblocking(ompi_request_t** request_p) {
    ompi_request_t* super = *request_p;
    ompi_communicator_t* comm = super->req_mpi_object.comm;
    if (!REQUEST_COMPLETE(super)) {
        return MPI_ERR_REQUEST;
    }
    coll_ucg_free_attached(super);
    OMPI_REQUEST_FINI(super);
    *request_p = MPI_REQUEST_NULL;
    give_back((coll_ucg_request_t*)super);
    OBJ_RELEASE(comm);
    return OMPI_SUCCESS;
}

/* ------------------------------------------------------------------ nonblocking calls */

/** Counts a call and passes it on: the groups of an inter-communicator are not made in the
 *  background. */
static ucg_status_t pass_on(mca_coll_ucg_module_t* module) {
    coll_ucg_count_call(module);
    return UCG_ERR_UNSUPPORTED;
}

ucg_status_t coll_ucg_enter_nonblocking(mca_coll_ucg_module_t* module,
                                        coll_ucg_request_t** request_p) {
    ucg_status_t status = UCG_OK;
    if (OPAL_UNLIKELY(COLL_UCG_READY != module->state)) {
        status = OMPI_COMM_IS_INTRA(module->comm) ? coll_ucg_enter_early(module) : pass_on(module);
    }
    return OPAL_LIKELY(UCG_OK == status)
               ? coll_ucg_begin_nonblocking(module, module->group, request_p)
               : status;
}

ucg_status_t coll_ucg_begin_nonblocking(mca_coll_ucg_module_t* module, ucg_group_h group,
                                        coll_ucg_request_t** request_p) {
    coll_ucg_request_t* request = take_request(module);
    if (OPAL_UNLIKELY(NULL == request)) {
        return UCG_ERR_NO_MEMORY;
    }
    coll_ucg_begin(&request->call, module, group, &request->call.own);
    *request_p = request;
    return UCG_OK;
}

static void activate(coll_ucg_request_t* request) {
    ompi_request_t* super = &request->super.super;
    OMPI_REQUEST_INIT(super, false);
    super->req_state = OMPI_REQUEST_ACTIVE;
    super->req_free = free_nonblocking;
    super->req_cancel = coll_ucg_refuse_to_cancel;
    coll_ucg_retain_comm(super->req_mpi_object.comm);
}

/** Ends a request that is complete: nothing is left to wait for, or the call failed. */
static ucg_status_t end_at_once(coll_ucg_request_t* request, ucg_status_t status,
                                ompi_request_t** request_p) {
    ompi_request_t* super = &request->super.super;
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = settle(request, UCG_OK);
        if (OPAL_UNLIKELY(UCG_OK == status && coll_ucg_takes_arrays(&request->call))) {
            activate(request);
            super->req_complete = REQUEST_COMPLETED;
            *request_p = super;
            return UCG_OK;
        }
        *request_p = &ompi_request_empty;
    }
    give_back(request);
    return status;
}

/** Returns to the program the request of a call that was started with `status`. */
static ucg_status_t hand_out(coll_ucg_request_t* request, ucg_status_t status,
                             ompi_request_t** request_p) {
    ompi_request_t* super = &request->super.super;
    if (UCG_INPROGRESS == status) {
        *request_p = super;
        return UCG_OK;
    }
    OBJ_RELEASE(super->req_mpi_object.comm);
    (void)coll_ucg_serve_host();
    return end_at_once(request, status, request_p);
}

void coll_ucg_mark_nonblocking(coll_ucg_request_t* request) {
    if (OPAL_LIKELY(!coll_ucg_is_making_blocking())) {
        request->call.params.flags |= UCG_COLL_FLAG_NONBLOCKING;
    }
}

ucg_status_t coll_ucg_start_call(coll_ucg_request_t* request, ucg_status_t opened,
                                 ompi_request_t** request_p) {
    if (OPAL_UNLIKELY(UCG_OK != opened || request->call.empty)) {
        return end_at_once(request, opened, request_p);
    }
    activate(request);
    coll_ucg_mark_nonblocking(request);
    ucg_status_t status = coll_ucg_load(&request->call);
    if (OPAL_LIKELY(UCG_OK == status)) {
        status = post_call(request);
    }
    return hand_out(request, status, request_p);
}

coll_ucg_request_t* coll_ucg_make_restarting(mca_coll_ucg_module_t* module,
                                             coll_ucg_restartable_t* known) {
    coll_ucg_request_t* request = take_request(module);
    if (NULL != request) {
        coll_ucg_begin(&request->call, module, module->group, &request->call.own);
        request->restartable = known;
    }
    return request;
}

ucg_status_t coll_ucg_leave_restarted(coll_ucg_restartable_t* known, ompi_request_t** request_p) {
    coll_ucg_request_t* request = known->request;
    atomic_store_explicit(&known->out, true, memory_order_relaxed);
    activate(request);
    return hand_out(request, post_started(request, known->latest.coll), request_p);
}

void coll_ucg_end_restarting(coll_ucg_request_t* request) {
    if (!atomic_load_explicit(&request->restartable->out, memory_order_acquire)) {
        request->restartable = NULL;
        give_back(request);
    }
}

/* ------------------------------------------------------------------ persistent calls */

/** Calls `visit` for each object of the program that the call needs as long as the request exists,
 *  and that the program may free before. */
static void for_each_object(coll_ucg_request_t* request, void (*visit)(opal_object_t* object)) {
    coll_ucg_data_t* sides[] = {&request->call.input, &request->call.output};
    ompi_op_t* op = request->call.reduction.op;
    for (int side = 0; side < 2; side++) {
        ompi_datatype_t* type = (ompi_datatype_t*)sides[side]->type;
        if (NULL != type && !ompi_datatype_is_predefined(type)) {
            visit(&type->super.super);
        }
        for (int i = 0; NULL != sides[side]->types && i < sides[side]->size; i++) {
            if (!ompi_datatype_is_predefined(sides[side]->types[i])) {
                visit(&sides[side]->types[i]->super.super);
            }
        }
    }
    if (NULL != op && !ompi_op_is_intrinsic(op)) {
        visit(&op->super);
    }
}

static void retain(opal_object_t* object) {
    OBJ_RETAIN(object);
}

static void release(opal_object_t* object) {
    OBJ_RELEASE(object);
}

static void leave_group(coll_ucg_request_t* request) {
    free_coll(request);
    coll_ucg_return_group(request->group, request->intact);
    request->group = NULL;
}

/** Starts a request whose data is packed, or that has nothing to do. */
static ucg_status_t start_packed(coll_ucg_request_t* request) {
    if (NULL == request->coll) {
        return UCG_OK;
    }
    const ucg_status_t status = coll_ucg_load(&request->call);
    if (UCG_OK != status) {
        ucg_group_fail(request->call.group);
    }
    return UCG_OK == status ? ucg_coll_start(request->coll) : status;
}

/** Goes on with a request that was started with `status`. A failure shows when the program waits
 *  for the request, like one that occurs later. */
static COLL_UCG_APART void go_on(coll_ucg_request_t* request, ucg_status_t status) {
    ompi_request_t* super = &request->super.super;
    super->req_complete = REQUEST_PENDING;
    if (UCG_INPROGRESS == status) {
        status = post_started(request, request->coll);
    }
    if (UCG_INPROGRESS != status) {
        (void)settle(request, status);
        (void)ompi_request_complete(super, false);
    }
}

/** Starts an inactive request. */
static void start_again(coll_ucg_request_t* request) {
    ompi_request_t* super = &request->super.super;
    super->req_state = OMPI_REQUEST_ACTIVE;
    const ucg_status_t status =
        OPAL_LIKELY(request->plain) ? ucg_coll_start(request->coll) : start_packed(request);
    if (OPAL_LIKELY(UCG_OK == status && request->plain && NULL == super->req_complete_cb)) {
        super->req_status.MPI_ERROR = MPI_SUCCESS;
        super->req_complete = REQUEST_COMPLETED;
    } else {
        go_on(request, status);
    }
    (void)coll_ucg_serve_host();
}

static int start_persistent(size_t count, ompi_request_t** started) {
    for (size_t i = 0; i < count; i++) {
        if (OPAL_UNLIKELY(OMPI_REQUEST_INACTIVE != started[i]->req_state)) {
            return MPI_ERR_REQUEST; /* MPI_Start of Open MPI 4.1 does not look. */
        }
        start_again((coll_ucg_request_t*)started[i]);
    }
    return OMPI_SUCCESS;
}

static int free_persistent(ompi_request_t** request_p) {
    coll_ucg_request_t* request = (coll_ucg_request_t*)*request_p;
    ompi_request_t* super = *request_p;
    ompi_communicator_t* comm = super->req_mpi_object.comm;
    if (!REQUEST_COMPLETE(super)) {
        return MPI_ERR_REQUEST;
    }
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    opal_list_remove_item(&requests.persistent, &request->link);
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    leave_group(request);
    coll_ucg_free_attached(super);
    OMPI_REQUEST_FINI(super);
    *request_p = MPI_REQUEST_NULL;
    for_each_object(request, release);
    give_back(request);
    OBJ_RELEASE(comm);
    return OMPI_SUCCESS;
}

ucg_status_t coll_ucg_enter_persistent(mca_coll_ucg_module_t* module,
                                       coll_ucg_request_t** request_p) {
    coll_ucg_pooled_t* group = NULL;
    const ucg_status_t status = coll_ucg_take_group(module, &group);
    if (UCG_OK != status) {
        return status;
    }
    coll_ucg_request_t* request = take_request(module);
    if (NULL == request) {
        ucg_group_fail(coll_ucg_pooled_group(group));
        coll_ucg_return_group(group, false);
        return UCG_ERR_NO_MEMORY;
    }
    request->group = group;
    request->intact = true;
    coll_ucg_begin(&request->call, module, coll_ucg_pooled_group(group), &request->call.own);
    *request_p = request;
    return UCG_OK;
}

static void enlist(coll_ucg_request_t* request) {
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    opal_list_append(&requests.persistent, &request->link);
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

ucg_status_t coll_ucg_keep_call(coll_ucg_request_t* request, ucg_status_t opened,
                                ompi_request_t** request_p) {
    ompi_request_t* super = &request->super.super;
    ucg_status_t status = opened;
    if (UCG_OK == status && !request->call.empty) {
        request->call.params.flags |= UCG_COLL_FLAG_NONBLOCKING;
        status = ucg_coll_agree(request->call.group, &request->call.params);
        request->intact = UCG_OK == status;
    }
    if (UCG_OK == status && !request->call.empty) {
        status = ucg_coll_init(request->call.group, &request->call.params, &request->coll);
    }
    if (UCG_OK != status) {
        if (UCG_ERR_UNSUPPORTED != status) { /* Others may have the request. */
            ucg_group_fail(request->call.group);
            request->intact = false;
        }
        leave_group(request);
        give_back(request);
        return status;
    }
    request->plain =
        NULL != request->coll && request->call.input.direct && request->call.output.direct;
    OMPI_REQUEST_INIT(super, true);
    super->req_start = start_persistent;
    super->req_free = free_persistent;
    super->req_cancel = coll_ucg_refuse_to_cancel;
    for_each_object(request, retain);
    coll_ucg_retain_comm(super->req_mpi_object.comm);
    enlist(request);
    *request_p = super;
    return UCG_OK;
}

/* ------------------------------------------------------------------ life */

void coll_ucg_open_requests(void) {
    OBJ_CONSTRUCT(&requests.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&requests.persistent, opal_list_t);
    requests.spare = NULL;
    requests.bare = NULL;
    requests.outstanding = 0;
    requests.patience = PATIENCE_MAX;
    atomic_store(&requests.polled, false);
}

/** Frees what requests hold. Programs may forget persistent requests: their groups must go before
 *  the context does. */
void coll_ucg_close_requests(void) {
    opal_list_item_t* item;
    if (atomic_load(&requests.polled)) {
        (void)opal_progress_unregister(progress_requests);
    }
    while (NULL != (item = opal_list_remove_first(&requests.persistent))) {
        coll_ucg_request_t* request =
            (coll_ucg_request_t*)((char*)item - offsetof(coll_ucg_request_t, link));
        if (REQUEST_COMPLETE(&request->super.super)) {
            leave_group(request);
        }
    }
    OBJ_DESTRUCT(&requests.persistent);
    coll_ucg_request_t** const lists[] = {&requests.spare, &requests.bare};
    for (int i = 0; i < 2; i++) {
        while (NULL != *lists[i]) {
            coll_ucg_request_t* request = *lists[i];
            *lists[i] = request->next;
            OBJ_RELEASE(request);
        }
    }
    OBJ_DESTRUCT(&requests.lock);
}
