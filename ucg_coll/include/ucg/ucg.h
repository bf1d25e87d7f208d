/*
 * UCG: collective communication for MPI stacks, native to UCX.
 *
 * Conventions
 *   - Names follow UCX: ucg_<object>_<verb>, handles end in _h, values in _t, output arguments come
 *     last and end in _p. Parameter structures begin with a field_mask; a field whose bit is not
 *     set has its default, so structures can grow without breaking callers.
 *   - Every function that can fail returns ucg_status_t. Nothing throws. The first place that finds
 *     an error writes one line to standard error, as UCG_LOG_LEVEL (error, warn, info, debug,
 *     trace) allows.
 *   - Handles are owned by the caller, who destroys them: requests before their group, groups
 *     before their context; what comes too early is UCG_ERR_BUSY, and the handle stays valid. A
 *     null handle is never valid except where a function says so.
 *   - The header is clean in C99 and in C++, without warnings. Programs compiled with the header of
 *     an earlier minor version go on working with later libraries.
 *   - Threads: a context, with its groups and requests, may be used by one thread at a time;
 *     different contexts by different threads freely. With UCG_THREAD_MODE_MULTIPLE any thread may
 *     call any function at any time, but: ucg_group_create() must not make two groups that have two
 *     processes in common at the same time; collectives of a group must start in one order on all
 *     ranks. While an operator runs no lock is held: it may wait for another group's collective.
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
    UCG_ERR_UNSUPPORTED = -2,   /**< Not offered here. Nothing was started. */
    UCG_ERR_UNREACHABLE = -3,   /**< No transport reaches a peer. */
    UCG_ERR_NO_MEMORY = -4,     /**< Process memory or shared memory is exhausted. */
    UCG_ERR_IO_ERROR = -5,      /**< The operating system or a transport failed. */
    UCG_ERR_TIMED_OUT = -6,     /**< A peer did not answer in time. */
    UCG_ERR_DISAGREEMENT = -7,  /**< Ranks gave different values where equal ones are needed. */
    UCG_ERR_INTERNAL = -8,      /**< Unexpected: please report. */
    UCG_ERR_BUSY = -9           /**< Still in use, or not the time for it. Nothing was done. */
} ucg_status_t;

/** A sentence for a status; static storage. Does not fail. */
const char* ucg_status_string(ucg_status_t status);

/** The version of the library at run time. Any pointer may be NULL. Does not fail. */
void ucg_get_version(unsigned* major_p, unsigned* minor_p, unsigned* release_p);
/** "0.2.0"; static storage. Does not fail. */
const char* ucg_get_version_string(void);

/** Takes a line, "[host:pid] ucg error: ...\n". Any thread, under any lock: call no ucg_*. */
typedef void (*ucg_log_handler_t)(const char* line, void* arg);
/** From here on `handler` takes the process's log, as far as UCG_LOG_LEVEL lets it come; NULL:
 *  standard error does. Returns who took it before, and that one's `arg`. Any thread. */
ucg_log_handler_t ucg_log_set_handler(ucg_log_handler_t handler, void* arg, void** old_arg_p);

typedef struct ucg_config* ucg_config_h;
typedef struct ucg_context* ucg_context_h;
typedef struct ucg_group* ucg_group_h;
typedef struct ucg_group_creation* ucg_group_creation_h;
typedef struct ucg_request* ucg_coll_h;

/* ------------------------------------------------------------------ configuration */

/**
 * Reads the configuration: defaults, then the environment (variables UCG_*).
 * Fails with UCG_ERR_INVALID_PARAM when a variable has a value that cannot be parsed.
 */
ucg_status_t ucg_config_read(ucg_config_h* config_p);
/** Sets one variable by its name without the prefix, for example ("TLS", "shm"). */
ucg_status_t ucg_config_modify(ucg_config_h config, const char* name, const char* value);
/** Prints every variable with its value and meaning, as `ucx_info -f` does. */
void ucg_config_print(ucg_config_h config, FILE* stream);
void ucg_config_release(ucg_config_h config);

/* ------------------------------------------------------------------ context */

