/*
 * Units that whoever comes does (shm/unit_word.hpp, as transport/shm/help.cpp uses it): COLLECTIVES
 * collectives of RANKS ranks, in each of which PARTS of them have a part of UNITS units that names
 * all ranks, through one entry, used again and again.
 *
 *   rank  begins a collective: opens its word, then stores its number; takes units of whatever
 *         part, its own or another's, or is elsewhere at any time; ends the collective when all parts
 *         are over, which it learns from words or from an owner that is further on; may give up at
 *         any time, and takes its buffers back
 *
 * The assertions say that each unit is done once, between the beginning and the end of that
 * collective at all ranks, never after one of these has taken its buffers back, and that all are
 * done when a rank ends it. A look that finds nothing to do is no step; spin reports an invalid end
 * state if somebody waits for ever.
 *
 * Memory is that of release_acquire.pml, with the orders that the code has: what a rank has put into
 * its buffers and its entry is a place, and so is what each unit writes at each rank. So the
 * assertions say as well that all that is read was written before, by the orders alone, and that
 * nobody writes what another may be reading. With SEQUENTIAL it is for more ranks and collectives.
 *
 * A rank's number is the collective's sequence number that it stores in its entry.
 *
 * Steps: each load, store and swap is one. A helper looks at the owner's number, at the word, and
 * at all numbers, and swaps. What it loads may be old at any of these.
 *
 * Each variant breaks something, and must fail: NO_NAME (who takes a unit does not look whose the
 * word is), SEQUENCE_FIRST (an owner stores its number before it opens its word), DONE_FIRST (a
 * unit counts before it is done), NO_BEGUN (nobody looks whether all have begun), NO_CLOSE (who
 * gives up leaves words open), NO_WAIT (nor waits for units that were taken), NO_SEQUENCE (nor
 * tells those who have not begun), NOT_AGAIN (a helper does not look again at words of an owner
 * that was at an earlier one: it takes those for over), SWAP_BLIND (it stores what it has read and
 * one more), NOT_OF_GIVEN_UP (of three ranks, two give up: neither closes the word of the other),
 * and orders that are weaker: of the numbers, to who helps and to who gives up, of the look at a
 * word and of the count of units that are done. (LOOKS: an old number is found only by who looks
 * for no reason.) A store that opens a word need be no release for one collective, since the number
 * follows; it must for two (which are not searched to the end without a break: they are too many
 * states), since who finds the word of the later one takes the earlier one's part for over. A
 * relaxed swap that takes a unit holds, and one that counts a unit done without acquire: who takes
 * has looked at the word and at all numbers, and who ends looks at the word. So does a relaxed swap
 * that closes a word: who would take a unit swaps the same word, and finds it closed. They cost
 * nothing where a swap is a full barrier.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef UNITS
#define UNITS 2
#endif
#ifndef COLLECTIVES
#define COLLECTIVES 2
#endif

#ifndef PARTS
#define PARTS RANKS /* The first of the ranks have some. */
#endif

#ifndef LOOKS
#define LOOKS 0 /* Of each rank, for which there is no reason: what it loads may be old. */
#endif

/* The orders. */
#ifndef BEGUN_STORED
#define BEGUN_STORED TOTAL
#endif
#ifndef GIVEN_UP_STORED
#define GIVEN_UP_STORED TOTAL
#endif
#ifndef SEQUENCE_LOADED
#define SEQUENCE_LOADED TOTAL /* By who helps. */
#endif
#ifndef GIVING_UP_LOADED
#define GIVING_UP_LOADED TOTAL /* By who gives up. */
#endif
#ifndef WORD_OPENED
#define WORD_OPENED RELEASE
#endif
#ifndef WORD_LOADED
#define WORD_LOADED ACQUIRE
#endif
#ifndef TAKEN_SWAPPED
#define TAKEN_SWAPPED BOTH
#endif
#ifndef DONE_ADDED
#define DONE_ADDED BOTH
#endif
#ifndef CLOSE_SWAPPED
#define CLOSE_SWAPPED TOTAL
#endif

#define GIVEN_UP 15
#define AT(c, p) ((c) * RANKS + (p))
#define ALL_UNITS ((1 << UNITS) - 1)

#define SEQUENCE(r) (r)
#define WORD(r) (RANKS + (r))
#define WORDS (2 * RANKS)
#define STORES (COLLECTIVES * (1 + 2 * UNITS) + RANKS + 2)

/* A word says of which collective it is (one more), whether it is closed, and both counts. */
#define ONE_TAKEN 4
#define CLOSED 16
#define NAME(word) ((word) >> 5)
#define IS_CLOSED(word) (((word) & CLOSED) != 0)
#define TAKEN(word) (((word) >> 2) & 3)
#define DONE(word) ((word) & 3)

