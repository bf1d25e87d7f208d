/*
 * UCG: collective communication for MPI stacks, native to UCX.
 *
 * Conventions
 *   - Names follow UCX: ucg_<object>_<verb>, handles end in _h, values in _t, output arguments come
 *     last and end in _p. Parameter structures begin with a field_mask; a field whose bit is not
 *     set has its default, so structures can grow without breaking callers. Fields that have no
 *     bit are always read: `rank`, `size`, `oob_allgather` and `oob_arg` of ucg_group_params_t;
 *     `type`, `flags`, `root`, both buffers, `count` and `element_bytes` of ucg_coll_params_t, as
 *     far as the collective has them.
 *   - Every function that can fail returns ucg_status_t. Nothing throws. The first place that finds
 *     an error writes one line to standard error, as UCG_LOG_LEVEL (error, warn, info, debug,
 *     trace) allows; of UCG_ERR_UNSUPPORTED and _BUSY, which callers may expect, from debug on.
 *   - Handles are owned by the caller, who destroys them: requests before their group, groups
 *     before their context; too early a call fails with UCG_ERR_BUSY; the handle stays valid. With
 *     a null handle or output pointer behaviour is undefined, except where a function allows it.
 *   - A started collective that ends with an error, other than that of a fallible operator or of a
 *     layout's function, ends its group: all that is in progress or started there fails as well.
 *     The buffers are the caller's again. Free the requests, destroy the group, and make another if
 *     the ranks still live.
 *   - So does a call that fails before its collective has started, unless with UCG_ERR_UNSUPPORTED,
 *     _INVALID_PARAM or _BUSY: others may have started it, and would take this rank's next one for
 *     it. A caller who starts nothing where others do, for UCG_ERR_INVALID_PARAM, because
 *     ucg_coll_init() has failed or for a reason of its own, calls ucg_group_fail(). The ranks of
 *     this host are told of all such failures. Ranks of other hosts wait for what a rank that has
 *     failed owes them, unless the caller tells them by its own means.
 *   - The header is clean, without warnings, in C++ and in C99 with anonymous unions, which gcc and
 *     clang have. Programs compiled with the header of an earlier minor version go on working with
 *     later libraries.
 *   - Threads: a context, with its groups and requests, may be used by one thread at a time;
 *     different contexts by different threads freely. With UCG_THREAD_MODE_MULTIPLE any thread may
 *     call any function at any time, but: ucg_group_create() must not make two groups that have two
 *     processes in common at the same time; collectives of a group must start in one order on all
 *     ranks. While an operator runs no lock is held: it may wait for another group's collective.
 *   - The caller's functions return: they must not throw, longjmp or end their thread.
 *   - A context is one rank of a group, not several. A forked child leaves its copies of groups and
 *     contexts alone; those that use shared memory only it may destroy.
 *   - Counts are 64-bit and in elements; displacements are in elements of the datatype.
 *   - Buffers belong to the caller and must stay valid and unchanged (send) or untouched (receive)
 *     until the request completes.
 *
 * A program without MPI that uses all of this: ucg_coll/capi/example/fork_allreduce.c.
 */
#ifndef UCG_H_
#define UCG_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucg/ucg_operators.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UCG_API_MAJOR 0
#define UCG_API_MINOR 2
#define UCG_API_VERSION ((UCG_API_MAJOR << 16) | UCG_API_MINOR)

#define UCG_BIT(i) (1ull << (i))

/** Results. Negative values are errors. */
typedef enum {
    UCG_OK = 0,                 /**< Success. */
    UCG_INPROGRESS = 1,         /**< Started and not complete yet. */
    UCG_ERR_INVALID_PARAM = -1, /**< The caller's argument is wrong. */
    UCG_ERR_UNSUPPORTED = -2,   /**< Not available in this case. Nothing was started. */
    UCG_ERR_UNREACHABLE = -3,   /**< No transport reaches a peer. */
    UCG_ERR_NO_MEMORY = -4,     /**< Process memory or shared memory is exhausted. */
    UCG_ERR_IO_ERROR = -5,      /**< The operating system or a transport failed. */
    UCG_ERR_TIMED_OUT = -6,     /**< A peer did not answer in time. */
    UCG_ERR_DISAGREEMENT = -7,  /**< Ranks gave different values where equal ones are needed. */
    UCG_ERR_INTERNAL = -8,      /**< An unexpected condition: please report it. */
    UCG_ERR_BUSY = -9           /**< Still in use, or too early. Nothing was done. */
} ucg_status_t;

