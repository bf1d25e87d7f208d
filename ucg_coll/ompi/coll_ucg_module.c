/*
 * The module of a communicator: which communicators the component takes, the modules that were
 * there before, and how it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_ucg_inter.h"
#include "coll_ucg_restart.h"
#include "opal/util/output.h"

/* ------------------------------------------------------------------ previous modules */

/** Does the communicator have the collectives that making groups takes? */
static bool has_needed(const mca_coll_base_comm_coll_t* coll, const ompi_communicator_t* comm) {
    return OMPI_COMM_IS_INTRA(comm) ||
           (NULL != coll->coll_allgather && NULL != coll->coll_allgather_module &&
            NULL != coll->coll_allreduce && NULL != coll->coll_allreduce_module &&
            NULL != coll->coll_gather && NULL != coll->coll_gather_module &&
            NULL != coll->coll_bcast && NULL != coll->coll_bcast_module &&
            NULL != coll->coll_reduce && NULL != coll->coll_reduce_module);
}

static int module_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
    mca_coll_ucg_module_t* module = (mca_coll_ucg_module_t*)base;
    const mca_coll_base_comm_coll_t* coll = comm->c_coll;
    if (!has_needed(coll, comm)) {
        COLL_UCG_VERBOSE(1,
                         "coll/ucg: no other component offers what set-up of inter-communicators "
                         "needs: allgather, allreduce, gather, bcast and reduce");
        return OMPI_ERR_NOT_FOUND;
    }
    module->comm = comm;
    /* A function that no other component offers is not taken: there would be none to pass a call on
       to. */
#define SAVE(name)                                                                                 \
    if (NULL != coll->coll_##name && NULL != coll->coll_##name##_module) {                         \
        module->previous.name.function = coll->coll_##name;                                        \
        module->previous.name.module = coll->coll_##name##_module;                                 \
        OBJ_RETAIN(module->previous.name.module);                                                  \
        if (NULL != module->super.coll_##name) {                                                   \
            COLL_UCG_INSTALL(comm, name, module);                                                  \
        }                                                                                          \
    } else {                                                                                       \
        module->super.coll_##name = NULL;                                                          \
    }
    COLL_UCG_FOR_EACH(SAVE)
#undef SAVE
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    opal_list_append(&mca_coll_ucg_component.enabled_modules, &module->enabled);
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    return OMPI_SUCCESS;
}

static void release_previous(coll_ucg_previous_t* previous) {
#define RELEASE(name)                                                                              \
    if (NULL != previous->name.module) {                                                           \
        OBJ_RELEASE(previous->name.module);                                                        \
        previous->name.module = NULL;                                                              \
    }
    COLL_UCG_FOR_EACH(RELEASE)
#undef RELEASE
}

/* ------------------------------------------------------------------ end */

void coll_ucg_add_counters(coll_ucg_counters_t* sum, const coll_ucg_counters_t* counters) {
    for (int i = 0; i < COLL_UCG_FN_COUNT; i++) {
        sum->taken[i] += counters->taken[i];
        sum->passed[i] += counters->passed[i];
    }
}

/** Leaves the group, and releases the modules that were there before. May be called more than
 *  once. */
static void retire(mca_coll_ucg_module_t* module) {
    if (module->retired) {
        return;
    }
    module->retired = true;
    module->state = COLL_UCG_OFF;
    coll_ucg_tear_down(module);
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    if (!module->is_side) {
        coll_ucg_add_counters(&mca_coll_ucg_component.counters, &module->counters);
    }
    memset(&module->counters, 0, sizeof module->counters);
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    release_previous(&module->previous);
}

/** Disables the module. Up to 5.0 Open MPI calls this once for each function that the module owns,
 *  later once. */
static int module_disable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
    mca_coll_ucg_module_t* module = (mca_coll_ucg_module_t*)base;
    (void)comm;
#define PUT_BACK(name)                                                                             \
    if (NULL != module->super.coll_##name) {                                                       \
        COLL_UCG_UNINSTALL(comm, name, module);                                                    \
    }
    COLL_UCG_FOR_EACH(PUT_BACK)
#undef PUT_BACK
    retire(module);
    return OMPI_SUCCESS;
}

/* ------------------------------------------------------------------ class and query */

static void module_construct(mca_coll_ucg_module_t* module) {
    module->state = COLL_UCG_FRESH;
    module->pause = 0;
    module->background = NULL;
    module->retired = false;
    module->lacks_call = false;
    module->is_side = false;
    module->comm = NULL;
    module->group = NULL;
    memset(&module->previous, 0, sizeof module->previous);
    memset(&module->counters, 0, sizeof module->counters);
    memset(&module->reduction, 0, sizeof module->reduction);
    memset(module->latest, 0, sizeof module->latest);
    module->restartable = coll_ucg_nothing_to_restart;
    memset(&module->workspace, 0, sizeof module->workspace);
    memset(&module->edges, 0, sizeof module->edges);
    module->pool = NULL;
    module->sides = NULL;
    OBJ_CONSTRUCT(&module->enabled, opal_list_item_t);
    OBJ_CONSTRUCT(&module->waiting, opal_list_item_t);
}

