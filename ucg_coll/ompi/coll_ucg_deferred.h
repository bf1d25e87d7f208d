/*
 * Nonblocking calls that are made while the group of their communicator is being made: they wait,
 * and when it is known by what they go, the functions are called again, in the program's order.
 */
#ifndef MCA_COLL_UCG_DEFERRED_H
#define MCA_COLL_UCG_DEFERRED_H

#include "coll_ucg.h"
#include "ompi/mca/coll/base/coll_base_util.h"

/** The arguments of any nonblocking collective function, by the names that they have there. A call
 *  that waits has copies of vectors. By MPI these stay as they are until the call is complete; but
 *  Fortran's bindings make arrays of datatypes for the time of the call, and programs (FEniCSx)
 *  give their counts up when it has returned: Open MPI's own component reads them only there. */
typedef struct {
    const void* sbuf;
    void* rbuf;
    void* buffer;
    coll_ucg_count_t scount;
    coll_ucg_count_t rcount;
    coll_ucg_count_t count;
    coll_ucg_counts_t scounts;
    coll_ucg_counts_t rcounts;
    coll_ucg_either_t sdispls;
    coll_ucg_either_t rdispls;
    coll_ucg_displs_t displs;
    struct ompi_datatype_t* sdtype;
    struct ompi_datatype_t* rdtype;
    struct ompi_datatype_t* dtype;
    struct ompi_datatype_t* const* sdtypes;
    struct ompi_datatype_t* const* rdtypes;
    struct ompi_op_t* op;
    int root;
    struct ompi_communicator_t* comm;
    ompi_request_t** request;
} coll_ucg_arguments_t;

typedef struct {
    /** What the program waits for. MPI's bindings keep the datatypes and the operator of the call
     *  with it, until it is complete. */
    ompi_coll_base_nbc_request_t super;
    mca_coll_ucg_module_t* module;
    enum coll_ucg_function function;
    coll_ucg_arguments_t arguments;
    void* vectors;         /**< Those that the arguments point at, or NULL. */
    ompi_request_t* inner; /**< That of the call, once it has been made. */
} coll_ucg_deferred_t;

OBJ_CLASS_DECLARATION(coll_ucg_deferred_t);

/** A call, with the request that the program gets for it. NULL: no memory. */
coll_ucg_deferred_t* coll_ucg_make_deferred(mca_coll_ucg_module_t* module,
                                            enum coll_ucg_function function,
                                            const coll_ucg_arguments_t* arguments);

/** Of a call that has never waited. */
void coll_ucg_drop_deferred(coll_ucg_deferred_t* deferred);

/** Calls the function. Returns what that does. */
int coll_ucg_call_again(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                        const coll_ucg_arguments_t* arguments);

/** Is the call that was made complete? */
bool coll_ucg_deferred_has_ended(const coll_ucg_deferred_t* deferred);

/** Tells the program its end. It may be gone afterwards. */
void coll_ucg_end_deferred(coll_ucg_deferred_t* deferred);

/** Of one whose function has failed. */
void coll_ucg_fail_deferred(coll_ucg_deferred_t* deferred, int rc);

#endif
