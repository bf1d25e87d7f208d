/*
 * Requests of nonblocking and persistent collectives: of Open MPI's kind, each with a call of its
 * own.
 *
 * They come from a free list and keep their memory, as far as it is not too much in all, so that a
 * program allocates nothing more once it has had the most requests in progress at a time. A
 * nonblocking call belongs to its communicator's group. A persistent one has a group of its own,
 * since ranks may start their requests in different orders, and collectives of one group must be
 * started in one order (coll_ucg_pool.h).
 */
#ifndef MCA_COLL_UCG_REQUEST_H
#define MCA_COLL_UCG_REQUEST_H

#include "coll_ucg_call.h"
#include "coll_ucg_pool.h"
#include "ompi/mca/coll/base/coll_base_util.h"

/** Defined in coll_ucg_restart.h. */
typedef struct coll_ucg_restartable coll_ucg_restartable_t;

/** Vectors of the other side of an inter-communicator, some elements of which this process
 *  combines. */
typedef struct {
    ompi_op_t* op; /**< NULL: nothing is combined. */
    ompi_datatype_t* type;
    void* vectors;
    int count;               /**< Number of vectors, */
    ptrdiff_t stride;        /**< which lie so many bytes apart. */
    coll_ucg_count_t begin;  /**< First element that this process combines, */
    coll_ucg_count_t length; /**< and the number of elements. */
    void* target;
} coll_ucg_combination_t;

/** Combines the vectors in their order. */
ucg_status_t coll_ucg_combine(const coll_ucg_combination_t* combination);

typedef struct coll_ucg_request {
    ompi_coll_base_nbc_request_t super; /**< MPI's bindings cast every request of a collective. */
    coll_ucg_call_t call; /**< Uses its own workspace, which lasts from call to call. */
    coll_ucg_combination_t combination;  /**< Done at the end of the call. */
    struct coll_ucg_request* next;       /**< The next request of the free list. */
    ucg_coll_h coll;                     /**< NULL: nothing to do, or owned by `restartable`. */
    coll_ucg_restartable_t* restartable; /**< Its owner; NULL: it is of the free list. */
    /* Of a persistent request: */
    bool plain;  /**< There is something to do, and nothing is packed for it. */
    bool intact; /**< No start has failed. */
    coll_ucg_pooled_t* group;
    opal_list_item_t link; /**< In the list of persistent requests. */
} coll_ucg_request_t;

OBJ_CLASS_DECLARATION(coll_ucg_request_t);

/** The cancel function of requests. MPI says that it is erroneous to cancel collectives. */
int coll_ucg_refuse_to_cancel(ompi_request_t* request, int flag);

/** To be called when the component is opened and closed. */
void coll_ucg_open_requests(void);
void coll_ucg_close_requests(void);

/**
 * Begins a nonblocking function. UCG_OK: *request_p is a request whose call has begun.
 * UCG_INPROGRESS: the group is being made, and the call waits for it (coll_ucg_background.h).
 * UCG_ERR_UNSUPPORTED: call the previous module.
 */
ucg_status_t coll_ucg_enter_nonblocking(mca_coll_ucg_module_t* module,
                                        coll_ucg_request_t** request_p);

/** Begins a nonblocking call of a group that exists: *request_p is a request whose call has
 *  begun. */
ucg_status_t coll_ucg_begin_nonblocking(mca_coll_ucg_module_t* module, ucg_group_h group,
                                        coll_ucg_request_t** request_p);

/** Tells libucg that the call is a nonblocking one, on all ranks. One of a blocking function that
 * has waited is not, since other ranks may call that function when there is a group. */
void coll_ucg_mark_nonblocking(coll_ucg_request_t* request);

/** Starts the request's call, which has been opened with the status `opened`. */
ucg_status_t coll_ucg_start_call(coll_ucg_request_t* request, ucg_status_t opened,
                                 ompi_request_t** request_p);

/** Makes the request of a call that is started again and again, with a collective that the request
 *  does not free; `known` owns both. NULL: no memory. */
coll_ucg_request_t* coll_ucg_make_restarting(mca_coll_ucg_module_t* module,
                                             coll_ucg_restartable_t* known);
/** Goes on with a collective that has been started again and is in progress. The program gets the
 *  request, unless the collective has ended by then. */
ucg_status_t coll_ucg_leave_restarted(coll_ucg_restartable_t* known, ompi_request_t** request_p);
/** Gives the request up. One that the program has never given back is left to the program. */
void coll_ucg_end_restarting(coll_ucg_request_t* request);

/** Begins a persistent function. MPI lets these block, as this one does now and then to get the
 *  request its group. */
ucg_status_t coll_ucg_enter_persistent(mca_coll_ucg_module_t* module,
                                       coll_ucg_request_t** request_p);

/** Prepares the request's call, which has been opened with the status `opened`, for MPI_Start. */
ucg_status_t coll_ucg_keep_call(coll_ucg_request_t* request, ucg_status_t opened,
                                ompi_request_t** request_p);

#endif
