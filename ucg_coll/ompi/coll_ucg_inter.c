/*
 * The groups of inter-communicators, and how their processes exchange what making a group takes: by
 * collectives of the previous modules between the sides, and by those of the communicator that Open
 * MPI keeps for each side, which libucg never serves (coll_ucg_module.c).
 */
#include "coll_ucg_inter.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ sides */

/** Is this side the first? Both sides decide alike, since they know the names of the first
 *  processes of both. */
static bool is_first_side(ompi_communicator_t* comm) {
    const opal_process_name_t here = ompi_group_get_proc_name(comm->c_local_group, 0);
    const opal_process_name_t there = ompi_group_get_proc_name(comm->c_remote_group, 0);
    return here.jobid != there.jobid ? here.jobid < there.jobid : here.vpid < there.vpid;
}

static void begin_roots(coll_ucg_sides_t* sides) {
    for (int i = 0; i <= sides->remote_size; i++) {
        sides->roots[i] = (coll_ucg_part_t){.state = COLL_UCG_FRESH,
                                            .calls_before = mca_coll_ucg_component.calls_before};
    }
}

coll_ucg_sides_t* coll_ucg_make_sides(ompi_communicator_t* comm) {
    coll_ucg_sides_t* sides = calloc(1, sizeof *sides);
    if (NULL == sides) {
        return NULL;
    }
    const bool first = is_first_side(comm);
    sides->local_size = ompi_comm_size(comm);
    sides->remote_size = ompi_comm_remote_size(comm);
    sides->local_first = first ? 0 : sides->remote_size;
    sides->remote_first = first ? sides->local_size : 0;
    const size_t both = (size_t)sides->local_size + (size_t)sides->remote_size;
    sides->roots = malloc(((size_t)sides->remote_size + 1) * sizeof *sides->roots);
    sides->numbers = malloc(both * sizeof *sides->numbers);
    if (NULL == sides->roots || NULL == sides->numbers) {
        free(sides->roots);
        free(sides->numbers);
        free(sides);
        return NULL;
    }
    begin_roots(sides);
    sides->side.state = 1 == sides->local_size ? COLL_UCG_READY : COLL_UCG_FRESH;
    for (size_t i = 0; i < both; i++) {
        sides->numbers[i] = (int)i;
    }
    sides->across = coll_ucg_edges_across(sides, sides->remote_first, 0, sides->remote_size, 0,
                                          sides->remote_size);
    return sides;
}

static void leave(coll_ucg_part_t* part) {
    if (NULL == part->group) {
        return;
    }
    ucg_group_destroy(part->group);
    part->group = NULL;
    part->state = COLL_UCG_OFF;
}

static void fail(const coll_ucg_part_t* part) {
    if (NULL != part->group) {
        ucg_group_fail(part->group);
    }
}

void coll_ucg_fail_sides(coll_ucg_sides_t* sides) {
    for (int i = 0; i <= sides->remote_size; i++) {
        fail(&sides->roots[i]);
    }
    fail(&sides->side);
}

void coll_ucg_leave_sides(coll_ucg_sides_t* sides) {
    for (int i = 0; i <= sides->remote_size; i++) {
        leave(&sides->roots[i]);
    }
    leave(&sides->side);
}

void coll_ucg_free_sides(coll_ucg_sides_t* sides) {
    coll_ucg_workspace_free(&sides->memory);
    free(sides->roots);
    free(sides->numbers);
    free(sides);
}

coll_ucg_edges_t coll_ucg_edges_across(const coll_ucg_sides_t* sides, int first, int to, int out,
                                       int from, int in) {
    return (coll_ucg_edges_t){
        .ends = {.destinations = sides->numbers + first + to,
                 .sources = sides->numbers + first + from,
                 .destination_count = (uint32_t)out,
                 .source_count = (uint32_t)in},
        .destination_blocks = sides->numbers,
        .source_blocks = sides->numbers,
    };
}

bool coll_ucg_is_on_several_hosts(ucg_group_h group, uint32_t* hosts) {
    ucg_group_attr_t attr = {.field_mask = UCG_GROUP_ATTR_FIELD_PLACES};
    if (OPAL_UNLIKELY(0 == *hosts)) {
        *hosts = UCG_OK == ucg_group_query(group, &attr) ? attr.host_count : 1;
    }
    return 1 < *hosts;
}

