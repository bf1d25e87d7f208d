/*
 * Requests of nonblocking and persistent collectives: Open MPI's kind, each with a call of its own.
 *
 * They come from a free list and keep their memory, so that a program that has started its most
 * requests at once allocates nothing more. A nonblocking call belongs to its communicator's group.
 * A persistent one has a group of its own, since ranks may start their requests in different
 * orders, and collectives of one group must be started in one (coll_ucg_pool.h).
 */
#ifndef MCA_COLL_UCG_REQUEST_H
#define MCA_COLL_UCG_REQUEST_H

#include "coll_ucg_call.h"
#include "coll_ucg_pool.h"
#include "ompi/mca/coll/base/coll_base_util.h"

/** coll_ucg_restart.h */
typedef struct coll_ucg_restartable coll_ucg_restartable_t;

/** Vectors of the other side of an inter-communicator, of which this process combines some
 *  elements. */
typedef struct {
    ompi_op_t* op; /**< NULL: nothing is combined. */
    ompi_datatype_t* type;
    void* vectors;
    int count;               /**< Of vectors, */
    ptrdiff_t stride;        /**< which lie so many bytes apart. */
    coll_ucg_count_t begin;  /**< The first that this process combines, */
    coll_ucg_count_t length; /**< and how many. */
    void* target;
} coll_ucg_combination_t;

/** In their order. */
ucg_status_t coll_ucg_combine(const coll_ucg_combination_t* combination);

typedef struct coll_ucg_request {
    ompi_coll_base_nbc_request_t super; /**< MPI's bindings cast every request of a collective. */
    coll_ucg_call_t call;
    coll_ucg_workspace_t workspace;
    coll_ucg_combination_t combination;  /**< At the end of the call. */
    struct coll_ucg_request* next;       /**< Of those that nobody holds. */
    ucg_coll_h coll;                     /**< NULL: there is nothing to do, or not its own. */
    coll_ucg_restartable_t* restartable; /**< That has it; NULL: it comes from the free list. */
    /* Of a persistent one: */
    bool plain;  /**< There is something to do, and nothing is packed for it. */
    bool intact; /**< No start has failed. */
    coll_ucg_pooled_t* group;
    opal_list_item_t link; /**< In the component's `persistent`. */
} coll_ucg_request_t;

OBJ_CLASS_DECLARATION(coll_ucg_request_t);

/** The function of requests by which MPI cancels, which it calls erroneous for collectives. */
int coll_ucg_refuse_to_cancel(ompi_request_t* request, int flag);

/** With the component. */
void coll_ucg_open_requests(void);
void coll_ucg_close_requests(void);

/**
 * How nonblocking functions begin. UCG_OK: a request whose call has begun. UCG_INPROGRESS: the
 * group is being made, and the call waits for it (coll_ucg_background.h). UCG_ERR_UNSUPPORTED: call
 * the previous module.
 */
ucg_status_t coll_ucg_enter_nonblocking(mca_coll_ucg_module_t* module,
                                        coll_ucg_request_t** request_p);

/** The same of a call of that group, which there is. */
ucg_status_t coll_ucg_begin_nonblocking(mca_coll_ucg_module_t* module, ucg_group_h group,
                                        coll_ucg_request_t** request_p);

/** How they go on: starts the call, which has been opened with that status. */
ucg_status_t coll_ucg_start_call(coll_ucg_request_t* request, ucg_status_t opened,
                                 ompi_request_t** request_p);

/** The request of a call that is started again and again, with a collective that it does not free:
 *  its place is `known`. NULL: no memory. */
coll_ucg_request_t* coll_ucg_make_restarting(mca_coll_ucg_module_t* module,
                                             coll_ucg_restartable_t* known);
/** Of a collective in progress. The program gets the request, if it has not ended in the end. */
ucg_status_t coll_ucg_leave_restarted(coll_ucg_restartable_t* known, ompi_request_t** request_p);
/** Gives the request up; one that the program has never given back stays its own. */
void coll_ucg_end_restarting(coll_ucg_request_t* request);

/** The same for persistent functions. MPI lets them block, as this one does now and then to get the
 *  request its group. */
ucg_status_t coll_ucg_enter_persistent(mca_coll_ucg_module_t* module,
                                       coll_ucg_request_t** request_p);

/** Prepares the call, which has been opened with that status, for MPI_Start. */
ucg_status_t coll_ucg_keep_call(coll_ucg_request_t* request, ucg_status_t opened,
                                ompi_request_t** request_p);

#endif
