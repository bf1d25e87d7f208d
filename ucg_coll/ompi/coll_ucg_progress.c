/*
 * How the progress engines of Open MPI and of libucg drive one another without nesting.
 */
#include "coll_ucg_background.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "opal/mca/btl/base/base.h"

/* ------------------------------------------------------------------ Open MPI's */

/** Room for the progress functions of the different components, of which a host has few: self, one
 *  for shared memory, networks. */
enum { PROGRESS_FUNCTIONS_MAX = 8 };

/*
 * Messages alone are driven by the functions that opal_progress() calls for them: that of the pml,
 * and those of the transports below pml/ob1. They tell whether anything happened, which
 * opal_progress() does not in Open MPI 4.1; what has no such function (btl/tcp works by events) is
 * driven by opal_progress() alone.
 */
static mca_btl_base_component_progress_fn_t progress_functions[PROGRESS_FUNCTIONS_MAX];
static size_t progress_function_count;

static void add_progress_function(mca_btl_base_component_progress_fn_t function) {
    for (size_t i = 0; i < progress_function_count; i++) {
        if (progress_functions[i] == function) {
            return;
        }
    }
    if (NULL != function && progress_function_count < PROGRESS_FUNCTIONS_MAX) {
        progress_functions[progress_function_count++] = function;
    }
}

void coll_ucg_find_host_progress(void) {
    progress_function_count = 0;
    add_progress_function(mca_pml.pml_progress);
    if (!mca_bml_base_inited()) {
        return;
    }
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        add_progress_function(selected->btl_component->btl_progress);
    }
}

static int count_messages(void) {
    int events = 0;
    for (size_t i = 0; i < progress_function_count; i++) {
        events += progress_functions[i]();
    }
    return events;
}

/** Calls Open MPI's progress without letting it yield the processor: a rank that waits in libucg
 *  yields by libucg's own rules, and one that has finished does not yield at all. */
static int progress_without_yield(void) {
    const bool yields = opal_progress_yield_when_idle;
    if (OPAL_UNLIKELY(yields)) {
        opal_progress_yield_when_idle = false;
    }
    const int events = coll_ucg_progress_all();
    if (OPAL_UNLIKELY(yields)) {
        opal_progress_yield_when_idle = true;
    }
    return events;
}

unsigned coll_ucg_progress_host(void* unused, unsigned flags) {
    (void)unused;
    const bool inside = coll_ucg_inside_library;
    coll_ucg_inside_library = true;
    const int events =
        0 != (flags & UCG_PROGRESS_FLAG_MESSAGES) ? count_messages() : progress_without_yield();
    coll_ucg_inside_library = inside;
    return events > 0 ? (unsigned)events : 0;
}

int coll_ucg_serve_host(void) {
    enum { CALLS_TO_SERVE = 16 };
    static _Thread_local unsigned calls __attribute__((tls_model("initial-exec")));
    if (!coll_ucg_inside_library && 0 == ++calls % CALLS_TO_SERVE && !coll_ucg_is_making_again()) {
        (void)progress_without_yield();
    }
    return OMPI_SUCCESS;
}

/* ------------------------------------------------------------------ libucg's */

/** Makes progress in libucg while this rank waits elsewhere in MPI, for peers that still connect or
 *  fetch data. Never blocks. */
static int progress_library(void) {
    if (coll_ucg_inside_library) {
        return 0;
    }
    coll_ucg_inside_library = true;
    const unsigned events = ucg_context_progress(mca_coll_ucg_component.context);
    coll_ucg_inside_library = false;
    return (int)events;
}

/** Messages through shared memory complete without this rank; only UCX needs its worker driven.
 *  Collectives over UCX drive it themselves, and each look at sockets is a system call: so it is
 *  registered with low priority, as Open MPI's own looks at sockets are. It stays registered when
 *  the group is gone: UCX may still hold a part of what was sent last, for which a socket had no
 *  room. */
void coll_ucg_poll_library_for(ucg_group_h group) {
    ucg_group_attr_t attributes = {.field_mask = UCG_GROUP_ATTR_FIELD_TRANSPORTS};
    if (UCG_OK != ucg_group_query(group, &attributes) || !attributes.uses_ucx) {
        return;
    }
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    if (!mca_coll_ucg_component.polled) {
        (void)opal_progress_register_lp(progress_library);
        mca_coll_ucg_component.polled = true;
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
}

void coll_ucg_stop_polling(void) {
    if (mca_coll_ucg_component.polled) {
        (void)opal_progress_unregister(progress_library);
        mca_coll_ucg_component.polled = false;
    }
}