/** Returns a sentence that describes a status, in static storage. Does not fail. */
const char* ucg_status_string(ucg_status_t status);

/** Returns the version of the library at run time. Any pointer may be NULL. Does not fail. */
void ucg_get_version(unsigned* major_p, unsigned* minor_p, unsigned* release_p);
/** Returns the version as text, "0.2.0", in static storage. Does not fail. */
const char* ucg_get_version_string(void);

/** Takes one log line, "[host:pid] ucg error: ...\n". Any threads, also several at once, under any
 *  lock: call no ucg_*. */
typedef void (*ucg_log_handler_t)(const char* line, void* arg);
/** Sends the process's log lines that UCG_LOG_LEVEL lets pass to `handler`; NULL: to standard
 *  error. The level is the process's, too: each new context sets it. Returns the former handler,
 *  and its `arg` in *old_arg_p (may be NULL); both must stay valid, for a line that another thread
 *  has begun may still go there. Any thread. */
ucg_log_handler_t ucg_log_set_handler(ucg_log_handler_t handler, void* arg, void** old_arg_p);

typedef struct ucg_config* ucg_config_h;
typedef struct ucg_context* ucg_context_h;
typedef struct ucg_group* ucg_group_h;
typedef struct ucg_group_creation* ucg_group_creation_h;
typedef struct ucg_request* ucg_coll_h;

/* ------------------------------------------------------------------ configuration */

/** Reads the configuration: defaults, then the environment (variables UCG_*). One thread at a time
 *  uses it. UCG_ERR_INVALID_PARAM: a variable has a value that cannot be parsed. */
ucg_status_t ucg_config_read(ucg_config_h* config_p);
/** Sets one variable by its name without the prefix, for example ("TLS", "shm").
 *  UCG_ERR_INVALID_PARAM: no such variable, or no value that can be parsed; nothing changed. */
ucg_status_t ucg_config_modify(ucg_config_h config, const char* name, const char* value);
/** Prints every variable with its value and meaning, as `ucx_info -f` does. */
void ucg_config_print(ucg_config_h config, FILE* stream);
/** Releases a configuration; contexts that were made with it have copies. NULL is ignored. */
void ucg_config_release(ucg_config_h config);

/* ------------------------------------------------------------------ context */

typedef enum {
    UCG_THREAD_MODE_SINGLE = 0,  /**< One thread at a time, which the caller ensures. */
    UCG_THREAD_MODE_MULTIPLE = 1 /**< Any thread at any time; the library locks. */
} ucg_thread_mode_t;

enum ucg_context_params_field {
    UCG_CONTEXT_PARAM_FIELD_THREAD_MODE = UCG_BIT(0),
    UCG_CONTEXT_PARAM_FIELD_PROGRESS = UCG_BIT(1),
    UCG_CONTEXT_PARAM_FIELD_NAME = UCG_BIT(2),
    UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES = UCG_BIT(3),
    UCG_CONTEXT_PARAM_FIELD_YIELDS = UCG_BIT(4),
    UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK = UCG_BIT(5),
    UCG_CONTEXT_PARAM_FIELD_ESTIMATED_NUM_EPS = UCG_BIT(6),
    UCG_CONTEXT_PARAM_FIELD_ESTIMATED_NUM_PPN = UCG_BIT(7)
};

enum ucg_progress_flags {
    /** Only messages that have arrived, and what follows from them, need be handled. Calls with
     *  this flag are so frequent that timers and the like should wait for a call without it. */
    UCG_PROGRESS_FLAG_MESSAGES = UCG_BIT(0)
};

/** Defaults: UCG_THREAD_MODE_SINGLE, no progress function, the name "ucg", local_processes unknown
 *  (then the number of the host's CPUs sizes shared memory), yields 0, no local_rank or estimate.
 */