typedef enum {
    UCG_THREAD_MODE_SINGLE = 0,  /**< One thread at a time; the caller sees to it. */
    UCG_THREAD_MODE_MULTIPLE = 1 /**< Any thread at any time; the library locks. */
} ucg_thread_mode_t;

enum ucg_context_params_field {
    UCG_CONTEXT_PARAM_FIELD_THREAD_MODE = UCG_BIT(0),
    UCG_CONTEXT_PARAM_FIELD_PROGRESS = UCG_BIT(1),
    UCG_CONTEXT_PARAM_FIELD_NAME = UCG_BIT(2),
    UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES = UCG_BIT(3),
    UCG_CONTEXT_PARAM_FIELD_YIELDS = UCG_BIT(4),
    UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK = UCG_BIT(5)
};

enum ucg_progress_flags {
    /** Messages that are there, and what follows from them: this call is made so often that
     *  timers and the like wait for one without the flag. */
    UCG_PROGRESS_FLAG_MESSAGES = UCG_BIT(0)
};

typedef struct {
    uint64_t field_mask; /**< Bits of ucg_context_params_field. */
    ucg_thread_mode_t thread_mode;
    /** Drives the host's own communication and returns how many things happened there; 0: nothing,
     *  or, without UCG_PROGRESS_FLAG_MESSAGES, that it cannot tell. `flags`: bits of
     *  ucg_progress_flags. Blocking calls, ucg_group_create among them, call it often while they
     *  wait, with the flag and, if that returns 0, without it; and before they return, by turns:
     *  each one while there are messages, else each eighth. A barrier, and a call that has slept,
     *  call it with the flag until it returns 0. May be NULL. Of this context it may call
     *  ucg_context_poll, and prepare, start, post and free collectives; nothing that waits. */
    unsigned (*progress)(void* progress_arg, unsigned flags);
    void* progress_arg;
    const char* name; /**< For messages; copied. */
    /** Processes of the job on this host, in whatever groups: when they outnumber its CPUs, waiting
     *  yields the processor at once. */
    uint32_t local_processes;
    /** Not 0: processes that wait are asked to give their processors away (Open MPI's
     *  mpi_yield_when_idle), since others want them whom counts of ranks do not show. Waits begin
     *  so, until they find that nobody takes what they give. */
    int yields;
    /** Which of the job's processes on this host this one is, from 0: the core that it gets of a
     *  machine which UCG_MACHINE names. Without it no group is made where that is set. */
    uint32_t local_rank;
} ucg_context_params_t;

/** What ucg_context_create() calls, with the version of the header that the caller was compiled
 *  with; for languages that do not read headers. */
ucg_status_t ucg_context_create_version(unsigned api_major, unsigned api_minor,
                                        const ucg_context_params_t* params, ucg_config_h config,
                                        ucg_context_h* context_p);

/** Makes a context: one per process is enough. Does not communicate. `config` may be NULL: then the
 *  environment is read. `params` may be NULL. UCG_ERR_UNSUPPORTED: this header is of another major
 *  version than the library, or of a later minor one; libraries serve older callers. */
static inline ucg_status_t ucg_context_create(const ucg_context_params_t* params,
                                              ucg_config_h config, ucg_context_h* context_p) {
    return ucg_context_create_version(UCG_API_MAJOR, UCG_API_MINOR, params, config, context_p);
}

/**
 * Advances all outstanding collectives of the context. Returns how many messages completed: 0 means
 * that there was nothing to do. Never blocks.
 */
unsigned ucg_context_progress(ucg_context_h context);

/** The end of a collective that ucg_coll_post() has started. */
typedef struct {
    void* user_data;
    ucg_status_t status; /**< UCG_OK or an error. */
} ucg_completion_t;

/** Does what ucg_context_progress() does, then takes up to `max` ends of posted collectives, in
 *  their order. Returns how many. Never blocks, and costs the same however many are outstanding
 *  that have not moved. */
unsigned ucg_context_poll(ucg_context_h context, ucg_completion_t* completions, unsigned max);

