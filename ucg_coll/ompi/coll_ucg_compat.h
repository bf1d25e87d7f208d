/*
 * Everything in which the series of Open MPI differ that the component is built for: 4.1, 5.0 and
 * 6.0 with what comes after it. The other files are the same for all. From 4.1 to 5.0 the module
 * structures got another version, the headers of threads, PMIx and the launcher moved, and some
 * functions return what they used to keep. In 6.0 counts are size_t, vectors of counts and
 * displacements are of int or of 64 bits, and a module installs its functions itself.
 */
#ifndef MCA_COLL_UCG_COMPAT_H
#define MCA_COLL_UCG_COMPAT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi_config.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#define COLL_UCG_FOR_OMPI_4 1
#include "ompi/mca/rte/rte.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"
#define COLL_UCG_FOR_OMPI_6 0
#elif (OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0) || OMPI_MAJOR_VERSION == 6
#define COLL_UCG_FOR_OMPI_4 0
#define COLL_UCG_FOR_OMPI_6 (OMPI_MAJOR_VERSION == 6)
#include "ompi/runtime/ompi_rte.h"
#include "ompi/runtime/params.h"
#include "opal/mca/accelerator/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#if COLL_UCG_FOR_OMPI_6
#include "ompi/mca/coll/base/base.h"
#include "ompi/util/count_disp_array.h"
#endif
#else
#error "The component is for Open MPI 4.1, 5.0 and 6; other series have other module structures."
#endif

/* ------------------------------------------------------------------ the component's structure */

/** Open MPI compares this for equality. */
#if COLL_UCG_FOR_OMPI_4
#define COLL_UCG_FRAMEWORK_VERSION MCA_COLL_BASE_VERSION_2_0_0
#elif COLL_UCG_FOR_OMPI_6
#define COLL_UCG_FRAMEWORK_VERSION MCA_COLL_BASE_VERSION_3_0_0
#else
#define COLL_UCG_FRAMEWORK_VERSION MCA_COLL_BASE_VERSION_2_4_0
#endif

/* ------------------------------------------------------------------ threads */

/** Does the program run with MPI_THREAD_MULTIPLE? Open MPI 5.0 sets its own flag in
 *  MPI_Init_thread() alone; after MPI_Session_init() only OPAL knows. */
static inline bool coll_ucg_threads(void) {
#if COLL_UCG_FOR_OMPI_4
    return ompi_mpi_thread_multiple;
#else
    return ompi_mpi_thread_multiple || opal_using_threads();
#endif
}

/* ------------------------------------------------------------------ the library around it */

/** Bytes that suffice for what MPI_Get_library_version() writes, also where the program was linked
 *  with another library of Open MPI's, that for MPI's standard ABI. */
enum { COLL_UCG_VERSION_BYTES = 8192 };
_Static_assert(COLL_UCG_VERSION_BYTES >= MPI_MAX_LIBRARY_VERSION_STRING, "MPI asks for that room");

/** Writes the version of the library that the program runs with. Returns false if it is unknown.
 *  From 6.0 on the function is in one of two libraries, and the component may not load the other
 *  one. */
static inline bool coll_ucg_library_version(char text[COLL_UCG_VERSION_BYTES]) {
    int length = 0;
#if COLL_UCG_FOR_OMPI_6
    int (*function)(char*, int*) = NULL;
    void* const symbol = dlsym(RTLD_DEFAULT, "PMPI_Get_library_version");
    memcpy(&function, &symbol, sizeof function);
    if (NULL == function) { /* ompi_info has the library that the component is linked with alone. */
        snprintf(text, COLL_UCG_VERSION_BYTES, "Open MPI v%d.%d", OMPI_MAJOR_VERSION,
                 OMPI_MINOR_VERSION);
        return true;
    }
    return MPI_SUCCESS == function(text, &length);
#else
    return MPI_SUCCESS == PMPI_Get_library_version(text, &length);
#endif
}

/* ------------------------------------------------------------------ a module's functions */

/**
 * Used when a module is enabled and disabled, for the function `name`: COLL_UCG_INSTALL makes the
 * module's own function that of the communicator, COLL_UCG_UNINSTALL puts back the previous one. Up
 * to 5.0 Open MPI does the former itself, and forgets all functions when a communicator ends.
 */
