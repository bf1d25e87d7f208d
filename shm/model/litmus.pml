/*
 * What the memory of release_acquire.pml shows and what it does not, by the small programs from
 * which memory models are known (Alglave, Maranget and Tautschnig, "Herding cats", 2014). Each is
 * chosen by its name, its orders by WRITES, READS and UPDATES; the assertion excludes its OUTCOME,
 * so where a model fails the outcome can be. Those about places fail by a race.
 */
#ifndef WRITES
#define WRITES RELEASE
#endif
#ifndef READS
#define READS ACQUIRE
#endif
#ifndef UPDATES
#define UPDATES RELAXED
#endif

#define PROCESSES 4
#define WORDS 2
#define STORES 3
#define PLACES 1
#define me (_pid - 1)
#define HAS_TOTAL
#include "release_acquire.pml"

#define X 0
#define Y 1
#define THE_PLACE 0

byte a, b, c, d; /* What was loaded. */
byte ended;

inline load(word, order, result) {
    atomic {
        choose_total(word, order, true);
        result = CHOICE(word);
        take_in(word, order)
    }
}

#define P2_DOES skip
#define P3_DOES skip

#if defined(MESSAGE_PASSING)
#define P0_DOES store(X, RELAXED, 1); store(Y, WRITES, 1)
#define P1_DOES load(Y, READS, a); load(X, RELAXED, b)
#define OUTCOME (a == 1 && b == 0)
#elif defined(PLACE_PASSING) /* A place for X: the outcome is a race. */
#define P0_DOES write_place(THE_PLACE); store(Y, WRITES, 1)
#define P1_DOES load(Y, READS, a); if :: a == 1 -> read_place(THE_PLACE) :: else fi
#define OUTCOME false
#elif defined(PLACE_RETURNING) /* It is written when it has been read. */
#define P0_DOES read_place(THE_PLACE); store(Y, WRITES, 1)
#define P1_DOES load(Y, READS, a); if :: a == 1 -> write_place(THE_PLACE) :: else fi
#define OUTCOME false
#elif defined(STORE_BUFFERING)
#define P0_DOES store(X, WRITES, 1); load(Y, READS, a)
#define P1_DOES store(Y, WRITES, 1); load(X, READS, b)
#define OUTCOME (a == 0 && b == 0)
#elif defined(LOAD_BUFFERING)
#define P0_DOES load(Y, READS, a); store(X, WRITES, 1)
#define P1_DOES load(X, READS, b); store(Y, WRITES, 1)
#define OUTCOME (a == 1 && b == 1)
#elif defined(TWO_READERS) /* Independent reads of independent writes. */
#undef P2_DOES
#undef P3_DOES
#define P0_DOES store(X, WRITES, 1)
#define P1_DOES store(Y, WRITES, 1)
#define P2_DOES load(X, READS, a); load(Y, READS, b)
#define P3_DOES load(Y, READS, c); load(X, READS, d)
#define OUTCOME (a == 1 && b == 0 && c == 1 && d == 0)
#elif defined(CAUSALITY) /* Write to read causality. */
#undef P2_DOES
#define P0_DOES store(X, WRITES, 1)
#define P1_DOES load(X, READS, a); if :: a == 1 -> store(Y, WRITES, 1) :: else fi
#define P2_DOES load(Y, READS, b); load(X, RELAXED, c)
#define OUTCOME (b == 1 && c == 0)
#elif defined(COHERENCE) /* Loads of one word go on. */
#define P0_DOES store(X, WRITES, 1); store(X, WRITES, 2)
#define P1_DOES load(X, READS, a); load(X, READS, b)
#define OUTCOME (a > b)
#elif defined(OWN_STORE) /* It is not followed by an older value. */
#define P0_DOES swap(X, UPDATES, LATEST(X) * 3 + 1)
#define P1_DOES swap(X, UPDATES, LATEST(X) * 3 + 2); load(X, READS, a)
#define OUTCOME (a == 0 || a == 1)
#elif defined(ONE_ORDER) /* All see two updates in one order. */
#undef P2_DOES
#undef P3_DOES
#define P0_DOES swap(X, UPDATES, LATEST(X) * 3 + 1)
#define P1_DOES swap(X, UPDATES, LATEST(X) * 3 + 2)
#define P2_DOES load(X, READS, a); load(X, READS, b)
#define P3_DOES load(X, READS, c); load(X, READS, d)
#define OUTCOME (a == 1 && b == 5 && c == 2 && d == 7)
#elif defined(UPDATES_ADD) /* None is lost. */
#define P0_DOES swap(X, UPDATES, LATEST(X) + 1); load(X, READS, a)
#define P1_DOES swap(X, UPDATES, LATEST(X) + 1); load(X, READS, b)
#define OUTCOME (a == 1 && b == 1)
#elif defined(SEQUENCE) /* An update goes on with the release sequence. */
#undef P2_DOES
#define P0_DOES write_place(THE_PLACE); store(X, WRITES, 1)
#define P1_DOES atomic { LATEST(X) == 1 -> swap(X, UPDATES, LATEST(X) + 1) }
#define P2_DOES load(X, READS, a); if :: a == 2 -> read_place(THE_PLACE) :: else fi
#define OUTCOME false
#elif defined(NO_SEQUENCE) /* A store does not. */
#undef P2_DOES
#define P0_DOES write_place(THE_PLACE); store(X, WRITES, 1)
#define P1_DOES load(X, RELAXED, b); if :: b == 1 -> store(X, RELAXED, 2) :: else fi
#define P2_DOES load(X, READS, a); if :: a == 2 -> read_place(THE_PLACE) :: else fi
#define OUTCOME false
#endif

proctype P0() { P0_DOES; ended++ }
proctype P1() { P1_DOES; ended++ }
proctype P2() { P2_DOES; ended++ }
proctype P3() { P3_DOES; ended++ }

init {
    atomic {
        run P0();
        run P1();
        run P2();
        run P3()
    }
    ended == PROCESSES;
    assert(!(OUTCOME))
}
