/*
 * A short MPI program in which one rank stops at a named point: it says so in one named pipe and
 * waits for a byte from another pipe. What happens to the job meanwhile is up to the test.
 *
 * usage: points POINT RANK, with the pipes in POINTS_SAY and POINTS_GO
 *
 * Points between calls of MPI are lines of main(). Points inside libucg are its calls of C library
 * functions, which this program defines in the C library's place, and calls of a user-defined
 * operator.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <mpi.h>

enum { COMMS = 24, LONG_COUNT = (1 << 20) / sizeof(long) };

static const char* wanted = "";
static int stopped;
static int finalizing;

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "points: wrong: %s\n", what);
        abort();
    }
}

static void stop(const char* point) {
    char byte;
    int fd = open(getenv("POINTS_SAY"), O_WRONLY | O_CLOEXEC);
    require(fd >= 0, "the pipe to say where");
    stopped = 1;
    dprintf(fd, "%s %d\n", point, (int)getpid());
    close(fd);
    fd = open(getenv("POINTS_GO"), O_RDONLY | O_CLOEXEC);
    require(fd >= 0, "the pipe to go on");
    require(1 == read(fd, &byte, 1), "the byte to go on");
    close(fd);
}

/** Stops if this is the chosen point. A point that is passed again is ignored. */
static void at(const char* point) {
    if (!stopped && 0 == strcmp(wanted, point)) {
        stop(point);
    }
}

/* ------------------------------------------------------------------ inside the library */

/** Was the caller, whose return address is given, code of libucg? */
static int in_library(const void* address) {
    Dl_info info;
    const char* name = 0 != dladdr(address, &info) ? strrchr(info.dli_fname, '/') : NULL;
    return NULL != name && 0 == strncmp(name, "/libucg.so", strlen("/libucg.so"));
}

/** Returns the C library's function of that name, after it has stopped at the point of that
 * name. */
static void* next(const char* name, const void* caller) {
    void* function = dlsym(RTLD_NEXT, name);
    require(NULL != function, name);
    if (in_library(caller)) {
        at(name);
    }
    return function;
}

#define NEXT(name) ((__typeof__(&name))(next(#name, __builtin_return_address(0))))

int memfd_create(const char* name, unsigned flags) {
    return NEXT(memfd_create)(name, flags);
}

int listen(int fd, int backlog) {
    return NEXT(listen)(fd, backlog);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
    return NEXT(sendmsg)(fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
    return NEXT(recvmsg)(fd, message, flags);
}

/** The library's open() has this name in the C library. The library reads the machine's memory
 * before each lease. */
int open64(const char* path, int flags, ...) {
    va_list arguments;
    mode_t mode;
    va_start(arguments, flags);
    mode = 0 != (flags & O_CREAT) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (in_library(__builtin_return_address(0)) && NULL != strstr(path, "meminfo")) {
        at("leasing");
    }
    return ((__typeof__(&open64))dlsym(RTLD_NEXT, "open64"))(path, flags, mode);
}

/** The heap's descriptors are closed when its last lease has been returned. */
int close(int fd) {
    if (finalizing && in_library(__builtin_return_address(0))) {
        at("last_lease_returned");
    }
    return ((__typeof__(&close))dlsym(RTLD_NEXT, "close"))(fd);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec* local, unsigned long locals,
                         const struct iovec* remote, unsigned long remotes, unsigned long flags) {
    return NEXT(process_vm_readv)(pid, local, locals, remote, remotes, flags);
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    at(*count > 1 ? "long_operator" : "short_operator");
    for (int i = 0; i < *count; i++) {
        ((long*)inout)[i] += ((long*)in)[i];
    }
}

/* ------------------------------------------------------------------ the life */

static void reduce(MPI_Comm comm, MPI_Op op, int count, int rank, int size) {
    long* mine = malloc((size_t)count * sizeof *mine);
    long* sum = malloc((size_t)count * sizeof *sum);
    for (int i = 0; i < count; i++) {
        mine[i] = rank + i;
    }
    MPI_Allreduce(mine, sum, count, MPI_LONG, op, comm);
    require(sum[count - 1] == (long)size * (size - 1) / 2 + (long)size * (count - 1), "allreduce");
    MPI_Bcast(sum, count, MPI_LONG, 0, comm);
    free(sum);
    free(mine);
}

static void come_and_go(MPI_Op op, int rank, int size) {
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (COMMS / 2 == i) {
            at("communicator_made");
        }
        reduce(comm, op, 1, rank, size);
        if (COMMS / 2 == i) {
            at("communicator_used");
        }
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char** argv) {
    const char* self = getenv("OMPI_COMM_WORLD_RANK");
    int rank;
    int size;
    MPI_Op op;
    require(3 == argc && NULL != self, "usage: points POINT RANK, under mpirun");
    wanted = 0 == strcmp(self, argv[2]) ? argv[1] : "";
    at("before_init");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Op_create(add, 1, &op);
    at("before_first_collective");
    for (int i = 0; i < 3; i++) {
        reduce(MPI_COMM_WORLD, op, 1, rank, size);
        reduce(MPI_COMM_WORLD, op, LONG_COUNT, rank, size);
    }
    come_and_go(op, rank, size);
    MPI_Op_free(&op);
    at("before_finalize");
    finalizing = 1;
    MPI_Finalize();
    at("after_finalize");
    return 0;
}
