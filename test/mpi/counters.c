/* A tool's look at the component's counters by MPI_T: before MPI_Init, while a communicator has no
 * group of libucg yet, and after it was freed. "counters ok" says that all was as expected. Needs
 * coll_ucg_setup_after=5 and at least two ranks. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { FIRST_CALLS = 5, FURTHER_CALLS = 3 };

static void require(int ok, const char* what) {
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

typedef struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
} counter_t;

static counter_t open_counter(const char* name) {
    counter_t counter;
    int index;
    int count = 0;
    require(MPI_SUCCESS == MPI_T_pvar_session_create(&counter.session), "a session");
    require(MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), name);
    require(MPI_SUCCESS ==
                MPI_T_pvar_handle_alloc(counter.session, index, NULL, &counter.handle, &count),
            "a handle");
    require(1 == count, "one number");
    return counter;
}

static unsigned long long value_of(const counter_t* counter) {
    unsigned long long value = 0;
    require(MPI_SUCCESS == MPI_T_pvar_read(counter->session, counter->handle, &value), "a value");
    return value;
}

static void close_counter(counter_t* counter) {
    MPI_T_pvar_handle_free(counter->session, &counter->handle);
    MPI_T_pvar_session_free(&counter->session);
}

int main(int argc, char* argv[]) {
    int provided;
    int rank;
    require(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), "MPI_T_init_thread");
    counter_t before = open_counter("coll_ucg_taken_barrier");
    require(0 == value_of(&before), "nothing was served before MPI_Init");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    counter_t passed = open_counter("coll_ucg_passed_barrier");
    counter_t taken = open_counter("coll_ucg_taken_barrier");
    for (int i = 0; i < FIRST_CALLS; i++) {
        MPI_Barrier(comm);
        require((unsigned long long)i + 1 == value_of(&passed), "what is passed on counts at once");
    }
    for (int i = 0; i < FURTHER_CALLS; i++) {
        MPI_Barrier(comm);
    }
    require(FIRST_CALLS == value_of(&passed), "the group was made");
    require(FURTHER_CALLS == value_of(&taken), "what libucg served");
    MPI_Comm_free(&comm);
    require(FIRST_CALLS == value_of(&passed), "what was passed on, after the communicator");
    require(FURTHER_CALLS == value_of(&taken), "what libucg served, after the communicator");
    require(FURTHER_CALLS <= value_of(&before), "the handle from before MPI_Init");

    close_counter(&taken);
    close_counter(&passed);
    close_counter(&before);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("counters ok\n");
    }
    MPI_T_finalize(); /* After MPI_Finalize stock Open MPI 4.1 crashes there. */
    MPI_Finalize();
    return 0;
}