#if COLL_UCG_FOR_OMPI_6
#define COLL_UCG_INSTALL(comm, name, module_p)                                                     \
    MCA_COLL_INSTALL_API(comm, name, (module_p)->super.coll_##name, &(module_p)->super, "ucg")
#define COLL_UCG_UNINSTALL(comm, name, module_p)                                                   \
    do {                                                                                           \
        if (&(module_p)->super == (comm)->c_coll->coll_##name##_module) {                          \
            MCA_COLL_INSTALL_API(comm, name, (module_p)->previous.name.function,                   \
                                 (module_p)->previous.name.module, "ucg");                         \
        }                                                                                          \
    } while (0)
#else
#define COLL_UCG_INSTALL(comm, name, module_p) ((void)0)
#define COLL_UCG_UNINSTALL(comm, name, module_p) ((void)0)
#endif

/* ------------------------------------------------------------------ counts and displacements */

#if COLL_UCG_FOR_OMPI_6
typedef size_t coll_ucg_count_t;              /**< A number of elements. */
typedef ptrdiff_t coll_ucg_displ_t;           /**< A displacement in elements or bytes. */
typedef ompi_count_array_t coll_ucg_counts_t; /**< A vector of counts, of either width. */
typedef ompi_disp_array_t coll_ucg_displs_t;  /**< A vector of displacements, of either width. */
typedef ompi_disp_array_t coll_ucg_places_t;  /**< A vector of MPI_Aint. */
typedef ompi_disp_array_t coll_ucg_either_t;  /**< Displacements or MPI_Aint. */
enum { COLL_UCG_LARGE_COUNTS = 1 };
#else
typedef int coll_ucg_count_t;
typedef int coll_ucg_displ_t;
typedef const int* coll_ucg_counts_t;
typedef const int* coll_ucg_displs_t;
typedef const MPI_Aint* coll_ucg_places_t;
typedef const void* coll_ucg_either_t;
enum { COLL_UCG_LARGE_COUNTS = 0 };
#endif

/** Does one count have room for this number of elements, such as the sum of a vector of counts? */
static inline bool coll_ucg_is_countable(int64_t elements) {
    return COLL_UCG_LARGE_COUNTS || elements <= INT32_MAX;
}

/** The address of a vector's entries, and the bytes of each. */
typedef struct {
    const void* data;
    size_t width;
} coll_ucg_entries_t;

#if COLL_UCG_FOR_OMPI_6
#define COLL_UCG_NO_COUNTS OMPI_COUNT_ARRAY_NULL
#define COLL_UCG_NO_DISPLS OMPI_DISP_ARRAY_NULL
static inline bool coll_ucg_has_counts(coll_ucg_counts_t counts) {
    return NULL != ompi_count_array_ptr(counts);
}
static inline bool coll_ucg_has_displs(coll_ucg_displs_t displs) {
    return NULL != ompi_disp_array_ptr(displs);
}
static inline bool coll_ucg_has_places(coll_ucg_places_t places) {
    return coll_ucg_has_displs(places);
}
static inline size_t coll_ucg_count_at(coll_ucg_counts_t counts, size_t index) {
    return ompi_count_array_get(counts, index);
}
static inline ptrdiff_t coll_ucg_displ_at(coll_ucg_displs_t displs, size_t index) {
    return ompi_disp_array_get(displs, index);
}
static inline ptrdiff_t coll_ucg_place_at(coll_ucg_places_t places, size_t index) {
    return ompi_disp_array_get(places, index);
}
static inline coll_ucg_entries_t coll_ucg_counts_entries(coll_ucg_counts_t counts) {
    return (coll_ucg_entries_t){ompi_count_array_ptr(counts),
                                ompi_count_array_is_64bit(counts) ? sizeof(size_t) : sizeof(int)};
}
static inline coll_ucg_entries_t coll_ucg_displs_entries(coll_ucg_displs_t displs) {
    return (coll_ucg_entries_t){ompi_disp_array_ptr(displs),
                                ompi_disp_array_is_64bit(displs) ? sizeof(ptrdiff_t) : sizeof(int)};
}
static inline coll_ucg_entries_t coll_ucg_places_entries(coll_ucg_places_t places) {
    return coll_ucg_displs_entries(places);
}
/** Return the vector of these entries. */
static inline coll_ucg_counts_t coll_ucg_counts_of(coll_ucg_entries_t entries) {
    return sizeof(int) == entries.width ? ompi_count_array_create(entries.data)
                                        : ompi_count_array_create_c(entries.data);
}
static inline coll_ucg_displs_t coll_ucg_displs_of(coll_ucg_entries_t entries) {
    return sizeof(int) == entries.width ? ompi_disp_array_create(entries.data)
                                        : ompi_disp_array_create_c(entries.data);
}
/** Returns the entries of such a vector. `width`: bytes of an entry, where the vector does not
 *  tell. */
static inline coll_ucg_entries_t coll_ucg_either_entries(coll_ucg_either_t either, size_t width) {
    (void)width;
    return coll_ucg_displs_entries(either);
}
static inline coll_ucg_either_t coll_ucg_either_of(coll_ucg_entries_t entries) {
    return coll_ucg_displs_of(entries);
}
#else
#define COLL_UCG_NO_COUNTS NULL
#define COLL_UCG_NO_DISPLS NULL
static inline bool coll_ucg_has_counts(coll_ucg_counts_t counts) {
    return NULL != counts;
}
static inline bool coll_ucg_has_displs(coll_ucg_displs_t displs) {
    return NULL != displs;
}
static inline bool coll_ucg_has_places(coll_ucg_places_t places) {
    return NULL != places;
}
static inline size_t coll_ucg_count_at(coll_ucg_counts_t counts, size_t index) {
    return (size_t)counts[index];
}
static inline ptrdiff_t coll_ucg_displ_at(coll_ucg_displs_t displs, size_t index) {
    return displs[index];
}
static inline ptrdiff_t coll_ucg_place_at(coll_ucg_places_t places, size_t index) {
    return places[index];
}
static inline coll_ucg_entries_t coll_ucg_counts_entries(coll_ucg_counts_t counts) {
    return (coll_ucg_entries_t){counts, sizeof *counts};
}
static inline coll_ucg_entries_t coll_ucg_displs_entries(coll_ucg_displs_t displs) {
    return (coll_ucg_entries_t){displs, sizeof *displs};
}
static inline coll_ucg_entries_t coll_ucg_places_entries(coll_ucg_places_t places) {
    return (coll_ucg_entries_t){places, sizeof *places};
}
/** Return the vector of these entries. */
static inline coll_ucg_counts_t coll_ucg_counts_of(coll_ucg_entries_t entries) {
    return (coll_ucg_counts_t)entries.data;
}
static inline coll_ucg_displs_t coll_ucg_displs_of(coll_ucg_entries_t entries) {
    return (coll_ucg_displs_t)entries.data;
}
static inline coll_ucg_entries_t coll_ucg_either_entries(coll_ucg_either_t either, size_t width) {
    return (coll_ucg_entries_t){either, width};
}
static inline coll_ucg_either_t coll_ucg_either_of(coll_ucg_entries_t entries) {
    return entries.data;
}
#endif

/** Return the vector of entries of the component's own types. */
static inline coll_ucg_counts_t coll_ucg_own_counts(const coll_ucg_count_t* counts) {
    return coll_ucg_counts_of((coll_ucg_entries_t){counts, sizeof *counts});
}
static inline coll_ucg_displs_t coll_ucg_own_displs(const coll_ucg_displ_t* displs) {
    return coll_ucg_displs_of((coll_ucg_entries_t){displs, sizeof *displs});
}

/* ------------------------------------------------------------------ requests */

/**
 * Do MPI's bindings attach arrays, which they free at its end, to the request of a nonblocking
 * call, complete or not? Those of 6.0 for Fortran 2008 do so for calls with vectors of datatypes,
 * and for calls with vectors of counts where an INTEGER is no int.
 */
enum {
    COLL_UCG_ATTACHES_TYPES = COLL_UCG_FOR_OMPI_6,
    COLL_UCG_ATTACHES_VECTORS =
        COLL_UCG_FOR_OMPI_6 && 0 != OMPI_SIZEOF_FORTRAN_INTEGER && OMPI_SIZEOF_FORTRAN_INTEGER != 4
};

/**
 * Releases what was attached to a request after its end, or while it was never started. To be
 * called before the request and its communicator are given back. Bindings attach the datatypes,
 * operators and arrays of a call that is not complete when it returns, and another thread may end
 * it meanwhile.
 */
static inline void coll_ucg_free_attached(ompi_request_t* request) {
    const ompi_request_complete_fn_t callback = request->req_complete_cb;
    if (OPAL_UNLIKELY(NULL != callback)) {
        request->req_complete_cb = NULL;
        (void)callback(request);
    }
}

/* ------------------------------------------------------------------ progress */

/** Makes progress in Open MPI. Returns how many events it handled, where it tells; in 4.1 always
 *  0. */
static inline int coll_ucg_progress_all(void) {
#if COLL_UCG_FOR_OMPI_4
    opal_progress();
    return 0;
#else
    return opal_progress();
#endif
}

/* ------------------------------------------------------------------ communicators */

/** Does `one` come before `other` in an order of communicators that all processes which share some
 *  of them agree on? From 5.0 on processes may have different short ids for a communicator that was
 *  made of a group alone. */
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

/**
 * Takes the reference that a request has to its communicator. Up to 5.0, and in the first alphas of
 * 6.0, Open MPI gives some inter-communicators a reference that nobody holds, and MPI_Comm_free()
 * then drops all references, also those of requests. So the first request takes over the one that
 * nobody holds.
 */
static inline void coll_ucg_retain_comm(ompi_communicator_t* comm) {
#ifdef OMPI_COMM_IS_EXTRA_RETAIN
    if (OPAL_UNLIKELY(OMPI_COMM_IS_EXTRA_RETAIN(comm))) {
        comm->c_flags &= ~(uint32_t)OMPI_COMM_EXTRA_RETAIN;
        return;
    }
#endif
    OBJ_RETAIN(comm);
}

/* ------------------------------------------------------------------ what is not served */

/** May buffers lie on a device? No rank can know where the buffers of others lie. */
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

/** Must the program survive the end of its peers (mpirun --with-ft ulfm)? A wait would have to end
 *  when a peer has died or a communicator is revoked, and libucg's waits do not. */
static inline bool coll_ucg_survives_peers(void) {
#if COLL_UCG_FOR_OMPI_4
    return false;
#else
    return ompi_ftmpi_enabled;
#endif
}

/* ------------------------------------------------------------------ what processes publish */

/** Publishes `data` under the component's name. Returns an error of PMIx, or 0. */
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

/** Where to look for what a process has published, in order of rising cost. */
typedef enum {
    COLL_UCG_LOOK_HERE,    /**< In this process. */
    COLL_UCG_LOOK_ON_HOST, /**< At the PMIx server of this host. */
    COLL_UCG_LOOK_ANYWHERE /**< Wherever the process is: takes seconds if there is nothing. */
} coll_ucg_reach_t;

/** Why the length of published data is not known. */
enum {
    COLL_UCG_NOT_PUBLISHED = -1, /**< Nothing was published. */
    COLL_UCG_NOT_KNOWN = -2,     /**< PMIx does not tell; it may when it is asked again. */
    COLL_UCG_NOT_IN_TIME = -3 /**< PMIx does not tell after a wait. It also waits for a process of
                                   another host that publishes nothing. */
};

static inline ptrdiff_t coll_ucg_copy_published(const void* from, size_t length, void* data,
                                                size_t bytes) {
    const size_t wanted = length < bytes ? length : bytes;
    if (wanted > 0) { /* A caller that only asks whether there is anything passes no `data`. */
        memcpy(data, from, wanted);
    }
    return (ptrdiff_t)length;
}

/** Returns the reason that an error of PMIx stands for. */
static inline ptrdiff_t coll_ucg_why_not_found(int error) {
#if COLL_UCG_FOR_OMPI_4
    const int none = OPAL_ERR_NOT_FOUND;
    const int late = OPAL_ERR_TIMEOUT;
#else
    const int none = PMIX_ERR_NOT_FOUND;
    const int late = PMIX_ERR_TIMEOUT;
#endif
    if (none == error) {
        return COLL_UCG_NOT_PUBLISHED;
    }
    return late == error ? COLL_UCG_NOT_IN_TIME : COLL_UCG_NOT_KNOWN;
}

/** Finds what a process has published under `key`. Returns its length, and its first bytes, at most
 *  `bytes`, in `data`; returns a negative value if none was found. */
#if COLL_UCG_FOR_OMPI_4
static inline ptrdiff_t coll_ucg_find_published(const opal_process_name_t* name, const char* key,
                                                coll_ucg_reach_t reach, void* data, size_t bytes) {
    static const char* const restrictions[] = {OPAL_PMIX_OPTIONAL, OPAL_PMIX_IMMEDIATE, NULL};
    ptrdiff_t length;
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
    } else {
        length = coll_ucg_why_not_found(rc);
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
    ptrdiff_t length;
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
    } else {
        length = coll_ucg_why_not_found(rc);
    }
    if (NULL != found) {
        PMIX_VALUE_RELEASE(found);
    }
    PMIX_INFO_DESTRUCT(&info);
    return length;
}
#endif

#endif
