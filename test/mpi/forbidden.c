/*
 * A kernel that copies between the ranks at first and refuses later: one rank makes itself
 * unreadable (or is refused itself) while collectives are outstanding, and later all ranks do.
 *
 *   forbidden undumpable|user|filter RANK     by RANK first
 *
 * Prints "forbidden ok" from rank 0, or the reason why there is nothing to test.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <mpi.h>

#include "persistent.h"

enum kind { ALLREDUCE, BCAST, ALLTOALL, ALLGATHER, GATHER, SCATTER, KINDS };
enum form { BLOCKING, NONBLOCKING, PERSISTENT };
enum { NOBODY = 65534, COMMS = 2, BLOCKS = 3 };

/* The numbers of ints: 64 KiB, 256 KiB and 1 MiB. Only the first two are used for collectives
 * that are outstanding at once. */
static const int blocks[BLOCKS] = {1 << 14, 1 << 16, 1 << 18};

static int rank;
static int size;
static const char* way;

/** One collective. */
struct call {
    enum kind kind;
    int count; /**< The number of ints of a block. */
    int root;
    int round;
    int* in;
    int* out;
    MPI_Comm comm;
    MPI_Request request;
};

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "forbidden: rank %d, %s: wrong: %s\n", rank, way, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** root may read any process, so this makes it like any other user. */
static void drop_right_to_trace(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (0 == syscall(SYS_capget, &header, data)) {
        data[0].effective &= ~(1U << CAP_SYS_PTRACE);
        data[0].permitted &= ~(1U << CAP_SYS_PTRACE);
        data[0].inheritable &= ~(1U << CAP_SYS_PTRACE);
        (void)syscall(SYS_capset, &header, data);
    }
}

/** From now on the kernel refuses these two calls of this process with this error. */
static int filter_calls(unsigned error) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    return 0 == prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           0 == prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void forbid(void) {
    int done;
    if (0 == strcmp(way, "undumpable")) {
        done = 0 == prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    } else if (0 == strcmp(way, "user")) {
        done = 0 == seteuid(NOBODY);
    } else {
        done = filter_calls(0 == rank % 2 ? EPERM : ENOSYS);
    }
    require(done, "this process cannot forbid it");
}

