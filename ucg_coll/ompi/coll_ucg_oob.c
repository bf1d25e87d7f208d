/*
 * An allgather by Bruck's algorithm (Bruck et al., 1997). In each round a process doubles the
 * blocks that it has, its own first: it receives as many from the rank that is that number of ranks
 * after it.
 */
#include "coll_ucg_oob.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/pml.h"

/**
 * The tag of these messages. It is from the range that Open MPI up to 5.0 reserves for a component
 * (coll/hcoll) whose own tag is near the beginning of the range; 6.0 has nothing there. The
 * transports keep 32, 24 (pml/ucx) or 20 (mtl/ofi) bits of a tag. In each of these the tag is
 * negative, as no tag of a program is; and of nonblocking collectives, whose tags count downwards,
 * only the seven millionth of a communicator has the same.
 */
enum { TAG = -(1 << 30) - (1 << 23) + (1 << 19) };

static int rank_at(const coll_ucg_oob_t* oob, int distance) {
    const int size = ompi_comm_size(oob->comm);
    return (ompi_comm_rank(oob->comm) + distance + size) % size;
}

static ucg_status_t start_round(coll_ucg_oob_t* oob) {
    const int missing = ompi_comm_size(oob->comm) - oob->known;
    const size_t bytes = oob->bytes * (size_t)(missing < oob->known ? missing : oob->known);
    unsigned char* end = oob->blocks + oob->bytes * (size_t)oob->known;
    int rc = MCA_PML_CALL(
        irecv(end, bytes, MPI_BYTE, rank_at(oob, oob->known), TAG, oob->comm, &oob->received));
    if (OMPI_SUCCESS == rc) {
        rc = MCA_PML_CALL(isend(oob->blocks, bytes, MPI_BYTE, rank_at(oob, -oob->known), TAG,
                                MCA_PML_BASE_SEND_STANDARD, oob->comm, &oob->sent));
    }
    oob->failed = oob->failed || OMPI_SUCCESS != rc;
    return OMPI_SUCCESS == rc ? UCG_INPROGRESS : UCG_ERR_IO_ERROR;
}

/** Frees the request of a message that is complete. Returns whether it succeeded. */
static bool end_message(ompi_request_t** request) {
    const bool good = MPI_SUCCESS == (*request)->req_status.MPI_ERROR;
    (void)ompi_request_free(request);
    return good;
}

static ucg_status_t end_round(coll_ucg_oob_t* oob) {
    const bool received = end_message(&oob->received);
    const bool sent = end_message(&oob->sent);
    oob->known *= 2;
    oob->failed = oob->failed || !received || !sent;
    return oob->failed ? UCG_ERR_IO_ERROR : UCG_OK;
}

/** Copies the blocks from the order that begins with this rank to that of ranks. */
static void end_exchange(coll_ucg_oob_t* oob) {
    const size_t before = oob->bytes * (size_t)ompi_comm_rank(oob->comm);
    const size_t after = oob->bytes * (size_t)ompi_comm_size(oob->comm) - before;
    memcpy(oob->target + before, oob->blocks, after);
    memcpy(oob->target, oob->blocks + after, before);
    free(oob->blocks);
    oob->blocks = NULL;
}

int coll_ucg_oob_start(void* arg, const void* source, void* target, size_t bytes) {
    coll_ucg_oob_t* oob = arg;
    oob->blocks = malloc(bytes * (size_t)ompi_comm_size(oob->comm));
    if (NULL == oob->blocks) {
        oob->failed = true;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    memcpy(oob->blocks, source, bytes);
    oob->target = target;
    oob->bytes = bytes;
    oob->known = 1;
    return UCG_INPROGRESS == start_round(oob) ? OMPI_SUCCESS : OMPI_ERROR;
}

ucg_status_t coll_ucg_oob_test(void* arg) {
    coll_ucg_oob_t* oob = arg;
    ucg_status_t status = UCG_OK;
    while (UCG_OK == status) {
        if (!REQUEST_COMPLETE(oob->received) || !REQUEST_COMPLETE(oob->sent)) {
            return UCG_INPROGRESS;
        }
        status = end_round(oob);
        if (UCG_OK == status && oob->known >= ompi_comm_size(oob->comm)) {
            end_exchange(oob);
            return UCG_OK;
        }
        status = UCG_OK == status ? start_round(oob) : status;
    }
    return status;
}
