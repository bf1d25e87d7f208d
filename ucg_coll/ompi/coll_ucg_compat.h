/*
 * Everything in which the series of Open MPI differ that the component is built for: 4.1 and 5.0.
 * The other files are the same for both. Of 4.1 to 5.0 the module structures got another version,
 * the headers of threads and PMIx moved, and some functions return what they used to keep.
 */
#ifndef MCA_COLL_UCG_COMPAT_H
#define MCA_COLL_UCG_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"
#include "ompi_config.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#define COLL_UCG_FOR_OMPI_4 1
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"
#elif OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0
#define COLL_UCG_FOR_OMPI_4 0
#include "ompi/runtime/params.h"
#include "opal/mca/accelerator/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#else
#error "The component is for Open MPI 4.1 and 5.0; other series have other module structures."
#endif

/* ------------------------------------------------------------------ the component's structure */

/** Open MPI compares this for equality. */
#if COLL_UCG_FOR_OMPI_4
#define COLL_UCG_FRAMEWORK_VERSION MCA_COLL_BASE_VERSION_2_0_0
#else
#define COLL_UCG_FRAMEWORK_VERSION MCA_COLL_BASE_VERSION_2_4_0
#endif

/* ------------------------------------------------------------------ progress */

/** Open MPI's progress. How many things happened, where it tells; 4.1 does not: 0. */
static inline int coll_ucg_progress_all(void) {
#if COLL_UCG_FOR_OMPI_4
    opal_progress();
    return 0;
#else
    return opal_progress();
#endif
}

/* ------------------------------------------------------------------ communicators */

/** An order of communicators that all processes which share some of them agree on. From 5.0 on the
 *  short id is each process's own where the communicator was made of a group alone. */
static inline bool coll_ucg_comes_before(const ompi_communicator_t* one,
                                         const ompi_communicator_t* other) {
#if COLL_UCG_FOR_OMPI_4
    return one->c_contextid < other->c_contextid;
#else
    const ompi_comm_extended_cid_t left = ompi_comm_get_extended_cid(one);
    const ompi_comm_extended_cid_t right = ompi_comm_get_extended_cid(other);
    return left.cid_base != right.cid_base ? left.cid_base < right.cid_base
                                           : left.cid_sub.u64 < right.cid_sub.u64;
#endif
}

/* ------------------------------------------------------------------ what is not served */

/** May buffers lie on a device? No rank can know that of the others'. */
static inline bool coll_ucg_has_devices(void) {
#if COLL_UCG_FOR_OMPI_4
#if OPAL_CUDA_SUPPORT
    return opal_cuda_support;
#else
    return false;
#endif
#else
    const char* selected = opal_accelerator_base_selected_component.base_version.mca_component_name;
    return '\0' != selected[0] && 0 != strcmp(selected, "null");
#endif
}

/** Is a program to survive the end of its peers (mpirun --with-ft ulfm)? A wait would have to end
 *  when a peer has died or a communicator is revoked, and libucg's do not. */
static inline bool coll_ucg_survives_peers(void) {
#if COLL_UCG_FOR_OMPI_4
    return false;
#else
    return ompi_ftmpi_enabled;
#endif
}

/* ------------------------------------------------------------------ what processes publish */

/** Publishes under the component's name. An error of PMIx, or 0. */
static inline int coll_ucg_publish(const mca_base_component_t* component, void* data,
                                   size_t bytes) {
    int rc;
#if COLL_UCG_FOR_OMPI_4
    OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, component, data, bytes);
#else
    OPAL_MODEX_SEND(rc, PMIX_GLOBAL, component, data, bytes);
#endif
    return rc;
}

/** Where to look for what a process has published, from what costs least on. */
typedef enum {
    COLL_UCG_LOOK_HERE,    /**< In this process. */
    COLL_UCG_LOOK_ON_HOST, /**< At the PMIx server of this host. */
    COLL_UCG_LOOK_ANYWHERE /**< Wherever the process is: takes seconds if there is nothing. */
} coll_ucg_reach_t;

enum { COLL_UCG_NOT_PUBLISHED = -1 };

static inline ptrdiff_t coll_ucg_copy_published(const void* from, size_t length, void* data,
                                                size_t bytes) {
    const size_t wanted = length < bytes ? length : bytes;
    if (wanted > 0) { /* Who asks whether there is anything at all has no place for it. */
        memcpy(data, from, wanted);
    }
    return (ptrdiff_t)length;
}

/** The length of what a process has published under that key, and its first bytes in `data`, of
 *  which there are `bytes`; COLL_UCG_NOT_PUBLISHED if none was found. */
#if COLL_UCG_FOR_OMPI_4
static inline ptrdiff_t coll_ucg_find_published(const opal_process_name_t* name, const char* key,
                                                coll_ucg_reach_t reach, void* data, size_t bytes) {
    static const char* const restrictions[] = {OPAL_PMIX_OPTIONAL, OPAL_PMIX_IMMEDIATE, NULL};
    ptrdiff_t length = COLL_UCG_NOT_PUBLISHED;
    opal_list_t list;
    opal_value_t item;
    opal_value_t* found = NULL;
    OBJ_CONSTRUCT(&list, opal_list_t);
    OBJ_CONSTRUCT(&item, opal_value_t);
    item.key = (char*)restrictions[reach];
    item.type = OPAL_BOOL;
    item.data.flag = true;
    opal_list_append(&list, &item.super);
    const int rc = opal_pmix.get(name, key, NULL != item.key ? &list : NULL, &found);
    if (OPAL_SUCCESS == rc && NULL != found) {
        const bool blob = OPAL_BYTE_OBJECT == found->type;
        length = coll_ucg_copy_published(found->data.bo.bytes, blob ? found->data.bo.size : 0, data,
                                         bytes);
    }
    if (NULL != found) {
        OBJ_RELEASE(found);
    }
    opal_list_remove_item(&list, &item.super);
    item.key = NULL;
    OBJ_DESTRUCT(&item);
    OBJ_DESTRUCT(&list);
    return length;
}
#else
static inline ptrdiff_t coll_ucg_find_published(const opal_process_name_t* name, const char* key,
                                                coll_ucg_reach_t reach, void* data, size_t bytes) {
    static const char* const restrictions[] = {PMIX_OPTIONAL, PMIX_IMMEDIATE, NULL};
    const bool restricted = NULL != restrictions[reach];
    ptrdiff_t length = COLL_UCG_NOT_PUBLISHED;
    pmix_proc_t process;
    pmix_info_t info;
    pmix_value_t* found = NULL;
    OPAL_PMIX_CONVERT_NAME(&process, name);
    PMIX_INFO_CONSTRUCT(&info);
    if (restricted) {
        PMIX_INFO_LOAD(&info, restrictions[reach], NULL, PMIX_BOOL); /* NULL: true. */
    }
    const pmix_status_t rc = PMIx_Get(&process, key, &info, restricted ? 1 : 0, &found);
    if (PMIX_SUCCESS == rc && NULL != found) {
        const bool blob = PMIX_BYTE_OBJECT == found->type;
        length = coll_ucg_copy_published(found->data.bo.bytes, blob ? found->data.bo.size : 0, data,
                                         bytes);
    }
    if (NULL != found) {
        PMIX_VALUE_RELEASE(found);
    }
    PMIX_INFO_DESTRUCT(&info);
    return length;
}
#endif

#endif