/** Does the kernel copy from the memory of the next rank? */
static int kernel_copies(void) {
    long mine[2] = {(long)getpid(), (long)(size_t)&way};
    long next[2];
    char here[sizeof way];
    MPI_Sendrecv(mine, 2, MPI_LONG, (rank + size - 1) % size, 0, next, 2, MPI_LONG,
                 (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    struct iovec local = {here, sizeof here};
    struct iovec remote = {(void*)(size_t)next[1], sizeof here};
    const int copied = sizeof here == process_vm_readv((pid_t)next[0], &local, 1, &remote, 1, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    return copied;
}

/** The number that `from` has at `i` of its block for `to`. */
static int number(const struct call* call, int from, int to, int i) {
    return call->round + 11 * from + 5 * to + i;
}

static int in_blocks(const struct call* call) {
    return ALLTOALL == call->kind || SCATTER == call->kind ? size : 1;
}

static int out_blocks(const struct call* call) {
    return ALLREDUCE == call->kind || BCAST == call->kind || SCATTER == call->kind ? 1 : size;
}

static void fill(struct call* call) {
    for (int block = 0; block < in_blocks(call); block++) {
        for (int i = 0; i < call->count; i++) {
            call->in[block * call->count + i] = number(call, rank, block, i);
        }
    }
    for (int i = 0; i < out_blocks(call) * call->count; i++) {
        call->out[i] = BCAST == call->kind && rank == call->root ? call->in[i] : -1;
    }
}

/** The number that must be at `i` of block `block` of the result. */
static int expected(const struct call* call, int block, int i) {
    switch (call->kind) {
    case ALLREDUCE: return size * number(call, 0, 0, i) + 11 * (size * (size - 1) / 2);
    case BCAST: return number(call, call->root, 0, i);
    case SCATTER: return number(call, call->root, rank, i);
    case ALLTOALL: return number(call, block, rank, i);
    default: return GATHER == call->kind && rank != call->root ? -1 : number(call, block, 0, i);
    }
}

static void check(const struct call* call) {
    static const char* const names[KINDS] = {"sum for all",          "broadcast", "all to all",
                                             "block from everybody", "gather",    "scatter"};
    for (int block = 0; block < out_blocks(call); block++) {
        for (int i = 0; i < call->count; i++) {
            require(call->out[block * call->count + i] == expected(call, block, i),
                    names[call->kind]);
        }
    }
}

static void run(struct call* c) {
    switch (c->kind) {
    case ALLREDUCE: MPI_Allreduce(c->in, c->out, c->count, MPI_INT, MPI_SUM, c->comm); break;
    case BCAST: MPI_Bcast(c->out, c->count, MPI_INT, c->root, c->comm); break;
    case ALLTOALL:
        MPI_Alltoall(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->comm);
        break;
    case ALLGATHER:
        MPI_Allgather(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->comm);
        break;
    case GATHER:
        MPI_Gather(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->root, c->comm);
        break;
    default: MPI_Scatter(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->root, c->comm);
    }
}

static void start_once(struct call* c) {
    MPI_Request* const r = &c->request;
    switch (c->kind) {
    case ALLREDUCE: MPI_Iallreduce(c->in, c->out, c->count, MPI_INT, MPI_SUM, c->comm, r); break;
    case BCAST: MPI_Ibcast(c->out, c->count, MPI_INT, c->root, c->comm, r); break;
    case ALLTOALL:
        MPI_Ialltoall(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->comm, r);
        break;
    case ALLGATHER:
        MPI_Iallgather(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->comm, r);
        break;
    case GATHER:
        MPI_Igather(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->root, c->comm, r);
        break;
    default: MPI_Iscatter(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, c->root, c->comm, r);
    }
}

static void prepare(struct call* c) {
    MPI_Request* const r = &c->request;
    const MPI_Info none = MPI_INFO_NULL;
    const int n = c->count;
    switch (c->kind) {
    case ALLREDUCE: MPI_Allreduce_init(c->in, c->out, n, MPI_INT, MPI_SUM, c->comm, none, r); break;
    case BCAST: MPI_Bcast_init(c->out, n, MPI_INT, c->root, c->comm, none, r); break;
    case ALLTOALL:
        MPI_Alltoall_init(c->in, n, MPI_INT, c->out, n, MPI_INT, c->comm, none, r);
        break;
    case ALLGATHER:
        MPI_Allgather_init(c->in, n, MPI_INT, c->out, n, MPI_INT, c->comm, none, r);
        break;
    case GATHER:
        MPI_Gather_init(c->in, n, MPI_INT, c->out, n, MPI_INT, c->root, c->comm, none, r);
        break;
    default: MPI_Scatter_init(c->in, n, MPI_INT, c->out, n, MPI_INT, c->root, c->comm, none, r);
    }
}

static struct call make(enum kind kind, int block, MPI_Comm comm, int round) {
    struct call call = {kind, blocks[block], round % size, round,
                        NULL, NULL,          comm,         MPI_REQUEST_NULL};
    const size_t bytes = (size_t)size * (size_t)call.count * sizeof *call.in;
    call.in = malloc(bytes);
    call.out = malloc(bytes);
    require(NULL != call.in && NULL != call.out, "no memory");
    return call;
}

static void discard(struct call* call) {
    free(call->in);
    free(call->out);
}

static void one_by_one(MPI_Comm comm, int round) {
    for (int block = 0; block < BLOCKS; block++) {
        for (int kind = 0; kind < KINDS; kind++) {
            struct call call = make((enum kind)kind, block, comm, round + block);
            for (int form = BLOCKING; form <= PERSISTENT; form++) {
                fill(&call);
                if (BLOCKING == form) {
                    run(&call);
                } else if (NONBLOCKING == form) {
                    start_once(&call);
                    MPI_Wait(&call.request, MPI_STATUS_IGNORE);
                } else {
                    prepare(&call);
                    MPI_Start(&call.request);
                    MPI_Wait(&call.request, MPI_STATUS_IGNORE);
                    MPI_Request_free(&call.request);
                }
                check(&call);
            }
            discard(&call);
        }
    }
}

/** Starts all kinds on each communicator one after another, and waits for them in the opposite
 * order. In between, ranks that are to forbid the kernel's copies do so. */
static void at_once(const MPI_Comm* comms, int round, enum form form, int forbids) {
    struct call calls[2 * KINDS * COMMS];
    int count = 0;
    for (int block = 0; block < 2; block++) {
        for (int kind = 0; kind < KINDS; kind++) {
            for (int i = 0; i < COMMS; i++) {
                calls[count++] = make((enum kind)kind, block, comms[i], round + i);
            }
        }
    }
    for (int again = 0; again < (PERSISTENT == form ? 3 : 1); again++) {
        for (int i = 0; i < count; i++) {
            fill(&calls[i]);
            if (PERSISTENT != form) {
                start_once(&calls[i]);
                continue;
            }
            if (0 == again) {
                prepare(&calls[i]);
            }
            MPI_Start(&calls[i].request);
        }
        if (forbids && (PERSISTENT != form || 1 == again)) {
            if (rank % 2 == 0) { /* Some ranks have begun to copy by then. */
                int flag;
                MPI_Test(&calls[0].request, &flag, MPI_STATUS_IGNORE);
            }
            forbid();
        }
        for (int i = count; i-- > 0;) {
            MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE);
            check(&calls[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        if (PERSISTENT == form) {
            MPI_Request_free(&calls[i].request);
        }
        discard(&calls[i]);
    }
}

static void run_all(int first) {
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    MPI_Comm later;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    one_by_one(comms[0], 1);
    one_by_one(comms[1], 2);
    at_once(comms, 3, NONBLOCKING, rank == first);
    one_by_one(comms[1], 4);
    one_by_one(comms[0], 5);
    at_once(comms, 6, PERSISTENT, 0);
    at_once(comms, 7, PERSISTENT, rank != first);
    at_once(comms, 8, NONBLOCKING, 0);
    one_by_one(comms[0], 9);
    MPI_Comm_dup(comms[1], &later);
    one_by_one(later, 10);
    MPI_Comm_free(&later);
    MPI_Comm_free(&comms[1]);
}

int main(int argc, char** argv) {
    require(3 == argc, "arguments");
    way = argv[1];
    drop_right_to_trace();
    const int is_root = 0 == geteuid();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int possible = kernel_copies() && (is_root || 0 != strcmp(way, "user"));
    MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (possible) {
        run_all((int)strtol(argv[2], NULL, 10) % size);
    }
    if (0 == rank) {
        printf(possible ? "forbidden ok\n" : "nothing to forbid\n");
    }
    if (0 == strcmp(way, "user") && is_root) {
        require(0 == seteuid(0), "this process is root no more");
    }
    MPI_Finalize();
    return 0;
}
