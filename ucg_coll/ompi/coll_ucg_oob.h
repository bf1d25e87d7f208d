/*
 * An exchange among all processes of a communicator for which nobody waits, by messages of the pml.
 *
 * Nonblocking collectives of other components would not do: Open MPI numbers a communicator's
 * nonblocking collectives on each process, and on each process these exchanges begin at other
 * places among the program's collectives.
 */
#ifndef MCA_COLL_UCG_OOB_H
#define MCA_COLL_UCG_OOB_H

#include "coll_ucg.h"
#include "ompi/request/request.h"

typedef struct {
    ompi_communicator_t* comm;
    /* The exchange in progress: */
    unsigned char* blocks; /**< This process's block, then those of the ranks after it. */
    unsigned char* target;
    size_t bytes;
    int known; /**< Number of blocks that this process has. */
    ompi_request_t* sent;
    ompi_request_t* received;
    bool failed; /**< An exchange failed, of which the others may not know. */
} coll_ucg_oob_t;

/** The two callbacks of ucg_group_params_t; `oob` is a coll_ucg_oob_t. */
int coll_ucg_oob_start(void* oob, const void* source, void* target, size_t bytes);
ucg_status_t coll_ucg_oob_test(void* oob);

#endif
