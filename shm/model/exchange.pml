/*
 * How processes of a host pass their segments to one another (shm/exchange.hpp): PROCESSES of them
 * attach to those of their groups, each in its own order, one group after the other, or, with
 * AT_A_TIME, with the next one begun whenever they like.
 *
 *   caller  calls the door of one whose segment it misses, and sends its own with the greeting; may
 *           be refused that, since too many descriptors are in flight, hangs up then, and calls
 *           again; maps what the answer brings
 *   called  accepts who calls, whichever group it is attaching for, and answers; may be refused
 *           that, too, and tries again; maps what the greeting has brought when the answer has left,
 *           unless the caller has hung up or the segment is there
 *   leaves  the loop when it misses nobody of its group: then it hangs up on all whom it has called
 *           or accepted; who calls later waits at its door
 *
 * The assertions say that who has a segment has sent its own to that one. spin reports an invalid
 * end state if somebody waits for ever. Sockets are the kernel's, which orders what goes through
 * them, so there are no memory orders; there are no timeouts here, by which the code ends at last.
 *
 * With GIVES_UP the first process may withdraw when it misses somebody: it shuts its door, and serves
 * nobody any more. Who finds a door shut goes on without that one, until it misses nobody else, so
 * all come to an end even so, and those that live have one another's segments.
 *
 * Each variant breaks something, and must fail: MAP_FIRST (who is called maps before the answer has
 * left), ONLY_OWN (who is called serves those alone that it misses itself), ANSWER_LATER (a process
 * that misses nobody leaves though it has called and was refused, and counts what it heard for
 * served: it maps what it did not answer), DOOR_OPEN (with GIVES_UP: who withdraws leaves its door
 * open), LEAVES (with GIVES_UP and AT_A_TIME: who finds a door shut leaves, though others miss it).
 * With FIRST_CALLS (of a pair the first alone calls, however long it is at something else) nobody
 * waits for ever either: that the other calls as well saves time.
 */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#define GROUPS 2 /* Of each process. */
#ifndef REFUSALS
#define REFUSALS 1 /* Of all. */
#endif

#define BIT(p) (1 << (p))
#define AT(from, to) ((from) * PROCESSES + (to))
#define EVERYBODY (BIT(PROCESSES) - 1)

/* Of three the groups are pairs, and each process begins with another neighbour: first the next
   one in a circle, then the one before. */
#define NEXT(p) (((p) + 1) % PROCESSES)
#define BEFORE(p) (((p) + PROCESSES - 1) % PROCESSES)
#if PROCESSES == 2
#define MEMBER(p, group) BIT(1 - (p))
#else
#define MEMBER(p, group) ((group) == 0 -> BIT(NEXT(p)) : BIT(BEFORE(p)))
#endif

/* The connection of a pair, in one direction. */
#define NONE 0
#define AT_DOOR 1 /* With its greeting. */
#define ACCEPTED 2
#define ANSWERED 3
#define HUNG_UP 4 /* By who was called, unanswered. */
byte connection[PROCESSES * PROCESSES];

byte mapped[PROCESSES]; /* Whose segments it has. */
byte sent_to[PROCESSES];
bool shut[PROCESSES];
byte refusals;

#ifdef FIRST_CALLS
#define MAY_CALL(p) (me < (p))
#else
#define MAY_CALL(p) true
#endif
#ifdef ONLY_OWN
#define SERVES(p) ((missing & BIT(p)) != 0)
#else
#define SERVES(p) true
#endif

#define MISSED (missing & ~mapped[me] & ~without)
#define MISSES(p) ((MISSED & BIT(p)) != 0)
#ifdef LEAVES
#define FINDS_SHUT(p) missing = 0
#else
#define FINDS_SHUT(p) without = without | BIT(p)
#endif

inline map(p) {
#ifndef MAP_FIRST
    assert((sent_to[me] & BIT(p)) != 0);
#endif
    mapped[me] = mapped[me] | BIT(p)
}

/* Steps of the loop, with process p. */
#define CALL(p)                                                                                    \
    ::atomic {                                                                                     \
        p != me && MISSES(p) && MAY_CALL(p) && !shut[p] && connection[AT(me, p)] == NONE->if       \
            ::connection[AT(me, p)] = AT_DOOR;                                                     \
        sent_to[me] = sent_to[me] | BIT(p) ::refusals < REFUSALS->refusals++ fi                    \
    }                                                                                              \
    ::atomic {                                                                                     \
        p != me && MISSES(p) && shut[p] && connection[AT(me, p)] == NONE->FINDS_SHUT(p)            \
    }
#define HEAR_ANSWER(p)                                                                             \
    ::atomic {                                                                                     \
        p != me && connection[AT(me, p)] == ANSWERED->connection[AT(me, p)] = NONE;                \
        map(p)                                                                                     \
    }                                                                                              \
    ::atomic { p != me && connection[AT(me, p)] == HUNG_UP->connection[AT(me, p)] = NONE }
#ifdef MAP_FIRST
#define TAKE_GREETING(p) map(p)
#else
#define TAKE_GREETING(p) skip
#endif
#define ACCEPT(p)                                                                                  \
    ::atomic {                                                                                     \
        p != me && SERVES(p) && connection[AT(p, me)] == AT_DOOR->connection[AT(p, me)] =          \
            ACCEPTED;                                                                              \
        TAKE_GREETING(p)                                                                           \
    }
#define ANSWER(p)                                                                                  \
    ::atomic {                                                                                     \
        p != me && connection[AT(p, me)] == ACCEPTED->if ::connection[AT(p, me)] = ANSWERED;       \
        sent_to[me] = sent_to[me] | BIT(p);                                                        \
        map(p) ::refusals<REFUSALS->refusals++; REFUSED(p) fi                                      \
    }
#ifdef ANSWER_LATER
#define REFUSED(p) mapped[me] = mapped[me] | BIT(p)
#else
#define REFUSED(p) skip
#endif

/* Hangs up on all. What was answered is read by the other end nevertheless. */
inline hang_up() {
    peer = 0;
    do
    :: peer < PROCESSES ->
        connection[AT(me, peer)] = NONE;
        if
        :: connection[AT(peer, me)] == ACCEPTED ||
           (connection[AT(peer, me)] == AT_DOOR && shut[me]) -> connection[AT(peer, me)] = HUNG_UP
        :: else
        fi;
        peer++
    :: else -> break
    od;
    peer = 0
}

proctype Process(byte me) {
    byte group, missing, without, peer;
    do
    :: group == GROUPS -> break
    :: group < GROUPS ->
        missing = MEMBER(me, group);
        do
        :: atomic { MISSED == 0 -> hang_up(); break }
#ifdef AT_A_TIME
        :: atomic { group < GROUPS - 1 -> group++; missing = missing | MEMBER(me, group) }
#endif
        CALL(0)
        CALL(1)
        HEAR_ANSWER(0)
        HEAR_ANSWER(1)
        ACCEPT(0)
        ACCEPT(1)
        ANSWER(0)
        ANSWER(1)
#if PROCESSES > 2
        CALL(2)
        HEAR_ANSWER(2)
        ACCEPT(2)
        ANSWER(2)
#endif
#ifdef GIVES_UP
        :: me == 0 -> goto gives_up
#endif
        od;
        group++
    od;
    goto finish;
gives_up:
    atomic {
#ifndef DOOR_OPEN
        shut[me] = true;
#endif
        hang_up()
    }
finish:
    skip
}

init {
    atomic {
        run Process(0);
        run Process(1);
#if PROCESSES > 2
        run Process(2)
#endif
    }
}