#define INPUT(r) (r) /* With its entry. */
#define RESULT(r, p, u) (RANKS + (r) * PARTS * UNITS + (p) * UNITS + (u))
#define PLACES (RANKS + RANKS * PARTS * UNITS)

#define PROCESSES RANKS
#define READERS RANKS
#define HAS_TOTAL
#include "release_acquire.pml"

/* What is so, whatever ranks know. */
byte written[COLLECTIVES * RANKS]; /* Units of that part, as bits. */
byte ended[RANKS];                 /* Collectives that the rank has ended. */
bool gone[RANKS];                  /* It has its buffers back for good. */
byte begun[RANKS];                 /* Collectives that it has begun. */

#if RANKS == 2
#define EACH(condition) (condition(0) && condition(1))
#define SOME(condition) (condition(0) || condition(1))
#else
#define EACH(condition) (condition(0) && condition(1) && condition(2))
#define SOME(condition) (condition(0) || condition(1) || condition(2))
#endif

#define IS_WHOLE(r) (r >= PARTS || written[AT(now, r)] == ALL_UNITS)
#define IS_THERE(r) (begun[r] > now && ended[r] <= now && !gone[r])

/* Of a value of the word, or of the sequence number. */
#ifdef NO_NAME
#define NAMED(word) true
#else
#define NAMED(word) (NAME(word) == now + 1)
#endif
#define LATER(its_sequence) ((its_sequence) != GIVEN_UP && (its_sequence) > now + 1)
#define HAS_BEGUN(its_sequence) ((its_sequence) != GIVEN_UP && (its_sequence) > now)
#ifdef NOT_AGAIN
#define MAY_LOOK(its_sequence) ((its_sequence) != GIVEN_UP)
#else
#define MAY_LOOK(its_sequence) ((its_sequence) == now + 1)
#endif
#ifdef NO_NAME
#define WORD_OVER(word) (!IS_CLOSED(word) && DONE(word) == UNITS)
#else
#define WORD_OVER(word) (!NAMED(word) || (!IS_CLOSED(word) && DONE(word) == UNITS))
#endif
#define WORD_OPEN(word) (NAMED(word) && !IS_CLOSED(word) && TAKEN(word) < UNITS)

/* By what is there: is there something to do, whatever this rank's loads return? */
#define OVER(p)                                                                                    \
    (LATER(LATEST(SEQUENCE(p))) || (MAY_LOOK(LATEST(SEQUENCE(p))) && WORD_OVER(LATEST(WORD(p)))))
#define BEGUN(r) HAS_BEGUN(LATEST(SEQUENCE(r)))
#ifdef NO_BEGUN
#define ALL_BEGUN true
#else
#define ALL_BEGUN EACH(BEGUN)
#endif
#define OPEN(p) (LATEST(SEQUENCE(p)) == now + 1 && WORD_OPEN(LATEST(WORD(p))) && ALL_BEGUN)
#define BROKEN(p)                                                                                  \
    (LATEST(SEQUENCE(p)) == GIVEN_UP ||                                                            \
     (LATEST(SEQUENCE(p)) == now + 1 && NAME(LATEST(WORD(p))) == now + 1 &&                        \
      IS_CLOSED(LATEST(WORD(p)))))

#define OVER_SEEN(p) ((over & (1 << (p))) != 0)
#define WORTH_A_LOOK(p) (!OVER_SEEN(p) && (OVER(p) || OPEN(p)))
#define MAY_BE_OLD(p) (vain > 0 && PARTS > (p) && !OVER_SEEN(p)) /* What it loads. */

inline load_sequence(r, order) {
    atomic {
        choose_total(SEQUENCE(r), order, true);
        its_sequence = CHOICE(SEQUENCE(r));
        take_in(SEQUENCE(r), order)
    }
}

inline load_word(p) {
    atomic { choose(WORD(p), true); its_word = CHOICE(WORD(p)); take_in(WORD(p), WORD_LOADED) }
}

inline forget_loads() { atomic { its_sequence = 0; its_word = 0; part = 0; n = 0; took = false } }

inline begin() {
    atomic {
        begun[me] = now + 1;
        write_place(INPUT(me))
    }
#ifdef SEQUENCE_FIRST
    store(SEQUENCE(me), BEGUN_STORED, now + 1);
#endif
    overwrite(WORD(me), WORD_OPENED, (now + 1) << 5);
#ifndef SEQUENCE_FIRST
    store(SEQUENCE(me), BEGUN_STORED, now + 1);
#endif
    over = ((1 << RANKS) - 1) - ((1 << PARTS) - 1)
}

/* All parts are over: the rank uses the results, and its buffers. */
inline end() {
    atomic {
        assert(EACH(IS_WHOLE));
        part = 0;
        do
        :: part < PARTS * UNITS -> read_place(RESULT(me, 0, part)); part++
        :: else -> break
        od;
        part = 0;
        now++;
        ended[me] = now
    }
}

