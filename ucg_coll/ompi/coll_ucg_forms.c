/*
 * The ways of calls through the component, one for each form.
 */
#include "coll_ucg_forms.h"

#include "coll_ucg_background.h"
#include "coll_ucg_inter.h"

/** Opens the call of a collective in any of its forms. Only barriers are the same for both kinds of
 *  communicators. */
static ucg_status_t open_call(coll_ucg_call_t* call, enum coll_ucg_function function,
                              const coll_ucg_arguments_t* arguments) {
    static coll_ucg_open_t* const opens[COLL_UCG_FN_BLOCKING_COUNT] = {
#define ENTRY(name) [COLL_UCG_FN_##name] = coll_ucg_open_##name,
        COLL_UCG_FOR_EACH_BLOCKING(ENTRY)
#undef ENTRY
    };
    const enum coll_ucg_function collective = coll_ucg_collective_of(function);
    if (OPAL_UNLIKELY(NULL != call->module->sides) && COLL_UCG_FN_barrier != collective) {
        return coll_ucg_open_across(call, function, arguments);
    }
    return opens[collective](call, arguments);
}

/** Describes a call without vectors. Returns false if what is sent and what is received differ in
 *  type or count; the call is then never repeated. */
static bool describe(const coll_ucg_arguments_t* arguments, coll_ucg_latest_t* description) {
    const bool in_place = MPI_IN_PLACE == arguments->sbuf;
    *description = (coll_ucg_latest_t){.type = arguments->rdtype,
                                       .op = arguments->op,
                                       .count = arguments->rcount,
                                       .root = arguments->root,
                                       .in_place = in_place};
    return in_place || NULL == arguments->sdtype ||
           (arguments->scount == arguments->rcount && arguments->sdtype == arguments->rdtype);
}

/* ------------------------------------------------------------------ blocking */

static ucg_status_t run(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                        const coll_ucg_arguments_t* arguments,
                        const coll_ucg_latest_t* description) {
    ucg_status_t status = coll_ucg_enter(module);
    if (OPAL_LIKELY(UCG_OK == status)) {
        coll_ucg_call_t call;
        coll_ucg_begin_blocking(&call, module);
        status = coll_ucg_run_first(&call, open_call(&call, function, arguments));
        coll_ucg_remember_call(&call, function, description, status);
    }
    return status;
}

int coll_ucg_blocking(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                      coll_ucg_arguments_t arguments, const coll_ucg_latest_t* description) {
    ucg_status_t status = run(module, function, &arguments, description);
    while (OPAL_UNLIKELY(UCG_INPROGRESS == status)) {
        int rc = OMPI_SUCCESS;
        status = coll_ucg_wait_in_order(module, function, &arguments, &rc);
        if (UCG_OK == status) {
            return rc;
        }
        if (UCG_INPROGRESS == status) {
            status = run(module, function, &arguments, description);
        }
    }
    return coll_ucg_leave(module, function, status, &arguments);
}

int coll_ucg_blocking_plain(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                            coll_ucg_arguments_t arguments) {
    coll_ucg_latest_t description;
    const bool repeatable = describe(&arguments, &description);
    return coll_ucg_blocking(module, function, arguments, repeatable ? &description : NULL);
}

/* ------------------------------------------------------------------ nonblocking */

/**
 * May this be a call by which Open MPI makes communicators? Those of MPI_Comm_idup() come whenever
 * that is advanced, at other places among the program's calls on each rank, whereas a group's
 * collectives have one order on all ranks. The previous module keeps its nonblocking calls apart
 * from blocking ones.
 */
static bool may_make_communicators(enum coll_ucg_function function,
                                   const coll_ucg_arguments_t* arguments) {
    return COLL_UCG_FN_iallreduce == function && 1 == arguments->rcount &&
           &ompi_mpi_int.dt == arguments->rdtype &&
           (&ompi_mpi_op_max.op == arguments->op || &ompi_mpi_op_min.op == arguments->op);
}

static ucg_status_t start(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                          const coll_ucg_arguments_t* arguments,
                          const coll_ucg_latest_t* description) {
    coll_ucg_request_t* mine = NULL;
    const bool passes =
        may_make_communicators(function, arguments) && !coll_ucg_is_making_blocking();
    const ucg_status_t status =
        passes ? coll_ucg_pass_in_order(module) : coll_ucg_enter_nonblocking(module, &mine);
    if (OPAL_UNLIKELY(UCG_OK != status)) {
        return status;
    }
    const ucg_status_t opened = open_call(&mine->call, function, arguments);
    return coll_ucg_start_described(mine, function, description, opened, arguments->request);
}

int coll_ucg_nonblocking(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                         coll_ucg_arguments_t arguments, const coll_ucg_latest_t* description) {
    ucg_status_t status = start(module, function, &arguments, description);
    while (OPAL_UNLIKELY(UCG_INPROGRESS == status)) {
        status = coll_ucg_defer(module, function, &arguments);
        if (UCG_OK == status) {
            return OMPI_SUCCESS;
        }
        if (UCG_INPROGRESS == status) {
            status = start(module, function, &arguments, description);
        }
    }
    return coll_ucg_leave(module, function, status, &arguments);
}

int coll_ucg_nonblocking_plain(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                               coll_ucg_arguments_t arguments) {
    coll_ucg_latest_t description;
    const bool repeatable = describe(&arguments, &description);
    return coll_ucg_nonblocking(module, function, arguments, repeatable ? &description : NULL);
}

/* ------------------------------------------------------------------ persistent */

int coll_ucg_persistent(mca_coll_base_module_t* module, enum coll_ucg_function function,
                        coll_ucg_arguments_t arguments) {
    mca_coll_ucg_module_t* ucg = (mca_coll_ucg_module_t*)module;
    coll_ucg_request_t* mine = NULL;
    ucg_status_t status = coll_ucg_enter_persistent(ucg, &mine);
    if (OPAL_LIKELY(UCG_OK == status)) {
        const ucg_status_t opened = open_call(&mine->call, function, &arguments);
        status = coll_ucg_keep_call(mine, opened, arguments.request);
    }
    return coll_ucg_leave(ucg, function, status, &arguments);
}
