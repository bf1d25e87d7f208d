/*
 * A rank that gives up while a helper is away with a unit for which it has asked others
 * (transport/shm/help.cpp: ShmHelp::say_only_asks(), look(), take(), is_over()). Both have begun.
 *
 *   helper  takes a unit of part 0, copies what it can, asks for the rest, and says that it only
 *           asks; comes back, or is away for good; goes on with its unit, copies, and asks anew or
 *           has done it; or takes a unit of part 1 in between, and does that
 *   rank    closes the words of both parts; waits for each until the units that were taken are done,
 *           or the helper only asks; takes its buffers back
 *
 * Memory is that of release_acquire.pml, with the orders that the code has. The rank's buffers are
 * a place, so the assertions say that the helper copies nothing once the rank has them back, and
 * that what it has copied was there before. spin reports an invalid end state if the rank waits for
 * a helper that is away.
 *
 * Each variant breaks something, and must fail: NO_SAYING (the helper says nothing), NO_LOOK (it
 * goes on without a look at the word), NOT_BACK (it does not take back what it has said before it
 * goes on), NOT_BACK_TO_TAKE (nor before it takes another unit), SAY_FIRST (it says so before it has
 * copied), LOOK_FIRST (who gives up looks at the helper before it closes the words), and orders that
 * are weaker: of what the helper says and takes back, of its look at the word, of the swap that
 * closes a word, and of the look at what the helper says. What it says need only be a release, and
 * a relaxed swap that takes a unit holds, too: what was taken back is in one order with the look of
 * who gives up.
 */
#ifndef RETURNS
#define RETURNS 2
#endif

/* The orders. */
#ifndef SAID
#define SAID TOTAL
#endif
#ifndef TAKEN_BACK
#define TAKEN_BACK TOTAL
#endif
#ifndef SAYING_LOADED
#define SAYING_LOADED TOTAL
#endif
#ifndef WORD_LOADED
#define WORD_LOADED TOTAL /* By who goes on. */
#endif
#ifndef DONE_LOADED
#define DONE_LOADED ACQUIRE /* By who gives up. */
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

#define PARTS 2
#define WORD(p) (p)
#define ONLY_ASKS PARTS
#define WORDS (PARTS + 1)
#define STORES (2 * RETURNS + 4)

/* A word says whether it is closed, and both counts. */
#define ONE_TAKEN 4
#define CLOSED 16
#define IS_CLOSED(word) (((word) & CLOSED) != 0)
#define AT_REST(word) ((((word) >> 2) & 3) == ((word) & 3))

#define BUFFERS 0
#define PLACES 1

#define HELPER 0
#define RANK 1
#define PROCESSES 2
#define HAS_TOTAL
#include "release_acquire.pml"

bool gone; /* The rank has its buffers back. */

#ifdef NO_SAYING
inline say() { skip }
#else
inline say() { store(ONLY_ASKS, SAID, 1) }
#endif
inline take_back() { store(ONLY_ASKS, TAKEN_BACK, 0) }
inline copy() { atomic { assert(!gone); write_place(BUFFERS) } }
inline count_done(p) { swap(WORD(p), DONE_ADDED, LATEST(WORD(p)) + 1) }

/* The rest of a part of the unit, for which it has not asked. */
inline copy_and_ask() {
#ifdef SAY_FIRST
    say();
    copy()
#else
    copy();
    say()
#endif
}

inline look_at_word() {
#ifdef NO_LOOK
    its_word = 0
#else
    atomic {
        choose_total(WORD(0), WORD_LOADED, true);
        its_word = CHOICE(WORD(0));
        take_in(WORD(0), WORD_LOADED)
    }
#endif
}

/* Sets `took`. */
inline take(p) {
    atomic {
        took = !IS_CLOSED(LATEST(WORD(p)));
        if
        :: took -> swap(WORD(p), TAKEN_SWAPPED, LATEST(WORD(p)) + ONE_TAKEN)
        :: else
        fi
    }
}

inline take_another() {
#ifndef NOT_BACK_TO_TAKE
    take_back();
#endif
    take(1);
    if
    :: took -> copy(); count_done(1)
    :: else
    fi;
    took = false;
    say()
}

proctype Helper(byte me) {
    byte returns;
    byte its_word;
    bool took;

    take(0);
    if
    :: took -> took = false; copy_and_ask()
    :: else -> goto finish
    fi;
    do
    :: true -> break /* It is away for good. */
    :: returns < RETURNS ->
        returns++;
        if
        :: true -> take_another()
        :: true ->
#ifndef NOT_BACK
            take_back();
#endif
            look_at_word();
            if
            :: IS_CLOSED(its_word) -> count_done(0); break
            :: else ->
                if
                :: true -> copy_and_ask()
                :: true -> copy(); count_done(0); break
                fi
            fi;
            its_word = 0
        fi
    od;
finish:
    skip
}

inline close_all() {
    do
    :: part < PARTS -> swap(WORD(part), CLOSE_SWAPPED, LATEST(WORD(part)) | CLOSED); part++
    :: else -> break
    od;
    part = 0
}

inline load_saying() {
    choose_total(ONLY_ASKS, SAYING_LOADED, true);
    saying = CHOICE(ONLY_ASKS);
    take_in(ONLY_ASKS, SAYING_LOADED)
}

#define MAY_LOOK (LATEST(ONLY_ASKS) == 1 || vain > 0) /* What it loads may be old. */

inline await_units() {
    do
    :: part == PARTS -> break
    :: part < PARTS && saying == 1 -> part++
    :: atomic {
           part < PARTS && AT_REST(LATEST(WORD(part))) ->
           choose(WORD(part), AT_REST(CHOICE(WORD(part))));
           take_in(WORD(part), DONE_LOADED);
           part++
       }
    :: atomic {
           part < PARTS && saying == 0 && MAY_LOOK ->
           load_saying();
           vain = (vain > 0 -> vain - 1 : 0)
       }
    od;
    part = 0
}

proctype Rank(byte me) {
    byte part;
    byte saying;
    byte vain = 1;

#ifdef LOOK_FIRST
    atomic { load_saying() }
#endif
    close_all();
    await_units();
    atomic {
        gone = true;
        write_place(BUFFERS)
    }
}

init {
    atomic {
        run Helper(HELPER);
        run Rank(RANK)
    }
}