typedef struct {
    uint64_t field_mask; /**< Bits of ucg_context_params_field. */
    ucg_thread_mode_t thread_mode;
    /** Makes progress on the caller's own communication (an MPI's) and returns how many events it
     *  handled; 0: none, or, without UCG_PROGRESS_FLAG_MESSAGES, unknown. `flags`: bits of
     *  ucg_progress_flags. Blocking calls, ucg_group_create among them, call it often while they
     *  wait, with the flag, and if that returns 0 also without it, else each eighth time. They call
     *  it before they return, too, each one while there are events, else each eighth. A barrier,
     *  and a call that has slept, call it with the flag until it returns 0. May be NULL. It may
     *  call ucg_context_poll on this context, prepare, start, post and free collectives of it, and
     *  wait for them (but see ucg_coll_run()): the call that it interrupts goes on meanwhile. */
    unsigned (*progress)(void* progress_arg, unsigned flags);
    void* progress_arg;
    const char* name; /**< The context's name in messages to the user; copied. */
    /** Number of processes of the job on this host, in all groups. If they outnumber the host's
     *  CPUs, a rank that waits yields its processor at once. */
    uint32_t local_processes;
    /** Not 0: waiting ranks are to yield their processors (Open MPI's mpi_yield_when_idle) to
     *  others that counts of ranks do not show. Waits then begin by yielding, until they find that
     *  nobody takes the processors. */
    int yields;
    /** Index of this process among the job's processes on this host, from 0. It chooses the core in
     *  the machine that UCG_MACHINE names; where that is set, no group is made without it. */
    uint32_t local_rank;
    /** As in ucp_params_t, for UCX to choose transports: a process's peers (usually the job), and
     *  processes that share a host's adapters. In all processes the same; UCX_NUM_EPS, _PPN win. */
    size_t estimated_num_eps, estimated_num_ppn;
} ucg_context_params_t;

/** Like ucg_context_create(), for languages that do not read headers: `api_major` and `api_minor`
 *  are the version of the header that the caller was written for. */
ucg_status_t ucg_context_create_version(unsigned api_major, unsigned api_minor,
                                        const ucg_context_params_t* params, ucg_config_h config,
                                        ucg_context_h* context_p);

/** Makes a context; one per process is enough. Does not communicate. `config` may be NULL: then the
 *  environment is read. `params` may be NULL. UCG_ERR_INVALID_PARAM: a variable that cannot be
 *  parsed, or a thread_mode that is none. UCG_ERR_UNSUPPORTED: this header is of another major
 *  version than the library, or of a later minor one; libraries serve older callers. */
static inline ucg_status_t ucg_context_create(const ucg_context_params_t* params,
                                              ucg_config_h config, ucg_context_h* context_p) {
    return ucg_context_create_version(UCG_API_MAJOR, UCG_API_MINOR, params, config, context_p);
}

/** Advances all collectives in progress. Returns how many messages completed. Never blocks. */
unsigned ucg_context_progress(ucg_context_h context);

/** The outcome of a collective that ucg_coll_post() started and that has ended. */
typedef struct {
    void* user_data;
    ucg_status_t status; /**< UCG_OK or an error. */
} ucg_completion_t;

/** Does what ucg_context_progress() does, then writes up to `max` outcomes of posted collectives,
 *  in the order in which they ended. Returns how many. Never blocks. Looks at each group in which
 *  something is in progress, and there at no more than 64 collectives, however many are queued. */
unsigned ucg_context_poll(ucg_context_h context, ucg_completion_t* completions, unsigned max);

/** Closes the connections to all peers after delivering what was sent, in bounded time. The caller
 *  then synchronises with the peers by its own means (a fence of the launcher), meanwhile calling
 *  ucg_context_progress to serve slower peers, and then calls ucg_context_destroy. This call may be
 *  left out. No collective may be in progress, or be started afterwards. */
ucg_status_t ucg_context_disconnect(ucg_context_h context);

/** Destroys a context. Local. UCG_ERR_BUSY: it has groups, or is making some; it stays valid. */
ucg_status_t ucg_context_destroy(ucg_context_h context);

/* ------------------------------------------------------------------ memory */

/**
 * Allocates `size` bytes for buffers that the other processes of this host read and reduce in
 * place, where a buffer from elsewhere has to be copied into shared memory first. Zeroed, aligned
 * to a page, whole pages: for buffers, not for small objects. All pages are allocated when the call
 * returns, on the NUMA node where the calling thread runs (or as its memory policy says): call it
 * on the rank that uses the memory most. UCG_ERR_NO_MEMORY: UCG_HEAP_SIZE, or the memory that the
 * machine or the control group has left, does not suffice; using the memory later never raises a
 * signal. UCG_ERR_BUSY: the first group that shares memory is being made, by this thread or by
 * ucg_group_create_start(), and its memory does not exist yet; call again later. `size` 0 gives
 * NULL. The caller owns the memory; what is not freed goes with the context. It belongs to this
 * process: a forked child must not use it. Does not communicate.
 *
 * With libucg_heap.so preloaded, what malloc gives (blocks of 16 KiB and more) serves as well.
 */
