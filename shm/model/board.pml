/*
 * Boards (shm/board.hpp): RANKS ranks share in turns 0 .. TURNS - 1 on boards of DEPTH slots. Each
 * is at up to WINDOW turns at a time, shares and reads in any order, says that it is done with
 * turns in theirs, and stores that once for BATCH turns. SHARERS has a bit for each rank that
 * shares; the others only read.
 *
 * A rank that waits for room or for a share is at no executable step; spin reports it as an invalid
 * end state if that is for ever. The assertions say that nothing is overwritten that a peer may
 * still read, and that no reader meets a later turn than its own.
 *
 * Steps are whole: release and acquire order what is inside them, and a store that is seen late is
 * one more step before the reader's. A batch is such a delay as well.
 *
 * Each variant breaks something, and must fail: ROOM_TOO_MUCH, ONE_PEER (whose word alone is
 * read), DONE_EARLY (with the turn still open), and a BATCH that is longer than the board.
 *
 * LATE is 1 where a rank says that it is done with a turn when it starts the next one.
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
#define TURNS (2 * DEPTH + 2)

byte slot[RANKS * DEPTH]; /* One more than the turn that is there. */
byte stored[RANKS];       /* What peers see of done. */
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
#define AT(rank, t) slot[(rank) * DEPTH + (t) % DEPTH]
#define SHARES(rank) ((SHARERS >> (rank)) & 1)
#define OPEN(w) (w < WINDOW && done[me] + w < TURNS)
#define HAS_ROOM(t)                                                                                \
    ((t) < stored[PEER(1)] + ROOM && (ASKED < 2 || (t) < stored[PEER(2)] + ROOM))
#define MAY_SHARE(w)                                                                               \
    (OPEN(w) && SHARES(me) && !shared[(done[me] + w) % WINDOW] && HAS_ROOM(done[me] + w))
#define MAY_READ(w, k)                                                                             \
    (OPEN(w) && k < RANKS && SHARES(PEER(k)) && !read[((done[me] + w) % WINDOW) * 3 + k] &&        \
     AT(PEER(k), done[me] + w) > done[me] + w)
#define READ(k) (k >= RANKS || !SHARES(PEER(k)) || read[(done[me] % WINDOW) * 3 + k])

inline share(w) {
    /* Whoever is not done with the turn that was there may be reading it. */
    assert(done[me] + w < done[PEER(1)] + DEPTH && done[me] + w < done[PEER(2)] + DEPTH);
    AT(me, done[me] + w) = done[me] + w + 1;
    shared[(done[me] + w) % WINDOW] = true
}

inline look(w, k) {
    assert(AT(PEER(k), done[me] + w) == done[me] + w + 1);
    read[((done[me] + w) % WINDOW) * 3 + k] = true
}

proctype Rank(byte me) {
    bool shared[WINDOW];
    bool read[3 * WINDOW]; /* By turn and peer; the first of each is not used. */
    byte last; /* What was stored. */
    do
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
           done[me] < TURNS && done[me] + 1 - last >= BATCH ->
           last = done[me] + 1;
#else
           done[me] - last >= BATCH + LATE ->
           last = done[me] - LATE;
#endif
           stored[me] = last
       }
    :: done[me] == TURNS -> break
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