/**
 * Parts from all peers in good order: delivers what was sent, closes the connections. Bounded in
 * time. To be followed by the caller's own synchronisation with the peers (a fence of the
 * launcher), during which ucg_context_progress serves slower peers, then by ucg_context_destroy.
 * May be left out. No collective may be in progress or started afterwards.
 */
ucg_status_t ucg_context_disconnect(ucg_context_h context);

/** Destroys a context; local. UCG_ERR_BUSY: it has groups, or makes some; it stays as it is. */
ucg_status_t ucg_context_destroy(ucg_context_h context);

/* ------------------------------------------------------------------ memory */

/**
 * Memory for buffers that the other processes of this host read and reduce in place, where a
 * buffer from elsewhere has to be copied into shared memory first. Zeroed, aligned to a page, whole
 * pages: for buffers, not for small objects. All pages are there when the call returns, on the NUMA
 * node where the calling thread runs (or as its memory policy says): allocate on the rank that uses
 * the memory most. Fails with UCG_ERR_NO_MEMORY when UCG_HEAP_SIZE, or the memory that the machine
 * or the control group has left, does not suffice; never later, by a signal. UCG_ERR_BUSY: the
 * first group that shares memory is being made, by this thread or by ucg_group_create_start(), and
 * its memory is not there yet; call again later. `size` 0 gives NULL.
 * The caller owns the memory; what is left goes with the context. It belongs to this process: a
 * forked child must not use it. Does not communicate.
 *
 * With libucg_heap.so preloaded, what malloc gives (blocks of 16 KiB and more) serves as well.
 */
ucg_status_t ucg_mem_alloc(ucg_context_h context, size_t size, void** address_p);

/** Frees memory of ucg_mem_alloc; NULL is nothing. No collective may still use it, on any rank. Any
 *  other address is UCG_ERR_INVALID_PARAM. */
ucg_status_t ucg_mem_free(ucg_context_h context, void* address);

/* ------------------------------------------------------------------ group */

/**
 * The caller's own way to exchange a few bytes among the ranks of a group, used while the group is
 * made: gathers `bytes` bytes of `send_buffer` from every rank into `recv_buffer` (size * bytes) in
 * rank order. Blocking; returns 0 on success, the same on all ranks if it can. Meanwhile it may
 * make progress, also on a context that is not UCG_THREAD_MODE_MULTIPLE.
 */
typedef int (*ucg_oob_allgather_cb_t)(void* oob_arg, const void* send_buffer, void* recv_buffer,
                                      size_t bytes);

/** The same for ucg_group_create_start(): starts the exchange and returns; 0 on success. Both
 *  buffers stay until it has ended. Of one creation one exchange is under way at a time. */
typedef int (*ucg_oob_allgather_start_cb_t)(void* oob_arg, const void* send_buffer,
                                            void* recv_buffer, size_t bytes);

/** UCG_INPROGRESS: the exchange that was started last has not ended. Else how it has. Does not
 *  wait; may make progress, as above. */
typedef ucg_status_t (*ucg_oob_allgather_test_cb_t)(void* oob_arg);

enum ucg_group_params_field {
    UCG_GROUP_PARAM_FIELD_NAME = UCG_BIT(0),
    UCG_GROUP_PARAM_FIELD_OOB_START = UCG_BIT(1) /**< oob_allgather_start, oob_allgather_test */
};

typedef struct {
    uint64_t field_mask;                  /**< Bits of ucg_group_params_field. */
    uint32_t rank;                        /**< This process's rank. Required. */
    uint32_t size;                        /**< Number of ranks. Required. */
    ucg_oob_allgather_cb_t oob_allgather; /**< Required by ucg_group_create(). */
    void* oob_arg;
    const char* name;                                 /**< For messages; copied. */
    ucg_oob_allgather_start_cb_t oob_allgather_start; /**< Required by ucg_group_create_start(). */
    ucg_oob_allgather_test_cb_t oob_allgather_test;   /**< The same. */
} ucg_group_params_t;

