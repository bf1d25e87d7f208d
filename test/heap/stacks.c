/*
 * fork() on stacks that malloc gave.
 *
 *   stacks coroutine   child and parent change their frames, and return through them
 *   stacks handler     the same in a signal handler on a stack of its own
 *   stacks thread      fork() fails in a thread on such a stack, and works again elsewhere
 *   stacks daemon      daemon() ends the program
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "heap_maps.h"

enum { STACK_BYTES = 256 << 10, FRAME_BYTES = 20000, FORKS = 5, BLOCK_BYTES = 2 << 20 };

static unsigned char* block;
static int good_forks;
static ucontext_t outside;

static bool ended_well(pid_t child) {
    int status = -1;

    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static bool holds(const unsigned char* data, size_t bytes, unsigned char value) {
    return data[0] == value && memcmp(data, data + 1, bytes - 1) == 0;
}

/* The function shares neither a frame nor the compiler's knowledge with its caller. */
__attribute__((noinline)) static pid_t fork_below(void) {
    volatile unsigned char deeper[FRAME_BYTES];
    pid_t second;

    deeper[0] = 1;
    second = fork();
    return deeper[0] == 1 ? second : -1;
}

static bool can_fork(void) {
    const pid_t second = fork_below();

    if (second == 0) {
        _exit(0);
    }
    return ended_well(second);
}

/* Parent and child go on at once: the child looks at its frames after the parent has changed its
 * own. */
static void fork_here(void) {
    unsigned char frame[FRAME_BYTES];
    /* It is volatile, since the compiler does not know that a child changes it. */
    unsigned char* volatile mine = frame;
    int ends[2] = {-1, -1};
    char token = 0;
    pid_t second;

    memset(mine, 1, FRAME_BYTES);
    if (!in_heap(frame) || pipe(ends) != 0) {
        return;
    }
    second = fork_below();
    if (second == 0) {
        const bool told = read(ends[0], &token, 1) == 1;
        const bool kept = holds(mine, FRAME_BYTES, 1);

        memset(mine, 2, FRAME_BYTES);
        _exit(told && kept && block[0] == 1 && !in_heap(frame) && can_fork() ? 0 : 1);
    }
    memset(mine, 3, FRAME_BYTES);
    if (write(ends[1], "x", 1) == 1 && ended_well(second) && holds(mine, FRAME_BYTES, 3)) {
        ++good_forks;
    }
    close(ends[0]);
    close(ends[1]);
}

static void fork_often(void) {
    for (int i = 0; i < FORKS; ++i) {
        fork_here();
    }
}

static void fork_in_handler(int signal) {
    (void)signal;
    fork_often();
}

static bool in_handler(void) {
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};

    return sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0 &&
           raise(SIGUSR1) == 0;
}

static bool on_coroutine(void (*work)(void)) {
    ucontext_t inside;

    getcontext(&inside);
    inside.uc_stack.ss_sp = malloc(STACK_BYTES);
    inside.uc_stack.ss_size = STACK_BYTES;
    inside.uc_link = &outside;
    if (inside.uc_stack.ss_sp == NULL) {
        return false;
    }
    makecontext(&inside, work, 0);
    return swapcontext(&outside, &inside) == 0;
}

static void* fork_in_thread(void* argument) {
    bool* fails = argument;

    *fails = fork() == -1 && errno == ENOSYS;
    return argument;
}

static bool in_thread(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    bool fails = false;
    void* memory = NULL;
    pid_t second;

    pthread_attr_init(&attributes);
    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), STACK_BYTES) != 0 ||
        pthread_attr_setstack(&attributes, memory, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, fork_in_thread, &fails) != 0 ||
        pthread_join(thread, NULL) != 0) {
        return false;
    }
    second = fork();
    if (second == 0) {
        _exit(block[0] == 1 ? 0 : 1);
    }
    return fails && ended_well(second);
}

static void become_daemon(void) {
    daemon(1, 1);
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    const struct rlimit no_core = {0, 0};

    alarm(60);
    setrlimit(RLIMIT_CORE, &no_core);
    block = malloc(BLOCK_BYTES);
    memset(block, 1, BLOCK_BYTES);
    if (strcmp(what, "coroutine") == 0) {
        return on_coroutine(fork_often) && good_forks == FORKS ? 0 : 1;
    }
    if (strcmp(what, "handler") == 0) {
        return in_handler() && good_forks == FORKS ? 0 : 1;
    }
    if (strcmp(what, "thread") == 0) {
        return in_thread() ? 0 : 1;
    }
    return strcmp(what, "daemon") == 0 && on_coroutine(become_daemon) ? 0 : 1;
}