ucg_status_t ucg_mem_alloc(ucg_context_h context, size_t size, void** address_p);

/** Frees memory of ucg_mem_alloc; NULL is ignored. No collective may still use it, on any rank. Any
 *  other address is UCG_ERR_INVALID_PARAM. */
ucg_status_t ucg_mem_free(ucg_context_h context, void* address);

/* ------------------------------------------------------------------ group */

/** The caller's own allgather, used while a group is made: gathers `bytes` bytes of `send_buffer`
 *  from every rank of the group into `recv_buffer` (size * bytes) in rank order. Blocking; returns
 *  0 on success, the same on all ranks if it can. If parts are missing or not in rank order, the
 *  group ends with UCG_ERR_INVALID_PARAM on the ranks that see it. Meanwhile it may make progress,
 *  also on a context that is not UCG_THREAD_MODE_MULTIPLE. */
typedef int (*ucg_oob_allgather_cb_t)(void* oob_arg, const void* send_buffer, void* recv_buffer,
                                      size_t bytes);

/** Starts such an allgather for ucg_group_create_start() and returns without waiting; 0 on success.
 *  Both buffers stay valid until it has ended. Each creation has one in progress at a time. */
typedef int (*ucg_oob_allgather_start_cb_t)(void* oob_arg, const void* send_buffer,
                                            void* recv_buffer, size_t bytes);

/** Tests the allgather that was started last. UCG_INPROGRESS: it has not ended; else its outcome.
 *  Does not wait; may make progress like ucg_oob_allgather_cb_t. */
typedef ucg_status_t (*ucg_oob_allgather_test_cb_t)(void* oob_arg);

enum ucg_group_params_field {
    UCG_GROUP_PARAM_FIELD_NAME = UCG_BIT(0),
    UCG_GROUP_PARAM_FIELD_OOB_START = UCG_BIT(1), /**< oob_allgather_start, oob_allgather_test */
    UCG_GROUP_PARAM_FIELD_FLAGS = UCG_BIT(2)
};

enum ucg_group_flags {
    /** The caller of ucg_group_create_start() does nothing but ucg_group_create_test() until the
     *  group is made. Where all ranks say so, they may time messages between their hosts. */
    UCG_GROUP_FLAG_ATTENDED = UCG_BIT(0)
};

typedef struct {
    uint64_t field_mask;                  /**< Bits of ucg_group_params_field. */
    uint32_t rank;                        /**< This process's rank, less than `size`. Required. */
    uint32_t size;                        /**< Number of ranks, 1 to 2^31 - 1. Required. */
    ucg_oob_allgather_cb_t oob_allgather; /**< Required by ucg_group_create(). */
    void* oob_arg;
    const char* name;                                 /**< Its name in messages; copied. */
    ucg_oob_allgather_start_cb_t oob_allgather_start; /**< Required by ucg_group_create_start(). */
    ucg_oob_allgather_test_cb_t oob_allgather_test;   /**< Likewise. */
    uint64_t flags;                                   /**< Bits of ucg_group_flags. */
} ucg_group_params_t;

/**
 * Makes a group. Collective over its ranks: every rank calls it, in the same order relative to the
 * other groups of these processes. Either all ranks succeed or all fail, except with
 * UCG_ERR_NO_MEMORY and UCG_ERR_INTERNAL, which occur on one rank; the program should then end.
 * Others may wait for its part of an exchange; those past the last exchange have a group whose
 * collectives fail. Threads that call this with one context do so one after the other; threads that
 * call anything else do not wait for it. A process that has no context passes NULL: all then fail
 * with UCG_ERR_UNREACHABLE, and need not wait for it. UCG_ERR_BUSY: see ucg_group_create_start().
 */
ucg_status_t ucg_group_create(ucg_context_h context, const ucg_group_params_t* params,
                              ucg_group_h* group_p);