/**
 * Makes a group. Collective over its ranks: every rank calls it, in the same order relative to the
 * other groups of these processes. Either all ranks succeed or all fail, but for UCG_ERR_NO_MEMORY
 * and UCG_ERR_INTERNAL: these are of this rank alone, and the program should end. Others may wait
 * for its part of an exchange; those that have had the last one have a group whose collectives
 * fail. Threads that call this function with one context do so one after the other; those that do
 * anything else do not wait for it. A process that has no context passes NULL: all fail then, with
 * UCG_ERR_UNREACHABLE, and need not wait for it. UCG_ERR_BUSY: see ucg_group_create_start().
 */
ucg_status_t ucg_group_create(ucg_context_h context, const ucg_group_params_t* params,
                              ucg_group_h* group_p);

/**
 * Starts to make a group and returns without waiting for any other process. Collective, with the
 * same outcomes as ucg_group_create(), but in any order: a process may make several groups at a
 * time, and others by ucg_group_create() meanwhile, also from within the functions that exchange;
 * none waits for another. `params` are copied, what oob_arg points to is not. Needs
 * UCG_GROUP_PARAM_FIELD_OOB_START. `context` may be NULL as for ucg_group_create().
 *
 * A process makes the memory that it shares with its first group of processes of its host. Until
 * that is there, other groups in which it shares memory end with UCG_ERR_BUSY, at all ranks alike,
 * also at those that call ucg_group_create() for them, and nothing has changed: all may try again.
 */
ucg_status_t ucg_group_create_start(ucg_context_h context, const ucg_group_params_t* params,
                                    ucg_group_creation_h* creation_p);

/** Goes on with it as far as that is possible without waiting. UCG_INPROGRESS: to be called again;
 *  always so within its own functions, and while another thread's ucg_group_create() meets
 *  processes for the first time. Else it has ended, with *group_p or the reason why there is none,
 *  and `creation` is no more. Other ranks may use the group already. One thread at a time. */
ucg_status_t ucg_group_create_test(ucg_group_creation_h creation, ucg_group_h* group_p);

/** Gives up a group that is not made yet; local, and not from within its functions. Others wait for
 *  ever, or have a group whose collectives fail. Buffers of an exchange under way stay. */
void ucg_group_create_abandon(ucg_group_creation_h creation);

/** Gives back what the group keeps for calls like earlier ones, if that is more than about so many
 *  bytes; local. What requests have and what is in progress stays. */
ucg_status_t ucg_group_trim(ucg_group_h group, uint64_t bytes);

/** Destroys a group; local. UCG_ERR_BUSY: requests of the group are not freed, or a collective is
 * in progress; it stays as it is. */
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

/** Room for types of collectives to come: what callers have for each of them keeps its size. */
enum { UCG_COLL_MAX = 64 };

/** "allreduce"; static storage. NULL for an unknown value. */
const char* ucg_coll_type_string(ucg_coll_type_t type);

/** Datatypes that the library's own operators understand. */
typedef enum {
    UCG_DT_OPAQUE = 0, /**< element_bytes long, no operator of the library applies. */
    UCG_DT_INT8,
    UCG_DT_INT16,
    UCG_DT_INT32,
    UCG_DT_INT64,
    UCG_DT_UINT8,
    UCG_DT_UINT16,
    UCG_DT_UINT32,
    UCG_DT_UINT64,
    UCG_DT_FLOAT32,
    UCG_DT_FLOAT64,
    UCG_DT_FLOAT16,     /**< IEEE 754 binary16; each step is rounded to nearest, ties to even. */
    UCG_DT_BFLOAT16,    /**< The upper half of a float32; the same. */
    UCG_DT_COMPLEX64,   /**< Two float32: real part, imaginary part. */
    UCG_DT_COMPLEX128,  /**< Two float64. */
    UCG_DT_INT16_INT32, /**< Pairs for MINLOC and MAXLOC: what C makes of a structure of a value */
    UCG_DT_INT32_INT32, /**< and an index, with the bytes between and behind them. */
    UCG_DT_INT64_INT32,
    UCG_DT_FLOAT32_INT32,
    UCG_DT_FLOAT64_INT32,
    UCG_DT_INT64_INT64,
    UCG_DT_FLOAT64_INT64,
    UCG_DT_LAST
} ucg_datatype_t;