inline count_done() { swap(WORD(part), DONE_ADDED, LATEST(WORD(part)) + 1) }

/* The unit that was taken. */
inline do_unit() {
    atomic { /* It begins to read, */
        assert(EACH(IS_THERE));
        n = 0;
        do
        :: n < RANKS -> read_place(INPUT(n)); n++
        :: else -> break
        od;
        n = 0
    }
    atomic { /* and has written. */
        assert(EACH(IS_THERE));
        assert((written[AT(now, part)] & (1 << TAKEN(its_word))) == 0);
        written[AT(now, part)] = written[AT(now, part)] | (1 << TAKEN(its_word));
        do
        :: n < RANKS -> write_place(RESULT(n, part, TAKEN(its_word))); n++
        :: else -> break
        od;
        n = 0
    }
}

/* Sets `took` if all have begun, and if its swap succeeds. */
inline take() {
#ifndef NO_BEGUN
    took = true;
    do
    :: n < RANKS && took ->
        load_sequence(n, SEQUENCE_LOADED);
        atomic { took = HAS_BEGUN(its_sequence); n++ }
    :: else -> break
    od;
    n = 0;
#else
    took = true;
#endif
    if
    :: took ->
        atomic {
#ifndef SWAP_BLIND
            its_word = LATEST(WORD(part));
            took = WORD_OPEN(its_word);
#endif
            if
            :: took -> swap(WORD(part), TAKEN_SWAPPED, its_word + ONE_TAKEN)
            :: else
            fi
        }
    :: else
    fi
}

inline look() {
    load_sequence(part, SEQUENCE_LOADED);
    if
    :: LATER(its_sequence) -> over = over | (1 << part)
    :: !LATER(its_sequence) && MAY_LOOK(its_sequence) ->
        load_word(part);
        if
        :: WORD_OVER(its_word) -> over = over | (1 << part)
        :: !WORD_OVER(its_word) && its_sequence == now + 1 && WORD_OPEN(its_word) ->
            take();
            if
            :: took ->
#ifdef DONE_FIRST
                count_done();
                do_unit()
#else
                do_unit();
                count_done()
#endif
            :: else
            fi
        :: else
        fi
    :: else
    fi;
    forget_loads()
}

#ifdef NOT_OF_GIVEN_UP
#define IS_TO_CLOSE (part == me || HAS_BEGUN(its_sequence))
#else
#define IS_TO_CLOSE (its_sequence > now)
#endif

inline close_all() {
    do
    :: part < RANKS ->
        load_sequence(part, GIVING_UP_LOADED);
        if
        :: IS_TO_CLOSE ->
            load_word(part);
            atomic {
                if
                :: NAME(its_word) == now + 1 && NAME(LATEST(WORD(part))) == now + 1 ->
                    swap(WORD(part), CLOSE_SWAPPED, LATEST(WORD(part)) | CLOSED)
                :: else
                fi
            }
        :: else
        fi;
        part++
    :: else -> break
    od;
    forget_loads()
}

#define AT_REST(word) (NAME(word) != now + 1 || TAKEN(word) == DONE(word))
inline await_units() {
    do
    :: part < RANKS ->
        atomic {
            AT_REST(LATEST(WORD(part))) -> choose(WORD(part), AT_REST(CHOICE(WORD(part))));
            take_in(WORD(part), WORD_LOADED)
        }
        part++
    :: else -> break
    od;
    part = 0
}

proctype Rank(byte me) {
    byte now;  /* The collective that it is at. */
    byte vain = LOOKS;
    byte over; /* Parts that it knows to be over. */
    byte part;
    byte its_sequence;
    byte its_word;
    bool took;
    byte n;

    do
    :: now == COLLECTIVES -> goto finish
    :: else ->
        begin();
        do
        :: over == (1 << RANKS) - 1 -> end(); break
        :: WORTH_A_LOOK(0) -> part = 0; look()
        :: WORTH_A_LOOK(1) -> part = 1; look()
        :: MAY_BE_OLD(0) -> vain--; part = 0; look()
        :: MAY_BE_OLD(1) -> vain--; part = 1; look()
#if RANKS > 2
        :: WORTH_A_LOOK(2) -> part = 2; look()
#endif
        :: SOME(BROKEN) -> goto give_up
        :: goto give_up /* For a reason of its own. */
        od
    od;

give_up:
#ifndef NO_SEQUENCE
    store(SEQUENCE(me), GIVEN_UP_STORED, GIVEN_UP);
#endif
#ifndef NO_CLOSE
    close_all();
#endif
#ifndef NO_WAIT
    await_units();
#endif
    atomic {
        gone[me] = true;
        write_place(INPUT(me));
        do
        :: n < PARTS * UNITS -> write_place(RESULT(me, 0, n)); n++
        :: else -> break
        od;
        n = 0
    }
finish:
    skip
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
