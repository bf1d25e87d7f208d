/*
 * Units that whoever comes does (shm/unit_word.hpp, as transport/shm/help.cpp uses it): COLLECTIVES
 * collectives of RANKS ranks, in each of which PARTS of them have a part of UNITS units that names
 * all ranks, through one entry, used again and again.
 *
 *   rank  begins a collective: opens its word, then says its turn; takes units of whatever part,
 *         its own or another's, or is elsewhere at any time; ends the collective when all parts
 *         are over, which it learns from words or from an owner that is further on; may give up at
 *         any time, and takes its buffers back
 *
 * The assertions say that each unit is done once, between the beginning and the end of that
 * collective at all ranks, never after one of these has taken its buffers back, and that all are
 * done when a rank ends it. A look that finds nothing to do is no step; spin reports an invalid end
 * state if somebody waits for ever.
 *
 * Steps: a helper's look at turns and word, its second look at turns and its compare-and-swap are
 * three. Memory is sequentially consistent: turns are in one order of all ranks, a word is opened
 * before its turn is said, with release, and counts rise by read-modify-writes.
 *
 * Each variant breaks something, and must fail: NO_NAME (who takes a unit does not look whose the
 * word is), TURN_FIRST (an owner says its turn before it opens its word), DONE_FIRST (a unit counts
 * before it is done), NO_BEGUN (nobody looks whether all have begun), NO_CLOSE (who gives up leaves
 * words open), NO_WAIT (nor waits for units that were taken), NO_TURN (nor tells those who have not
 * begun), NOT_AGAIN (a helper does not look again at words of an owner that was at an earlier one:
 * it takes those for over), SWAP_BLIND (it stores what it has read and one more), NOT_OF_GIVEN_UP
 * (of three ranks, two give up: neither closes the word of the other).
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

#define GIVEN_UP 15
#define NONE 15
#define AT(c, p) ((c) * RANKS + (p))
#define ALL_UNITS ((1 << UNITS) - 1)

/* The entry and the word of each rank. */
byte turn[RANKS];
byte name[RANKS] = NONE;
byte taken[RANKS];
byte done[RANKS];
bool closed[RANKS];

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

#define GAVE_UP(r) (turn[r] == GIVEN_UP)
#define HAS_BEGUN(r) (turn[r] != GIVEN_UP && turn[r] > now)
#ifdef NO_BEGUN
#define ALL_BEGUN true
#else
#define ALL_BEGUN EACH(HAS_BEGUN)
#endif
#define IS_WHOLE(r) (r >= PARTS || written[AT(now, r)] == ALL_UNITS)
#define IS_THERE(r) (begun[r] > now && ended[r] <= now && !gone[r])

#ifdef NO_NAME
#define NAMED(p) true
#else
#define NAMED(p) (name[p] == now)
#endif
/* The owner has come so far, and its word says so, or it is further on. */
#define LATER(p) (turn[p] != GIVEN_UP && turn[p] > now + 1)
#ifdef NOT_AGAIN
#define OVER(p) (turn[p] != GIVEN_UP && (name[p] != now || LATER(p) || done[p] == UNITS))
#else
#define OVER(p)                                                                                    \
    (LATER(p) || (turn[p] == now + 1 && (name[p] != now || (!closed[p] && done[p] == UNITS))))
#endif
#define OPEN(p)                                                                                    \
    (turn[p] == now + 1 && NAMED(p) && !closed[p] && taken[p] < UNITS && ALL_BEGUN)
#define BROKEN(p) (GAVE_UP(p) || (turn[p] == now + 1 && name[p] == now && closed[p]))

#define OVER_SEEN(p) (over & (1 << (p)))

proctype Rank(byte me) {
    byte now;  /* The collective that it is at. */
    byte over; /* Parts that it knows to be over. */
    byte part;
    byte had_taken;
    byte had_done;
    bool took;
    byte i;

begin:
    if
    :: now == COLLECTIVES -> goto finish
    :: else
    fi;
    begun[me] = now + 1;
#ifdef TURN_FIRST
    turn[me] = now + 1;
#endif
    atomic {
        name[me] = now;
        taken[me] = 0;
        done[me] = 0;
        closed[me] = false
    }
#ifndef TURN_FIRST
    turn[me] = now + 1;
#endif
    over = ((1 << RANKS) - 1) - ((1 << PARTS) - 1);

    do
    :: over == (1 << RANKS) - 1 ->
        atomic {
            assert(EACH(IS_WHOLE));
            now++;
            ended[me] = now
        }
        goto begin
    :: atomic { !OVER_SEEN(0) && OVER(0) -> over = over | 1 }
    :: atomic { !OVER_SEEN(1) && OVER(1) -> over = over | 2 }
#if RANKS > 2
    :: atomic { !OVER_SEEN(2) && OVER(2) -> over = over | 4 }
    :: atomic { !OVER_SEEN(2) && OPEN(2) -> part = 2; had_taken = taken[2]; had_done = done[2] }
        goto take
#endif
    :: atomic { !OVER_SEEN(0) && OPEN(0) -> part = 0; had_taken = taken[0]; had_done = done[0] }
        goto take
    :: atomic { !OVER_SEEN(1) && OPEN(1) -> part = 1; had_taken = taken[1]; had_done = done[1] }
        goto take
    :: SOME(BROKEN) -> goto give_up
    :: goto give_up /* For a reason of its own. */
    :: false;
take:
        if
        :: ALL_BEGUN
        :: else -> goto again
        fi;
        atomic {
#ifdef SWAP_BLIND
            took = true;
            taken[part] = had_taken + 1;
#else
            took = NAMED(part) && !closed[part] && taken[part] == had_taken &&
                   done[part] == had_done;
            taken[part] = taken[part] + (took -> 1 : 0)
#endif
        }
        if
        :: took ->
#ifdef DONE_FIRST
            done[part] = done[part] + 1;
#endif
            assert(EACH(IS_THERE)); /* It begins to read, */
            atomic {
                assert(EACH(IS_THERE)); /* and has written. */
                assert((written[AT(now, part)] & (1 << had_taken)) == 0);
                written[AT(now, part)] = written[AT(now, part)] | (1 << had_taken)
            }
#ifndef DONE_FIRST
            done[part] = done[part] + 1
#endif
        :: else
        fi;
again:
        skip
    od;

give_up:
#ifndef NO_TURN
    turn[me] = GIVEN_UP;
#endif
    i = 0;
    do
    :: i < RANKS ->
#ifndef NO_CLOSE
        if
#ifdef NOT_OF_GIVEN_UP
        :: atomic { (i == me || turn[i] == now + 1) && name[i] == now -> closed[i] = true }
#else
        :: atomic { turn[i] > now && name[i] == now -> closed[i] = true }
#endif
        :: else
        fi;
#endif
        i++
    :: else -> break
    od;
#ifndef NO_WAIT
    i = 0;
    do
    :: i < RANKS ->
        (name[i] != now || taken[i] == done[i]);
        i++
    :: else -> break
    od;
#endif
    gone[me] = true;
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