/** Bytes of an element; 0 for UCG_DT_OPAQUE and unknown values. Does not fail. */
uint64_t ucg_datatype_bytes(ucg_datatype_t datatype);

/** Of complex numbers sums and products are defined, of pairs MINLOC and MAXLOC alone. */
typedef enum {
    UCG_OP_SUM = 0,
    UCG_OP_PROD,
    UCG_OP_MIN,
    UCG_OP_MAX,
    UCG_OP_LAND, /**< Logical operators and bitwise ones: integers only. */
    UCG_OP_LOR,
    UCG_OP_LXOR,
    UCG_OP_BAND,
    UCG_OP_BOR,
    UCG_OP_BXOR,
    UCG_OP_USER,   /**< `reduce` below. */
    UCG_OP_MINLOC, /**< Of equal values the one with the lowest index. */
    UCG_OP_MAXLOC,
    UCG_OP_LAST
} ucg_op_t;

/**
 * A caller's operator: target[i] = left[i] op right[i] for `count` elements. `target` may be `left`
 * or `right`; otherwise the three do not overlap. Must be associative. Called by the thread that
 * runs or waits for the collective; for a request that nobody waits for, by any that makes progress
 * in the context.
 */
typedef void (*ucg_reduce_cb_t)(void* reduce_arg, const void* left, const void* right, void* target,
                                size_t count);

/**
 * The same of an operator that can fail: returns UCG_OK or an error (a negative value). An error is
 * what the collective then ends with on this rank, whose result is undefined; it goes on to its
 * end, without further calls, so that no rank waits for this one. The others are told nothing, and
 * what this rank has failed to combine is undefined in their results as well.
 */
typedef ucg_status_t (*ucg_fallible_reduce_cb_t)(void* reduce_arg, const void* left,
                                                 const void* right, void* target, size_t count);

enum ucg_coll_flags {
    UCG_COLL_FLAG_IN_PLACE = UCG_BIT(0),        /**< MPI_IN_PLACE: `send` is not used. */
    UCG_COLL_FLAG_NON_COMMUTATIVE = UCG_BIT(1), /**< UCG_OP_USER: operands stay in rank order. */
    UCG_COLL_FLAG_FALLIBLE = UCG_BIT(2), /**< UCG_OP_USER: `fallible_reduce`, not `reduce`. */
    /** Between the start of the call and its end the program computes. Ranks of one host then do
     *  what others of them owe, where they reach one another's memory: from the start on buffers
     *  are read and written by other processes. The same on all ranks. */
    UCG_COLL_FLAG_NONBLOCKING = UCG_BIT(3)
};

enum ucg_coll_params_field {
    UCG_COLL_PARAM_FIELD_REDUCE = UCG_BIT(0),  /**< datatype, op, reduce, reduce_arg */
    UCG_COLL_PARAM_FIELD_VECTORS = UCG_BIT(1), /**< send_counts ... recv_displs */
    /** Instead of UCG_COLL_PARAM_FIELD_VECTORS: int_send_counts ... int_recv_displs, MPI's own. */
    UCG_COLL_PARAM_FIELD_INT_VECTORS = UCG_BIT(2),
    UCG_COLL_PARAM_FIELD_NEIGHBORS = UCG_BIT(3), /**< neighbors */
    UCG_COLL_PARAM_FIELD_LAYOUTS = UCG_BIT(4)    /**< send_layout, recv_layout */
};

/**
 * How elements lie in memory, where only the caller knows. Both functions deal with bytes
 * [offset, offset + bytes) of the packed form of the elements that begin at `buffer`: `pack` writes
 * them to `piece`, `unpack` takes them from there. Pieces come in ascending order; each byte comes
 * once. Return UCG_OK or an error, with which the collective then ends on this rank, undefined for
 * the others as with a fallible operator. Called under no lock: `pack` by the thread that starts
 * the collective, `unpack` by the one that learns of its end, before it does.
 */