/* ------------------------------------------------------------------ exchange */

static unsigned char* place_of_rank(void* table, int rank, int bytes) {
    return (unsigned char*)table + (size_t)rank * (size_t)bytes;
}

static int gather_on_side(coll_ucg_exchange_t* exchange, const void* source, void* target,
                          int bytes) {
    ompi_communicator_t* side = exchange->module->comm->c_local_comm;
    return side->c_coll->coll_allgather(source, bytes, MPI_BYTE, target, bytes, MPI_BYTE, side,
                                        side->c_coll->coll_allgather_module);
}

ucg_status_t coll_ucg_make_group_of_side(coll_ucg_exchange_t* exchange, ucg_context_h context) {
    mca_coll_ucg_module_t* module = exchange->module;
    coll_ucg_part_t* side = &module->sides->side;
    coll_ucg_exchange_t ours = {
        .module = module,
        .rank = (uint32_t)ompi_comm_rank(module->comm),
        .size = (uint32_t)ompi_comm_size(module->comm),
        .gather = gather_on_side,
    };
    if (COLL_UCG_READY == side->state) {
        return UCG_OK;
    }
    ucg_status_t status;
    do { /* No pause: the other side would not know of it. */
        status = coll_ucg_create_group(&ours, context, &side->group);
    } while (UCG_ERR_BUSY == status);
    exchange->failed = exchange->failed || ours.failed;
    if (UCG_OK == status) {
        side->state = COLL_UCG_READY;
        coll_ucg_poll_library_for(side->group);
    }
    return status;
}

static int gather_from_sides(coll_ucg_exchange_t* exchange, const void* source, void* target,
                             int bytes) {
    const coll_ucg_sides_t* sides = exchange->module->sides;
    coll_ucg_previous_t* previous = &exchange->module->previous;
    const int rc = previous->allgather.function(
        source, bytes, MPI_BYTE, place_of_rank(target, sides->remote_first, bytes), bytes, MPI_BYTE,
        exchange->module->comm, previous->allgather.module);
    return OMPI_SUCCESS == rc
               ? gather_on_side(exchange, source, place_of_rank(target, sides->local_first, bytes),
                                bytes)
               : rc;
}

/** Finds the greatest number of both sides. An allreduce of an inter-communicator returns the
 *  result of the other side, so each side also does its own. */
static int find_worst_of_sides(coll_ucg_exchange_t* exchange, const int* mine, int* worst) {
    coll_ucg_previous_t* previous = &exchange->module->previous;
    ompi_communicator_t* side = exchange->module->comm->c_local_comm;
    int theirs = 0;
    int rc = previous->allreduce.function(mine, &theirs, 1, MPI_INT, MPI_MAX,
                                          exchange->module->comm, previous->allreduce.module);
    if (OMPI_SUCCESS == rc) {
        rc = side->c_coll->coll_allreduce(mine, worst, 1, MPI_INT, MPI_MAX, side,
                                          side->c_coll->coll_allreduce_module);
    }
    *worst = theirs > *worst ? theirs : *worst;
    return rc;
}

coll_ucg_exchange_t coll_ucg_exchange_of_sides(mca_coll_ucg_module_t* module) {
    const coll_ucg_sides_t* sides = module->sides;
    return (coll_ucg_exchange_t){
        .module = module,
        .rank = (uint32_t)(sides->local_first + ompi_comm_rank(module->comm)),
        .size = (uint32_t)(sides->local_size + sides->remote_size),
        .gather = gather_from_sides,
        .find_worst = find_worst_of_sides,
        .with_side = true,
    };
}