/**
 * Starts to make a group and returns without waiting for any other process. Collective, with the
 * same outcomes as ucg_group_create(), but in any order: a process may make several groups at a
 * time, and others by ucg_group_create() meanwhile, also from within the exchange callbacks; none
 * waits for another. `params` is copied, but not what oob_arg points to. Needs
 * UCG_GROUP_PARAM_FIELD_OOB_START. `context` may be NULL as for ucg_group_create().
 *
 * A process makes the memory that it shares with its first group of processes of its host. Until
 * that memory exists, other groups in which it shares memory end with UCG_ERR_BUSY on all ranks,
 * also on those that call ucg_group_create() for them. Nothing has changed then: all may try again.
 */
ucg_status_t ucg_group_create_start(ucg_context_h context, const ucg_group_params_t* params,
                                    ucg_group_creation_h* creation_p);

/** Advances a creation without waiting. UCG_INPROGRESS: call it again; always so within its own
 *  callbacks, and while another thread's ucg_group_create() meets processes for the first time.
 *  Else `creation` is no more, and *group_p is the group, or the status says why there is none.
 *  Other ranks may use the group already. One thread at a time. */
ucg_status_t ucg_group_create_test(ucg_group_creation_h creation, ucg_group_h* group_p);

/** Gives up a creation that has not ended; local, not from its callbacks. Other ranks wait for
 *  ever, or get a group whose collectives fail. Buffers of a started exchange stay allocated. */
void ucg_group_create_abandon(ucg_group_creation_h creation);

/** Frees the plans not in use that the group keeps for calls like earlier ones, if all its plans
 *  take more than about `bytes` bytes. Local. */
ucg_status_t ucg_group_trim(ucg_group_h group, uint64_t bytes);

/** Gives a group up. Local; any thread, also in callbacks. What is in progress on this rank, and
 *  what is started later, ends with an error, UCG_ERR_IO_ERROR unless another came first; ends of
 *  posted collectives are told as ever. The group's ranks on this host get errors as well. Then
 *  buffers are the caller's, requests can be freed, and the group can be destroyed. */
void ucg_group_fail(ucg_group_h group);

/** Destroys a group. Local. UCG_ERR_BUSY: collectives of the group are not freed, or one is in
 *  progress; it stays valid. */
ucg_status_t ucg_group_destroy(ucg_group_h group);

/* ------------------------------------------------------------------ collectives */

typedef enum {
    UCG_COLL_BARRIER = 0,
    UCG_COLL_BCAST,
    UCG_COLL_REDUCE,
    UCG_COLL_ALLREDUCE,
    UCG_COLL_ALLGATHER,
    UCG_COLL_ALLGATHERV,
    UCG_COLL_ALLTOALL,
    UCG_COLL_ALLTOALLV,
    UCG_COLL_GATHER,
    UCG_COLL_GATHERV,
    UCG_COLL_SCATTER,
    UCG_COLL_SCATTERV,
    UCG_COLL_REDUCE_SCATTER,
    UCG_COLL_REDUCE_SCATTER_BLOCK,
    UCG_COLL_SCAN,
    UCG_COLL_EXSCAN,
    UCG_COLL_NEIGHBOR_ALLTOALLV, /**< Serves all five of MPI's neighbourhood collectives. */
    UCG_COLL_LAST
} ucg_coll_type_t;

/** Room for future types of collectives: arrays that callers index by type keep their size. */
enum { UCG_COLL_MAX = 64 };

/** Returns the type's name, "allreduce", in static storage; NULL for an unknown value. */
const char* ucg_coll_type_string(ucg_coll_type_t type);

/** Returns the bytes of an element; 0 for UCG_DT_OPAQUE and unknown values. Does not fail. */
uint64_t ucg_datatype_bytes(ucg_datatype_t datatype);

/** A caller's operator: target[i] = left[i] op right[i] for `count` elements. `target` may be
 *  `left` or `right`; otherwise the three do not overlap. Must be associative. Called by the thread
 *  that runs or waits for the collective; if no thread waits for it, by any thread that makes
 *  progress in the context, also one that waits for another collective. */
typedef void (*ucg_reduce_cb_t)(void* reduce_arg, const void* left, const void* right, void* target,
                                size_t count);

/**
 * A caller's operator, as above, that can fail: returns UCG_OK or an error (a negative value). The
 * collective then ends with that error on this rank, whose result is undefined. It is not called
 * again, but the collective goes on to its end, so that no rank waits for this one. The other ranks
 * are not told, and their results are undefined where this rank has failed to combine operands.
 */
typedef ucg_status_t (*ucg_fallible_reduce_cb_t)(void* reduce_arg, const void* left,
                                                 const void* right, void* target, size_t count);