typedef struct {
    int64_t extent; /**< Bytes from where an element begins to where the next one does. */
    ucg_status_t (*pack)(void* layout_arg, const void* buffer, uint64_t offset, void* piece,
                         uint64_t bytes);
    ucg_status_t (*unpack)(void* layout_arg, void* buffer, uint64_t offset, const void* piece,
                           uint64_t bytes);
    void* layout_arg;
} ucg_layout_t;

/** The ends of a rank's edges in a neighbourhood collective. */
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
 * elements of the own block. bcast uses `recv_buffer` on every rank, the root too.
 *
 * Vectors: `recv_counts` for allgatherv, gatherv (root), alltoallv, reduce_scatter; `recv_displs`
 * for the first three; `send_counts`, `send_displs` for alltoallv and scatterv (root); all four for
 * neighbor_alltoallv, with an entry for each destination, or source. They are
 * read during ucg_coll_init only. Displacements may be negative. Both are in elements, of 64 bits
 * or, with UCG_COLL_PARAM_FIELD_INT_VECTORS, of `int`: the int_ name of the same pointer. Ranks may
 * differ in this. Where both bits are set, the int_ ones count.
 *
 * neighbor_alltoallv: block i of the send buffer goes to rank `neighbors->destinations[i]`, block i
 * of the receive buffer comes from `neighbors->sources[i]`. A rank may be named several times, the
 * caller too: the k-th block that a rank sends to another is the k-th that this one receives from
 * it, and has its length. Blocks to send may overlap: those of an allgather all begin at one place.
 *
 * Layouts: of the elements of either buffer, NULL where they are dense; copied by ucg_coll_init,
 * which takes memory for what is packed. `element_bytes` then is the length of a packed element,
 * which operators see, and a displacement counts extents. Ranks may differ in this.
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
    __extension__ union {
        void* reduce_arg;
        const ucg_neighbors_t* neighbors; /**< Read during ucg_coll_init only. */
    };
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
} ucg_coll_params_t;

/**
 * Has all ranks of the group agree on what is known to some of them alone and helps to choose how
 * a collective such as this one is served: of neighbor_alltoallv how long the blocks between hosts
 * are. What is prepared after it by ucg_coll_init() goes by that. Blocks; all ranks call it, or
 * none, among their other collectives in one order. ucg_coll_run() does so by itself now and then.
 */
ucg_status_t ucg_coll_agree(ucg_group_h group, const ucg_coll_params_t* params);

/**
 * Prepares a collective: plans it, or finds the plan in the group's cache. Does not communicate.
 * Every rank of the group must prepare and start the same collectives in the same order.
 * UCG_ERR_UNSUPPORTED: nothing was started; whether it is returned depends only on what all ranks
 * of the group know alike.
 */
ucg_status_t ucg_coll_init(ucg_group_h group, const ucg_coll_params_t* params, ucg_coll_h* coll_p);

/** Starts a prepared collective, or starts it again after it has completed. Never blocks. Returns
 *  UCG_OK (already complete) or UCG_INPROGRESS; UCG_ERR_BUSY: it is in progress, and goes on. */
ucg_status_t ucg_coll_start(ucg_coll_h coll);

/**
 * Tells of the end of a collective that ucg_coll_start_cb() has started, once: called, under no
 * lock, by a thread that is in ucg_context_progress() or ucg_context_poll(), or that waits for
 * another collective of the context. It may prepare, start, post and free collectives, `coll` too;
 * nothing that waits. `status`: UCG_OK or an error.
 */
typedef void (*ucg_coll_cb_t)(void* cb_arg, ucg_coll_h coll, ucg_status_t status);

/** The same as ucg_coll_start(), but if it returns UCG_INPROGRESS, `callback` is told of the end.
 *  Until then the collective must not be tested or waited for, and starting or freeing it is
 *  UCG_ERR_BUSY. A callback that is NULL is UCG_ERR_INVALID_PARAM, and nothing starts. */
ucg_status_t ucg_coll_start_cb(ucg_coll_h coll, ucg_coll_cb_t callback, void* cb_arg);