static int gather_with_root(coll_ucg_exchange_t* exchange, const void* source, void* target,
                            int bytes) {
    coll_ucg_previous_t* previous = &exchange->module->previous;
    const bool is_root = 0 == exchange->rank;
    unsigned char* others = place_of_rank(target, 1, bytes);
    memcpy(target, source, (size_t)bytes); /* The root's place. */
    int rc =
        previous->gather.function(source, bytes, MPI_BYTE, others, bytes, MPI_BYTE, exchange->root,
                                  exchange->module->comm, previous->gather.module);
    if (OMPI_SUCCESS == rc) {
        rc = previous->bcast.function(target, bytes, MPI_BYTE, exchange->root,
                                      exchange->module->comm, previous->bcast.module);
    }
    return OMPI_SUCCESS == rc && !is_root ? gather_on_side(exchange, source, others, bytes) : rc;
}

static int find_worst_with_root(coll_ucg_exchange_t* exchange, const int* mine, int* worst) {
    coll_ucg_previous_t* previous = &exchange->module->previous;
    const bool is_root = 0 == exchange->rank;
    int rc = previous->reduce.function(mine, worst, 1, MPI_INT, MPI_MAX, exchange->root,
                                       exchange->module->comm, previous->reduce.module);
    if (is_root && *mine > *worst) {
        *worst = *mine;
    }
    if (OMPI_SUCCESS == rc) {
        rc = previous->bcast.function(worst, 1, MPI_INT, exchange->root, exchange->module->comm,
                                      previous->bcast.module);
    }
    return rc;
}

static coll_ucg_exchange_t exchange_with_root(mca_coll_ucg_module_t* module, int root) {
    const coll_ucg_sides_t* sides = module->sides;
    const bool is_root = MPI_ROOT == root;
    return (coll_ucg_exchange_t){
        .module = module,
        .rank = is_root ? 0 : 1 + (uint32_t)ompi_comm_rank(module->comm),
        .size = 1 + (uint32_t)(is_root ? sides->remote_size : sides->local_size),
        .root = root,
        .gather = gather_with_root,
        .find_worst = find_worst_with_root,
        .with_side = !is_root,
    };
}

/* ------------------------------------------------------------------ roots */

static ucg_status_t set_up(mca_coll_ucg_module_t* module, int root, coll_ucg_part_t* part) {
    if (COLL_UCG_FRESH != part->state) {
        return UCG_ERR_UNSUPPORTED;
    }
    /* A root and the other side call this root's collectives in one order, so all of them count
       alike. */
    if (0 < part->calls_before) {
        part->calls_before--;
        return UCG_ERR_UNSUPPORTED;
    }
    coll_ucg_exchange_t exchange = exchange_with_root(module, root);
    const ucg_status_t status = coll_ucg_make_group_by(&exchange, &part->group);
    if (UCG_ERR_BUSY == status) {
        part->calls_before = coll_ucg_pause_after_busy(&part->pause);
        return UCG_ERR_UNSUPPORTED;
    }
    part->state = UCG_OK == status ? COLL_UCG_READY : COLL_UCG_OFF;
    if (UCG_OK == status) {
        coll_ucg_poll_library_for(part->group);
    }
    return status;
}

static coll_ucg_part_t* part_of_root(const coll_ucg_sides_t* sides, int root) {
    return &sides->roots[MPI_ROOT == root ? sides->remote_size : root];
}

ucg_status_t coll_ucg_enter_rooted(mca_coll_ucg_module_t* module, int root,
                                   coll_ucg_part_t** part_p) {
    coll_ucg_part_t* part = part_of_root(module->sides, root);
    *part_p = part;
    return OPAL_LIKELY(COLL_UCG_READY == part->state) ? UCG_OK : set_up(module, root, part);
}

ucg_status_t coll_ucg_enter_rooted_nonblocking(mca_coll_ucg_module_t* module, int root,
                                               coll_ucg_request_t** request_p) {
    coll_ucg_part_t* part = part_of_root(module->sides, root);
    if (OPAL_LIKELY(COLL_UCG_READY == part->state)) {
        return coll_ucg_begin_nonblocking(module, part->group, request_p);
    }
    if (COLL_UCG_FRESH == part->state && 0 < part->calls_before) {
        part->calls_before--;
    }
    return UCG_ERR_UNSUPPORTED;
}

void coll_ucg_number_call(ompi_communicator_t* comm) {
    (void)ompi_coll_base_nbc_reserve_tags(comm, 1);
}
