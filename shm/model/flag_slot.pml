/*
 * Flag slots (shm/flag_slot.hpp): RANKS ranks share under the sequence numbers 0 .. SEQUENCES - 1
 * on flag slots of DEPTH slots. Each is at up to WINDOW numbers at a time, shares and reads in any
 * order, says in the order of the numbers that it is done with them, and stores that once for BATCH
 * numbers. SHARERS has a bit for each rank that shares; the others only read.
 *
 * A rank that waits for room or for a share is at no executable step; spin reports it as an invalid
 * end state if that is for ever. The assertions say that nothing is overwritten that a peer may
 * still read, and that no reader meets a later sequence number than its own.
 *
 * Memory is that of release_acquire.pml, with the orders that the code has, unless SEQUENTIAL is
 * defined: slots, with the buffers that go with them, are places, so assertions say as well that
 * each is written before it is read, and read before it is written again. A look in vain is no step.
 *
 * Each variant breaks something, and must fail: ROOM_TOO_MUCH, ONE_PEER (whose word alone is read),
 * DONE_EARLY (with the number still in use), a BATCH that is longer than the flag slot, and each
 * order that is weaker.
 *
 * LATE is 1 where a rank says that it is done with a sequence number when it starts the next one.
 */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef DEPTH
#define DEPTH 4
#endif
#ifndef BATCH
#define BATCH 2
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef SHARERS
#define SHARERS 1
#endif
#ifndef SEQUENCES
#define SEQUENCES (2 * DEPTH + 2)
#endif

/* The orders. */
#ifndef SEQUENCE_STORED
#define SEQUENCE_STORED RELEASE
#endif
#ifndef SEQUENCE_LOADED
#define SEQUENCE_LOADED ACQUIRE
#endif
#ifndef DONE_STORED
#define DONE_STORED RELEASE
#endif
#ifndef DONE_LOADED
#define DONE_LOADED ACQUIRE
#endif

#if SHARERS == 7
#define FLAG_SLOTS 3
#elif SHARERS == 3
#define FLAG_SLOTS 2
#else
#define FLAG_SLOTS 1
#endif
#define SLOT(rank, t) ((rank) * DEPTH + (t) % DEPTH)
#define SEQUENCE(rank, t) SLOT(rank, t) /* One more than the number that is there. */
#define DONE(rank) (FLAG_SLOTS * DEPTH + (rank)) /* What peers see of done. */
#define WORDS (FLAG_SLOTS * DEPTH + RANKS)
#define STORES (SEQUENCES / BATCH + 2)
#define PLACES (FLAG_SLOTS * DEPTH)
#define PROCESSES RANKS
#include "release_acquire.pml"

byte done[RANKS];

#ifdef ROOM_TOO_MUCH
#define ROOM (DEPTH + 1)
#else
#define ROOM DEPTH
#endif
#ifdef ONE_PEER
#define ASKED 1
#else
#define ASKED (RANKS - 1)
#endif

#define PEER(k) ((me + k) % RANKS)
#define SHARES(rank) ((SHARERS >> (rank)) & 1)
#define OPEN(w) (w < WINDOW && done[me] + w < SEQUENCES)
#define IS_TO_SHARE(w) (OPEN(w) && SHARES(me) && !shared[(done[me] + w) % WINDOW])
#define HAS_ROOM(t) ((t) < known[1] + ROOM && (ASKED < 2 || (t) < known[2] + ROOM))
#define MAY_SHARE(w) (IS_TO_SHARE(w) && HAS_ROOM(done[me] + w))
#define MAY_ASK(w, k)                                                                              \
    (k <= ASKED && IS_TO_SHARE(w) && done[me] + w >= known[k] + ROOM &&                            \
     done[me] + w < LATEST(DONE(PEER(k))) + ROOM)
#define MAY_READ(w, k)                                                                             \
    (OPEN(w) && k < RANKS && SHARES(PEER(k)) && !read[((done[me] + w) % WINDOW) * 3 + k] &&        \
     LATEST(SEQUENCE(PEER(k), done[me] + w)) > done[me] + w)
#define READ(k) (k >= RANKS || !SHARES(PEER(k)) || read[(done[me] % WINDOW) * 3 + k])

inline ask(w, k) {
    choose(DONE(PEER(k)), done[me] + w < CHOICE(DONE(PEER(k))) + ROOM);
    known[k] = CHOICE(DONE(PEER(k)));
    take_in(DONE(PEER(k)), DONE_LOADED)
}

inline share(w) {
    /* Whoever is not done with the share that was there may be reading it. */
    assert(done[me] + w < done[PEER(1)] + DEPTH && done[me] + w < done[PEER(2)] + DEPTH);
    write_place(SLOT(me, done[me] + w));
    store(SEQUENCE(me, done[me] + w), SEQUENCE_STORED, done[me] + w + 1);
    shared[(done[me] + w) % WINDOW] = true
}

inline look(w, k) {
    choose(SEQUENCE(PEER(k), done[me] + w), CHOICE(SEQUENCE(PEER(k), done[me] + w)) > done[me] + w);
    assert(CHOICE(SEQUENCE(PEER(k), done[me] + w)) == done[me] + w + 1);
    take_in(SEQUENCE(PEER(k), done[me] + w), SEQUENCE_LOADED);
    read_place(SLOT(PEER(k), done[me] + w));
    read[((done[me] + w) % WINDOW) * 3 + k] = true
}

proctype Rank(byte me) {
    bool shared[WINDOW];
    bool read[3 * WINDOW]; /* By sequence number and peer; the first of each is not used. */
    byte known[3]; /* By peer: that it is done with all below. */
    byte last;     /* What was stored. */
    do
    :: atomic { MAY_ASK(0, 1) -> ask(0, 1) }
    :: atomic { MAY_ASK(0, 2) -> ask(0, 2) }
    :: atomic { MAY_ASK(1, 1) -> ask(1, 1) }
    :: atomic { MAY_ASK(1, 2) -> ask(1, 2) }
    :: atomic { MAY_SHARE(0) -> share(0) }
    :: atomic { MAY_SHARE(1) -> share(1) }
    :: atomic { MAY_READ(0, 1) -> look(0, 1) }
    :: atomic { MAY_READ(0, 2) -> look(0, 2) }
    :: atomic { MAY_READ(1, 1) -> look(1, 1) }
    :: atomic { MAY_READ(1, 2) -> look(1, 2) }
    :: atomic {
           OPEN(0) && (!SHARES(me) || shared[done[me] % WINDOW]) && READ(1) && READ(2) ->
           shared[done[me] % WINDOW] = false;
           read[(done[me] % WINDOW) * 3 + 1] = false;
           read[(done[me] % WINDOW) * 3 + 2] = false;
           done[me]++
       }
    :: atomic {
#ifdef DONE_EARLY
           done[me] < SEQUENCES && done[me] + 1 - last >= BATCH ->
           last = done[me] + 1;
#else
           done[me] - last >= BATCH + LATE ->
           last = done[me] - LATE;
#endif
           store(DONE(me), DONE_STORED, last)
       }
    :: done[me] == SEQUENCES -> break
    od
}

init {
    atomic {
        run Rank(0);
        run Rank(1);
#if RANKS > 2
        run Rank(2)
#endif
    }
}