/**
 * The same as ucg_coll_start(), for callers with many collectives outstanding: if it returns
 * UCG_INPROGRESS, ucg_context_poll() tells once when the collective has ended, by `user_data`.
 * Until then it must not be tested or waited for, and starting or freeing it is UCG_ERR_BUSY.
 * `looks`, not NULL. In: how often to check for the end before returning; where ranks share
 * processors it is not checked. Out: how often it was.
 */
ucg_status_t ucg_coll_post(ucg_coll_h coll, unsigned* looks, void* user_data);

/** The second half of ucg_coll_post(): of what ucg_coll_start() or _restart() left in progress. */
ucg_status_t ucg_coll_post_started(ucg_coll_h coll, unsigned* looks, void* user_data);

/** Makes progress. UCG_OK: the collective is complete; else UCG_INPROGRESS or an error. */
ucg_status_t ucg_coll_test(ucg_coll_h coll);

/** Blocks until complete: spins, yields where ranks outnumber CPUs or others want these, sleeps as
 *  UCG_SLEEP_AFTER says, calls the context's progress function. UCG_ERR_IO_ERROR, as of tests, also
 *  if a rank's process has ended on this host; tools/doc/limits.md says where that is not found. */
ucg_status_t ucg_coll_wait(ucg_coll_h coll);

/**
 * Starts a prepared collective with other buffers and blocks until it is complete: what
 * ucg_coll_run() does for a call that differs from the prepared one in its buffers alone, on the
 * shortest path there is. The buffers stay those of later starts. Ranks may repeat what they have
 * prepared, or run it anew, as each likes. UCG_ERR_UNSUPPORTED, and nothing was started: an
 * alltoallv whose algorithm may change from call to call, as links between hosts are known, or a
 * neighbor_alltoallv between hosts with several ranks; run it anew. UCG_ERR_BUSY: it is in
 * progress, and goes on.
 */
ucg_status_t ucg_coll_repeat(ucg_coll_h coll, const void* send_buffer, void* recv_buffer);

/** The same without blocking: returns what ucg_coll_start() returns, or UCG_ERR_UNSUPPORTED. */
ucg_status_t ucg_coll_restart(ucg_coll_h coll, const void* send_buffer, void* recv_buffer);

/** Frees a prepared collective. UCG_ERR_BUSY: it is in progress, or its end is not told yet. */
ucg_status_t ucg_coll_free(ucg_coll_h coll);

/** init, start, wait and free in one call, the shortest: what a blocking MPI collective needs. */
ucg_status_t ucg_coll_run(ucg_group_h group, const ucg_coll_params_t* params);

/** init and post in one call, on the shortest path: what a nonblocking MPI collective needs. Only
 *  if it returns UCG_INPROGRESS is there a handle, written before the end can be told, for the
 *  caller to free after that. */
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
    uint64_t field_mask; /**< Bits of ucg_group_attr_field: what is asked for. The rest is left. */
    /** Collectives started, by type; 0 for types that there are not. Among allreduces and
     *  neighbourhood collectives are those by which ranks agree on what blocks have, where the best
     *  algorithm depends on it. */
    uint64_t started[UCG_COLL_MAX];
    uint64_t planned;       /**< Plans made; the other starts were served by the cache. */
    uint32_t host_count;    /**< Hosts that the group spans. */
    uint32_t ranks_on_host; /**< Ranks of the group on this rank's host. */
    int uses_shm;           /**< Does shared memory carry the messages on this host? */
    int uses_ucx;           /**< Does UCX carry messages? */
} ucg_group_attr_t;

/** What ucg_group_query() calls; for languages that do not read headers. */
ucg_status_t ucg_group_query_fields(ucg_group_h group, ucg_group_attr_t* attr_p);

/** Tells of a group what `attr_p->field_mask` asks for. */
static inline ucg_status_t ucg_group_query(ucg_group_h group, ucg_group_attr_t* attr_p) {
    return ucg_group_query_fields(group, attr_p); /* The symbol of this name is that of API 0.1. */
}

/** Prints which algorithm, and why, serves a call: candidates with predicted cost. */
ucg_status_t ucg_group_explain(ucg_group_h group, const ucg_coll_params_t* params, FILE* stream);

#ifdef __cplusplus
}
#endif

#endif