enum ucg_coll_flags {
    UCG_COLL_FLAG_IN_PLACE = UCG_BIT(0),        /**< MPI_IN_PLACE: no `send_buffer`. */
    UCG_COLL_FLAG_NON_COMMUTATIVE = UCG_BIT(1), /**< UCG_OP_USER: operands stay in rank order. */
    UCG_COLL_FLAG_FALLIBLE = UCG_BIT(2), /**< UCG_OP_USER: `fallible_reduce`, not `reduce`. */
    /** The program computes between the start of the call and its end. Ranks of one host then do
     *  units of work of others where they reach one another's memory: from the start on other
     *  processes may read and write the buffers. The same on all ranks. */
    UCG_COLL_FLAG_NONBLOCKING = UCG_BIT(3)
};

enum ucg_coll_params_field {
    UCG_COLL_PARAM_FIELD_REDUCE = UCG_BIT(0),  /**< datatype, op, reduce, reduce_arg */
    UCG_COLL_PARAM_FIELD_VECTORS = UCG_BIT(1), /**< send_counts ... recv_displs */
    /** Instead of UCG_COLL_PARAM_FIELD_VECTORS: int_send_counts ... int_recv_displs, as MPI's. */
    UCG_COLL_PARAM_FIELD_INT_VECTORS = UCG_BIT(2),
    UCG_COLL_PARAM_FIELD_NEIGHBORS = UCG_BIT(3), /**< neighbors */
    UCG_COLL_PARAM_FIELD_LAYOUTS = UCG_BIT(4)    /**< send_layout, recv_layout */
};

/**
 * Functions of a caller that alone knows how its elements lie in memory. Both deal with bytes
 * [offset, offset + bytes) of the packed form of the elements that begin at `buffer`: `pack` writes
 * them to `piece`, `unpack` reads them there. Pieces come in ascending order; each byte comes once.
 * Both return UCG_OK or an error, with which the collective then ends on this rank, undefined for
 * others as with a fallible operator. Called under no lock: `pack` by the thread that starts the
 * collective, `unpack` by the thread that is told of its end, before that.
 */
typedef struct {
    int64_t extent; /**< Bytes from the beginning of an element to that of the next. */
    ucg_status_t (*pack)(void* layout_arg, const void* buffer, uint64_t offset, void* piece,
                         uint64_t bytes);
    ucg_status_t (*unpack)(void* layout_arg, void* buffer, uint64_t offset, const void* piece,
                           uint64_t bytes);
    void* layout_arg;
} ucg_layout_t;

/** The ranks at the other ends of a rank's edges in a neighbourhood collective. */
typedef struct {
    const int* destinations;
    const int* sources;
    uint32_t destination_count;
    uint32_t source_count;
} ucg_neighbors_t;

/**
 * One collective call, with MPI's meaning of every argument.
 *
 * `count`: bcast, reduce, allreduce, scan, exscan: elements of the whole vector; allgather,
 * alltoall, gather, scatter, reduce_scatter_block: elements of one rank's block; gatherv, scatterv:
 * elements of the caller's own block. bcast uses `recv_buffer` on every rank, the root too.
 *
 * Vectors: `recv_counts` for allgatherv, gatherv (root), alltoallv, reduce_scatter; `recv_displs`
 * for the first three; `send_counts`, `send_displs` for alltoallv and scatterv (root); all four for
 * neighbor_alltoallv, with an entry for each destination, or source. They are read during
 * ucg_coll_init only. Displacements may be negative. Both are in elements, of 64 bits or, with
 * UCG_COLL_PARAM_FIELD_INT_VECTORS, of `int`: the int_ name of the same pointer. Ranks may differ
 * in this. Where both bits are set, the int_ ones count.
 *
 * neighbor_alltoallv: block i of the send buffer goes to rank `neighbors->destinations[i]`, block i
 * of the receive buffer comes from `neighbors->sources[i]`. A rank may be named several times, the
 * caller too: the k-th block that rank a sends to rank b is the k-th that b receives from a, and
 * has the same length. Blocks to send may overlap: those of an allgather all begin at one place.
 *
 * Layouts: of the elements of either buffer, NULL where they are dense; copied by ucg_coll_init,
 * which allocates memory for packed elements. `element_bytes` then is the length of a packed
 * element, which operators see, and a displacement counts extents. Ranks may differ in this.
 */