static void module_destruct(mca_coll_ucg_module_t* module) {
    retire(module);
    if (NULL != module->comm) {
        opal_mutex_lock(&mca_coll_ucg_component.lock);
        opal_list_remove_item(&mca_coll_ucg_component.enabled_modules, &module->enabled);
        opal_mutex_unlock(&mca_coll_ucg_component.lock);
    }
    coll_ucg_workspace_free(&module->workspace);
    free(module->edges.memory);
    if (NULL != module->sides) {
        coll_ucg_free_sides(module->sides);
    }
    OBJ_DESTRUCT(&module->waiting);
    OBJ_DESTRUCT(&module->enabled);
}

OBJ_CLASS_INSTANCE(mca_coll_ucg_module_t, mca_coll_base_module_t, module_construct,
                   module_destruct);

/** Does the component take the communicator? All ranks decide alike. */
static bool takes(ompi_communicator_t* comm) {
    return (OMPI_COMM_IS_INTER(comm) || comm->c_local_group->grp_proc_count > 1) &&
           coll_ucg_all_alike(comm);
}

#define OFFER(name)                                                                                \
    if (mca_coll_ucg_component.enabled[COLL_UCG_FN_##name]) {                                      \
        module->super.coll_##name = mca_coll_ucg_##name;                                           \
    }
#define OFFER_INTER(name)                                                                          \
    if (mca_coll_ucg_component.enabled[COLL_UCG_FN_##name]) {                                      \
        module->super.coll_##name = mca_coll_ucg_inter_##name;                                     \
    }

/** Offers the functions for the communicator's kind. */
static ucg_status_t offer(mca_coll_ucg_module_t* module, ompi_communicator_t* comm) {
    if (OMPI_COMM_IS_INTRA(comm)) {
        COLL_UCG_FOR_EACH(OFFER)
        return UCG_OK;
    }
    OFFER(barrier)
    OFFER(ibarrier)
    OFFER(barrier_init)
    COLL_UCG_FOR_EACH_INTER(OFFER_INTER)
    module->sides = coll_ucg_make_sides(comm);
    return NULL != module->sides ? UCG_OK : UCG_ERR_NO_MEMORY;
}
#undef OFFER
#undef OFFER_INTER

/**
 * Makes sure that the communicator that Open MPI keeps for this side of an inter-communicator,
 * which has called nothing yet, never gets a group. Its nonblocking calls are those of
 * MPI_Comm_idup(), which come whenever that is advanced, at other places among its blocking calls
 * on each rank.
 */
static void leave_side_to_others(const ompi_communicator_t* side) {
    opal_list_item_t* item;
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    OPAL_LIST_FOREACH(item, &mca_coll_ucg_component.enabled_modules, opal_list_item_t) {
        mca_coll_ucg_module_t* module = coll_ucg_module_of(item);
        if (module->comm == side) {
            module->state = COLL_UCG_OFF;
            module->is_side = true;
        }
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

mca_coll_base_module_t* mca_coll_ucg_comm_query(ompi_communicator_t* comm, int* priority) {
    *priority = mca_coll_ucg_component.priority;
    if (OMPI_COMM_IS_INTER(comm)) {
        leave_side_to_others(comm->c_local_comm);
    }
    if (!takes(comm)) {
        return NULL;
    }
    mca_coll_ucg_module_t* module = OBJ_NEW(mca_coll_ucg_module_t);
    if (NULL == module) {
        return NULL;
    }
    /* Every program uses MPI_COMM_WORLD, which therefore earns its group at once. */
    module->calls_before_group =
        &ompi_mpi_comm_world.comm == comm ? 0 : mca_coll_ucg_component.calls_before;
    module->super.coll_module_enable = module_enable;
    module->super.coll_module_disable = module_disable;
    if (UCG_OK != offer(module, comm)) {
        OBJ_RELEASE(module);
        return NULL;
    }
    return &module->super;
}

/* ------------------------------------------------------------------ errors */

/** Returns a code of Open MPI, negative, which it turns into one of MPI's classes; or, where it has
 *  no code of its own, the class that its components return. */
int coll_ucg_error(ucg_status_t status) {
    switch (status) {
    case UCG_OK:
    case UCG_INPROGRESS: return OMPI_SUCCESS;
    case UCG_ERR_INVALID_PARAM: return OMPI_ERR_BAD_PARAM;
    case UCG_ERR_UNSUPPORTED: return OMPI_ERR_NOT_SUPPORTED;
    case UCG_ERR_UNREACHABLE: return OMPI_ERR_UNREACH;
    case UCG_ERR_NO_MEMORY: return OMPI_ERR_OUT_OF_RESOURCE;
    case UCG_ERR_IO_ERROR:
    case UCG_ERR_TIMED_OUT: return OMPI_ERROR;
    case UCG_ERR_DISAGREEMENT: return MPI_ERR_TRUNCATE;
    case UCG_ERR_INTERNAL:
    case UCG_ERR_BUSY: return OMPI_ERR_FATAL;
    }
    return OMPI_ERR_FATAL;
}

int coll_ucg_leave_failed(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                          ucg_status_t status) {
    if (COLL_UCG_FN_allgather_init > function && NULL != module->group) {
        ucg_group_fail(module->group);
    }
    if (NULL != module->sides) {
        coll_ucg_fail_sides(module->sides);
    }
    return coll_ucg_error(status);
}
