/*
 * Communicators come and go: one program, one part for each argument. Prints "PART ok" from rank 0.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static void require(int condition, const char* what) {
    if (!condition) {
        fprintf(stderr, "lifecycle: wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/** Calls some collectives on a communicator, whose results are known. */
static void use(MPI_Comm comm, int salt) {
    int rank;
    int size;
    int sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int mine = rank + salt;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    require(sum == size * (size - 1) / 2 + size * salt, "allreduce");
    int token = 0 == rank ? salt : -1;
    MPI_Bcast(&token, 1, MPI_INT, 0, comm);
    require(token == salt, "bcast");
    int* all = malloc((size_t)size * sizeof *all);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
    require(all[0] == salt && all[size - 1] == size - 1 + salt, "allgather");
    free(all);
    MPI_Barrier(comm);
}

/** Collectives that coll/sync puts barriers between, which synchronise nobody by themselves. */
static void sync_often(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 30; i++) {
        int token = 0 == rank ? i : -1;
        int sum = -1;
        MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
        require(token == i, "bcast");
        MPI_Scan(&token, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        require(sum == i * (rank + 1), "scan");
    }
}

/** Many communicators, one after the other; every tenth is never used. */
static void churn(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 1000; i++) {
        MPI_Comm comm;
        if (0 == i % 3) {
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
        } else {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        }
        if (0 != i % 10) {
            use(comm, i);
        }
        MPI_Comm_free(&comm);
    }
}

/** Many communicators at a time. */
static void crowd(void) {
    enum { COUNT = 60 };
    MPI_Comm comms[COUNT];
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_dup(0 == i ? MPI_COMM_WORLD : comms[i / 2], &comms[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = COUNT - 1; i >= 0; i--) {
            use(comms[i], i + round);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_free(&comms[i]);
    }
}

/** The program ends without freeing what it made. */
static void leak(void) {
    for (int i = 0; i < 10; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        use(comm, i);
    }
}

/* ------------------------------------------------------------------ threads */

enum { THREADS = 2, ROUNDS = 100, COMMS = 8 };

typedef struct {
    MPI_Comm comms[COMMS];
    int index;
    pthread_mutex_t* turn; /**< Null: threads call MPI whenever they like. */
} worker_t;

/**
 * First and later collectives on the thread's own communicators. The threads of odd ranks walk
 * through them at another pace, so that processes set up the two threads' communicators in
 * different orders.
 */
static void* work(void* argument) {
    worker_t* worker = argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (NULL != worker->turn) {
            pthread_mutex_lock(worker->turn);
        }
        use(worker->comms[i % COMMS], i + worker->index);
        if (NULL != worker->turn) {
            pthread_mutex_unlock(worker->turn);
        }
    }
    return NULL;
}

static void make_workers(worker_t* workers, pthread_mutex_t* turn) {
    for (int i = 0; i < THREADS; i++) {
        workers[i].index = i;
        workers[i].turn = turn;
        for (int j = 0; j < COMMS; j++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comms[j]);
        }
    }
}

static void free_workers(worker_t* workers) {
    for (int i = 0; i < THREADS; i++) {
        for (int j = 0; j < COMMS; j++) {
            MPI_Comm_free(&workers[i].comms[j]);
        }
    }
}

/** Two threads, each with communicators of its own, at the same time. */
static void multiple(void) {
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make_workers(workers, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, &workers[(i + rank) % THREADS]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    free_workers(workers);
}

/** Threads that call MPI one after the other, in the same order everywhere. */
static void serialized(void) {
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    worker_t workers[THREADS];
    make_workers(workers, &turn);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, &workers[i]);
        pthread_join(thread, NULL);
    }
    free_workers(workers);
}

/* ------------------------------------------------------------------ spawn */

/** What both sides of an inter-communicator do: on it, and on the merger of both sides. */
static void use_both_sides(MPI_Comm inter, int is_child) {
    int mine = is_child ? 1 : 100;
    int sum = 0;
    int remote;
    MPI_Comm merged;
    MPI_Comm copy;
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    require(sum == remote * (is_child ? 100 : 1), "allreduce between two sides");
    MPI_Barrier(inter);
    MPI_Intercomm_merge(inter, is_child, &merged);
    use(merged, 5);
    MPI_Comm_dup(merged, &copy);
    use(copy, 6);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&merged);
}

/** `variables` go to env(1), for the children alone: they may be set up in another way. */
static void spawn(char* program, char** variables) {
    char* arguments[16] = {NULL};
    int count = 0;
    for (; NULL != variables[count] && count < 13; count++) {
        arguments[count] = variables[count];
    }
    arguments[count] = program;
    arguments[count + 1] = "child";
    MPI_Comm children;
    MPI_Comm_spawn("/usr/bin/env", arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    use(MPI_COMM_WORLD, 1);
    use_both_sides(children, 0);
    MPI_Comm_disconnect(&children);
}

static void child(void) {
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    use(MPI_COMM_WORLD, 2);
    use_both_sides(parent, 1);
    MPI_Comm_disconnect(&parent);
}

/* ------------------------------------------------------------------ parts */

static int level_of(const char* part) {
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    if (0 == strcmp(part, "levels")) {
        return NULL != rank && '0' == *rank ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    }
    if (0 == strcmp(part, "multiple")) {
        return MPI_THREAD_MULTIPLE;
    }
    return 0 == strcmp(part, "serialized") ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
}

static int run(const char* part, char** argv) {
    if (0 == strcmp(part, "churn")) {
        churn();
    } else if (0 == strcmp(part, "sync")) {
        sync_often();
    } else if (0 == strcmp(part, "crowd")) {
        crowd();
    } else if (0 == strcmp(part, "leak")) {
        leak();
    } else if (0 == strcmp(part, "multiple")) {
        multiple();
    } else if (0 == strcmp(part, "serialized")) {
        serialized();
    } else if (0 == strcmp(part, "spawn")) {
        spawn(argv[0], argv + 2);
    } else if (0 == strcmp(part, "child")) {
        child();
    } else if (0 == strcmp(part, "use") || 0 == strcmp(part, "levels")) {
        use(MPI_COMM_WORLD, 3);
    } else {
        return 0;
    }
    return 1;
}

int main(int argc, char** argv) {
    const char* part = argc > 1 ? argv[1] : "use";
    int provided;
    int rank;
    MPI_Init_thread(&argc, &argv, level_of(part), &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided < level_of(part)) {
        printf("%s needs more threads than MPI offers\n", part);
        MPI_Finalize();
        return 77;
    }
    require(run(part, argv), "no such part");
    if (0 == rank && 0 != strcmp(part, "child")) {
        printf("%s ok\n", part);
    }
    MPI_Finalize();
    return 0;
}