typedef struct {
    uint64_t field_mask; /**< Bits of ucg_coll_params_field. */
    ucg_coll_type_t type;
    uint32_t flags; /**< Bits of ucg_coll_flags. */
    uint32_t root;
    const void* send_buffer;
    void* recv_buffer;
    uint64_t count;
    uint64_t element_bytes; /**< Size of one element; must agree with `datatype` unless opaque. */
    ucg_datatype_t datatype;
    ucg_op_t op;
    __extension__ union {
        ucg_reduce_cb_t reduce;
        ucg_fallible_reduce_cb_t fallible_reduce;
    };
    void* reduce_arg;
    __extension__ union {
        const uint64_t* send_counts;
        const int* int_send_counts;
    };
    __extension__ union {
        const int64_t* send_displs;
        const int* int_send_displs;
    };
    __extension__ union {
        const uint64_t* recv_counts;
        const int* int_recv_counts;
    };
    __extension__ union {
        const int64_t* recv_displs;
        const int* int_recv_displs;
    };
    const ucg_layout_t* send_layout;
    const ucg_layout_t* recv_layout;
    const ucg_neighbors_t* neighbors; /**< Read during ucg_coll_init only. */
} ucg_coll_params_t;

/** Makes all ranks of the group agree on what only some of them know and what helps to choose the
 *  algorithm for a collective such as this one: for neighbor_alltoallv, the lengths of the blocks
 *  between hosts. Later ucg_coll_init() calls use it. Blocks; all ranks call it, or none, in one
 *  order with their other collectives. ucg_coll_run() does so by itself now and then, and what it
 *  says of progress functions and callbacks holds for this call. */
ucg_status_t ucg_coll_agree(ucg_group_h group, const ucg_coll_params_t* params);

/** Prepares a collective: plans it, or finds the plan in the group's cache. Does not communicate.
 *  Every rank of the group must prepare and start the same collectives in the same order.
 *  UCG_ERR_UNSUPPORTED: nothing was started; whether it is returned depends only on facts that all
 *  ranks of the group know alike. */
ucg_status_t ucg_coll_init(ucg_group_h group, const ucg_coll_params_t* params, ucg_coll_h* coll_p);

/** Starts a prepared collective, or starts it again after it has completed. Never blocks. Returns
 *  UCG_OK (already complete) or UCG_INPROGRESS; UCG_ERR_BUSY: it was in progress, and goes on. Of
 *  one that has failed with its group it returns that error. */
ucg_status_t ucg_coll_start(ucg_coll_h coll);

/**
 * Called once when a collective that ucg_coll_start_cb() has started ends, under no lock, by a
 * thread that is in ucg_context_progress() or ucg_context_poll(), or that waits for another
 * collective of the context. It may prepare, start, post and free collectives, `coll` too (but see
 * ucg_coll_run()), and call nothing that waits. `status`: UCG_OK or an error.
 */
typedef void (*ucg_coll_cb_t)(void* cb_arg, ucg_coll_h coll, ucg_status_t status);

/** Like ucg_coll_start(), but if it returns UCG_INPROGRESS, `callback` is called when `coll` ends.
 *  Until then `coll` must not be tested or waited for, and starting or freeing it fails with
 *  UCG_ERR_BUSY. A callback that is NULL is UCG_ERR_INVALID_PARAM, and nothing starts. */
ucg_status_t ucg_coll_start_cb(ucg_coll_h coll, ucg_coll_cb_t callback, void* cb_arg);

/**
 * Like ucg_coll_start(), for callers with many collectives in progress: if it returns
 * UCG_INPROGRESS, ucg_context_poll() returns the outcome once, with `user_data`. Until then `coll`
 * must not be tested or waited for, and starting or freeing it fails with UCG_ERR_BUSY. `looks` is
 * not NULL. In: how often to check for the end before returning; it does not check where ranks
 * share processors or help one another. Out: how often it has checked.
 */
ucg_status_t ucg_coll_post(ucg_coll_h coll, unsigned* looks, void* user_data);

/** The second half of ucg_coll_post(), for what ucg_coll_start() or _restart() left in progress.
 *  UCG_ERR_BUSY: it is posted already, and its outcome is told as that post says. */
ucg_status_t ucg_coll_post_started(ucg_coll_h coll, unsigned* looks, void* user_data);

/** Makes progress, in several calls also on other groups. UCG_OK: the collective is complete; else
 *  UCG_INPROGRESS or an error. One that is not in progress keeps its outcome: UCG_OK at first. */
