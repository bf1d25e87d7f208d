/*
 * The arguments of a collective function, whichever it is. MPI's entries fill this structure once;
 * everything behind them passes it on, down to the module that was there before.
 */
#ifndef MCA_COLL_UCG_ARGUMENTS_H
#define MCA_COLL_UCG_ARGUMENTS_H

#include "coll_ucg.h"

/** Fields that a function has no argument for are 0. Where it has one buffer, one count and one
 *  datatype they are those of what is received. The communicator is the module's. */
typedef struct {
    const void* sbuf;
    void* rbuf;
    coll_ucg_count_t scount;
    coll_ucg_count_t rcount;
    coll_ucg_counts_t scounts;
    coll_ucg_counts_t rcounts;
    coll_ucg_either_t sdispls;
    coll_ucg_either_t rdispls;
    struct ompi_datatype_t* sdtype;
    struct ompi_datatype_t* rdtype;
    struct ompi_datatype_t* const* sdtypes;
    struct ompi_datatype_t* const* rdtypes;
    struct ompi_op_t* op;
    int root;
    struct ompi_info_t* info;
    ompi_request_t** request;
} coll_ucg_arguments_t;

/* Initialisers from the parameters of MPI's entries: buffers with equal blocks, with blocks of
   sizes of their own, and with such blocks of types of their own. */
#define COLL_UCG_SENT .sbuf = sbuf, .scount = scount, .sdtype = sdtype
#define COLL_UCG_SENT_BLOCKS .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .sdtype = sdtype
#define COLL_UCG_SENT_TYPES .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .sdtypes = sdtypes
#define COLL_UCG_RECEIVED .rbuf = rbuf, .rcount = rcount, .rdtype = rdtype
#define COLL_UCG_RECEIVED_BLOCKS                                                                   \
    .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .rdtype = rdtype
#define COLL_UCG_RECEIVED_TYPES                                                                    \
    .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .rdtypes = rdtypes
#define COLL_UCG_REDUCED .sbuf = sbuf, .rbuf = rbuf, .rcount = count, .rdtype = dtype, .op = op

/** Passes a call on to the module that was there before, and counts it. Returns what that
 *  returns. */
int coll_ucg_pass_on(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                     const coll_ucg_arguments_t* arguments);

/** Ends a call that libucg has served with `status`, and counts it. UCG_ERR_UNSUPPORTED: it has
 *  not, so the call is passed on. Returns what the collective function is to return. */
int coll_ucg_leave(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                   ucg_status_t status, const coll_ucg_arguments_t* arguments);

#endif
