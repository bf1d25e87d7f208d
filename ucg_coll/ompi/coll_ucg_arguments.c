/*
 * The ends of calls: what their functions return, and the modules that were there before.
 */
#include "coll_ucg_arguments.h"

typedef int (*previous_t)(const mca_coll_ucg_module_t* module, const coll_ucg_arguments_t* a);

/* Define, for each form of a collective, a function that calls the previous module's with the
   arguments in its order. */
#define DEFINE_FORM(name, ...)                                                                     \
    static int call_##name(const mca_coll_ucg_module_t* module, const coll_ucg_arguments_t* a) {   \
        (void)a;                                                                                   \
        return module->previous.name.function(__VA_ARGS__, module->previous.name.module);          \
    }
#define DEFINE(name, ...)                                                                          \
    DEFINE_FORM(name, __VA_ARGS__ module->comm)                                                    \
    DEFINE_FORM(i##name, __VA_ARGS__ module->comm, a->request)                                     \
    DEFINE_FORM(name##_init, __VA_ARGS__ module->comm, a->info, a->request)
#define SENT a->sbuf, a->scount, a->sdtype,
#define RECEIVED a->rbuf, a->rcount, a->rdtype,
#define REDUCED a->sbuf, a->rbuf, a->rcount, a->rdtype, a->op,
#define SENT_BLOCKS a->sbuf, a->scounts, a->sdispls, a->sdtype,
#define RECEIVED_BLOCKS a->rbuf, a->rcounts, a->rdispls, a->rdtype,
#define SENT_TYPES a->sbuf, a->scounts, a->sdispls, a->sdtypes,
#define RECEIVED_TYPES a->rbuf, a->rcounts, a->rdispls, a->rdtypes,
#define ROOT a->root,
DEFINE(allgather, SENT RECEIVED)
DEFINE(allgatherv, SENT RECEIVED_BLOCKS)
DEFINE(allreduce, REDUCED)
DEFINE(alltoall, SENT RECEIVED)
DEFINE(alltoallv, SENT_BLOCKS RECEIVED_BLOCKS)
DEFINE(alltoallw, SENT_TYPES RECEIVED_TYPES)
DEFINE(barrier, )
DEFINE(bcast, RECEIVED ROOT)
DEFINE(exscan, REDUCED)
DEFINE(gather, SENT RECEIVED ROOT)
DEFINE(gatherv, SENT RECEIVED_BLOCKS ROOT)
DEFINE(neighbor_allgather, SENT RECEIVED)
DEFINE(neighbor_allgatherv, SENT RECEIVED_BLOCKS)
DEFINE(neighbor_alltoall, SENT RECEIVED)
DEFINE(neighbor_alltoallv, SENT_BLOCKS RECEIVED_BLOCKS)
DEFINE(neighbor_alltoallw, SENT_TYPES RECEIVED_TYPES)
DEFINE(reduce, REDUCED ROOT)
DEFINE(reduce_scatter, a->sbuf, a->rbuf, a->rcounts, a->rdtype, a->op, )
DEFINE(reduce_scatter_block, REDUCED)
DEFINE(scan, REDUCED)
DEFINE(scatter, SENT RECEIVED ROOT)
DEFINE(scatterv, SENT_BLOCKS RECEIVED ROOT)
#undef DEFINE
#undef DEFINE_FORM

int coll_ucg_pass_on(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                     const coll_ucg_arguments_t* arguments) {
    static const previous_t calls[COLL_UCG_FN_COUNT] = {
#define ENTRY(name) [COLL_UCG_FN_##name] = call_##name,
        COLL_UCG_FOR_EACH(ENTRY)
#undef ENTRY
    };
    module->counters.passed[function]++;
    return calls[function](module, arguments);
}

int coll_ucg_leave(mca_coll_ucg_module_t* module, enum coll_ucg_function function,
                   ucg_status_t status, const coll_ucg_arguments_t* arguments) {
    if (OPAL_UNLIKELY(UCG_ERR_UNSUPPORTED == status)) {
        return coll_ucg_pass_on(module, function, arguments);
    }
    module->counters.taken[function]++;
    return OPAL_LIKELY(UCG_OK == status) ? OMPI_SUCCESS
                                         : coll_ucg_leave_failed(module, function, status);
}