ucg_status_t ucg_coll_test(ucg_coll_h coll);

/** Blocks until complete: spins, yields where ranks outnumber CPUs or others want these, sleeps as
 *  UCG_SLEEP_AFTER says; calls the context's progress function. UCG_ERR_IO_ERROR, as of tests, also
 *  if a rank's process has ended on this host; tools/doc/limits.md: where that is not found. */
ucg_status_t ucg_coll_wait(ucg_coll_h coll);

/**
 * Starts a prepared collective with other buffers and blocks until it is complete: what
 * ucg_coll_run() does for a call that differs from the prepared one in its buffers alone, but with
 * the least overhead. Later starts use the same buffers. Some ranks may repeat a prepared
 * collective while others run it anew. UCG_ERR_UNSUPPORTED, and nothing was started: an alltoallv
 * whose algorithm may change from call to call, because links between hosts are known, or a
 * neighbor_alltoallv between hosts with several ranks; run it anew. UCG_ERR_BUSY: it was in
 * progress, and goes on.
 */
ucg_status_t ucg_coll_repeat(ucg_coll_h coll, const void* send_buffer, void* recv_buffer);

/** Like ucg_coll_repeat(), but returns what ucg_coll_start() does, or UCG_ERR_UNSUPPORTED. */
ucg_status_t ucg_coll_restart(ucg_coll_h coll, const void* send_buffer, void* recv_buffer);

/** Frees a prepared collective. UCG_ERR_BUSY: it is in progress, or its outcome is not told yet. */
ucg_status_t ucg_coll_free(ucg_coll_h coll);

/**
 * Does init, start, wait and free, with the least overhead: for blocking MPI collectives. In some
 * calls of two types ranks first agree, by other collectives of the group, on what none of them
 * knows alone: of alltoallv, where UCG_TOPOLOGY tells the links between hosts, and of
 * neighbor_alltoallv, where there are several hosts and one has several ranks. Until such a call
 * returns, neither the context's progress function nor a callback may start a collective of the
 * same group: ranks that start it later would do so in another order.
 */
ucg_status_t ucg_coll_run(ucg_group_h group, const ucg_coll_params_t* params);

/** Does init and post, with the least overhead: for nonblocking MPI collectives. Only if it returns
 *  UCG_INPROGRESS does it give a handle, which it writes before the outcome can be told, and which
 *  the caller frees after that. */
ucg_status_t ucg_coll_run_or_post(ucg_group_h group, const ucg_coll_params_t* params,
                                  unsigned* looks, void* user_data, ucg_coll_h* coll_p);

/* ------------------------------------------------------------------ what happened */

enum ucg_group_attr_field {
    UCG_GROUP_ATTR_FIELD_STARTED = UCG_BIT(0),
    UCG_GROUP_ATTR_FIELD_PLANNED = UCG_BIT(1),
    UCG_GROUP_ATTR_FIELD_PLACES = UCG_BIT(2),    /**< host_count, ranks_on_host */
    UCG_GROUP_ATTR_FIELD_TRANSPORTS = UCG_BIT(3) /**< uses_shm, uses_ucx */
};

typedef struct {
    uint64_t field_mask; /**< Bits of ucg_group_attr_field: fields to fill; others stay. */
    /** Number of collectives started, by type; 0 beyond the known types. Allreduces and
     *  neighbourhood collectives include those by which ranks agree on the lengths of blocks, where
     *  the best algorithm depends on them. */
    uint64_t started[UCG_COLL_MAX];
    uint64_t planned;       /**< Plans made; all other starts found theirs in the cache. */
    uint32_t host_count;    /**< Hosts that the group spans. */
    uint32_t ranks_on_host; /**< Ranks of the group on this rank's host. */
    int uses_shm;           /**< Does shared memory carry the messages on this host? */
    int uses_ucx;           /**< Does UCX carry messages? */
} ucg_group_attr_t;

/** Fills the fields of *attr_p that `attr_p->field_mask` names. */
ucg_status_t ucg_group_query(ucg_group_h group, ucg_group_attr_t* attr_p);

/** Prints which algorithm serves a call, and why: the candidates with their predicted costs. */
ucg_status_t ucg_group_explain(ucg_group_h group, const ucg_coll_params_t* params, FILE* stream);

#ifdef __cplusplus
}
#endif

#endif
