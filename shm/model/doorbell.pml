/*
 * The doorbell (shm/doorbell.hpp) among processes and threads:
 *
 *   sender    sends MESSAGES messages to the receiver over a ring of SLOTS slots; sleeps for room
 *   receiver  sleeps for messages, releases slots
 * and with THREADS defined
 *   other     sends one message to the thread
 *   thread    of the receiver's process: sleeps on the same doorbell, for its message and for room
 *
 * The first nap after an announcement is short: the clock ends it. Any other lasts until somebody
 * rings, except that one of each sleeper ends by itself. So a wake-up that is lost leaves a sleeper
 * for ever, which spin reports as an invalid end state.
 *
 * Memory: plain stores go through a store buffer, which the processor empties when it likes; a load
 * may so overtake an earlier store to another place. That is the one reordering that x86 has, and
 * the one that matters elsewhere: order among stores and among loads is kept by release and acquire.
 * Every store counts something up: visible[w] is what memory shows of writer w's count, buffered[w]
 * how many steps further its owner is. Compare-and-swap empties the caller's buffer; and no store
 * stays in a buffer for as long as a nap, so those that were there when one began are gone when the
 * clock ends it.
 *
 * Each variant takes something away, and must fail: SLOW_STORES (that outlast naps),
 * NO_ROOM_RING, LOOK_FIRST (a ringer looks at the doorbell before it publishes), WAKE_ONE (of
 * several sleepers), LONG_FIRST (naps that the clock does not end), STOOD_ONCE (one that has stood
 * counts for later announcements).
 *
 * NO_SECOND_LOOK (after the announcement) holds, since the look after the first nap makes good for
 * it: it only loses time.
 *
 * With COUNTED, ringers look first at the number of sleepers, as those of flag slots do, and at a
 * doorbell only if that is not 0. COUNT_LATE, a sleeper that counts itself after its announcement,
 * holds for the same reason.
 */
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef MESSAGES
#define MESSAGES 3
#endif

/* Awaits, in the word's two lowest bits. */
#define MESSAGE 1
#define ROOM 2
#define BOTH 3

/* Writers, each with a count in memory. */
#define SENDER 0   /* Messages sent to the receiver. */
#define RECEIVER 1 /* Slots released to the sender. */
#define OTHER 2    /* Messages sent to the thread. */
byte visible[3];
byte buffered[3];

/* Doorbells, each one word: what is awaited, and how often it was rung. */
#define BELL_S 0
#define BELL_R 1
byte awaited[2];
byte rung[2];

/* Who is in the kernel's queue of a futex. */
#define THREAD 2
bool asleep[3];

/* Who sleeps now and then, or is about to. */
byte sleepers;

byte finished;

inline store(writer) {
    buffered[writer]++
}

inline empty_buffer(writer) {
    visible[writer] = visible[writer] + buffered[writer];
    buffered[writer] = 0
}

/* The clock has ended a nap. */
inline time_passes() {
#ifndef SLOW_STORES
    empty_buffer(SENDER);
    empty_buffer(RECEIVER);
    empty_buffer(OTHER)
#else
    skip
#endif
}

/* FUTEX_WAKE */
inline wake(bell) {
    atomic {
        if
        :: bell == BELL_S -> asleep[SENDER] = false
#ifdef WAKE_ONE
        :: bell == BELL_R && asleep[RECEIVER] -> asleep[RECEIVER] = false
        :: bell == BELL_R && asleep[THREAD] -> asleep[THREAD] = false
        :: bell == BELL_R && !asleep[RECEIVER] && !asleep[THREAD]
#else
        :: bell == BELL_R -> asleep[RECEIVER] = false; asleep[THREAD] = false
#endif
        fi
    }
}

/* Doorbell::ring, after the look. */
inline answer(writer, bell, published) {
    do
    :: (seen & published) != 0 ->
        atomic {
            if
            :: awaited[bell] == seen && rung[bell] == seen_rung ->
                empty_buffer(writer);
                awaited[bell] = 0;
                rung[bell]++;
                won = true
            :: else ->
                seen = awaited[bell];
                seen_rung = rung[bell]
            fi
        }
        if
        :: won -> won = false; wake(bell); break
        :: else
        fi
    :: else -> break
    od;
    atomic { seen = 0; seen_rung = 0 }
}

/* A store that publishes something to the owner of `bell`, then Doorbell::ring. */
inline publish(writer, bell, what) {
#ifdef LOOK_FIRST
    atomic { seen = awaited[bell]; seen_rung = rung[bell] }
    store(writer);
#else
    store(writer);
#ifdef COUNTED
    atomic { count = sleepers }
    if
    :: count == 0
    :: else -> count = 0; atomic { seen = awaited[bell]; seen_rung = rung[bell] }
    fi
#else
    atomic { seen = awaited[bell]; seen_rung = rung[bell] }
#endif
#endif
    answer(writer, bell, what)
}

inline count_oneself() {
    atomic {
        if
        :: !counted -> counted = true; sleepers++
        :: else
        fi
    }
}

/* Sleeper::announce: the caller's last announcement is mine, mine_rung; `napped` if the clock ended
 * the nap after it. */
inline announce(bell, what) {
    atomic {
#ifndef STOOD_ONCE
        stood = false;
#endif
        stood = stood || (napped && mine == awaited[bell] && mine_rung == rung[bell]);
        napped = false;
        mine = awaited[bell];
        mine_rung = rung[bell];
        stands = (mine & what) == what
    }
    if
    :: stands
    :: else ->
        atomic { /* The caller's buffer is empty whenever it gets here: it has nothing to send. */
            awaited[bell] = awaited[bell] | what;
            mine = awaited[bell];
            mine_rung = rung[bell];
#ifndef STOOD_ONCE
            stood = false
#endif
        }
    fi
}

/* Sleeper::nap: FUTEX_WAIT. */
inline nap(who, bell) {
    atomic {
        if
        :: awaited[bell] == mine && rung[bell] == mine_rung -> asleep[who] = true
        :: else
        fi
    }
    if
    :: !asleep[who]
#ifndef LONG_FIRST
    :: atomic { !stood && asleep[who] -> asleep[who] = false; napped = true; time_passes() }
#endif
    :: !disturbed && asleep[who] -> disturbed = true; asleep[who] = false
    fi
}

/* Waits for `condition` as the last rung of the ladder does. */
inline wait(who, bell, what, condition) {
    do
    :: condition -> break
    :: else ->
#ifndef COUNT_LATE
        count_oneself();
#endif
        announce(bell, what);
#ifdef COUNT_LATE
        count_oneself();
#endif
#ifdef NO_SECOND_LOOK
        nap(who, bell)
#else
        if
        :: condition -> break
        :: else -> nap(who, bell)
        fi
#endif
    od;
    atomic {
        mine = 0; mine_rung = 0; stands = false; stood = false; napped = false;
        if
        :: counted -> counted = false; sleepers--
        :: else
        fi
    }
}

proctype Sender() {
    byte seen, seen_rung, mine, mine_rung, sent, count;
    bool won, stands, stood, napped, disturbed, counted;
    do
    :: sent < MESSAGES ->
        wait(SENDER, BELL_S, BOTH, (sent - visible[RECEIVER] < SLOTS));
        sent++;
        publish(SENDER, BELL_R, MESSAGE)
    :: else -> break
    od;
    finished++
}

proctype Receiver() {
    byte seen, seen_rung, mine, mine_rung, received, count;
    bool won, stands, stood, napped, disturbed, counted;
    do
    :: received < MESSAGES ->
        wait(RECEIVER, BELL_R, MESSAGE, (visible[SENDER] > received));
        received++;
#ifdef NO_ROOM_RING
        store(RECEIVER)
#else
        publish(RECEIVER, BELL_S, ROOM)
#endif
    :: else -> break
    od;
    finished++
}

proctype Other() {
    byte seen, seen_rung, count;
    bool won;
    publish(OTHER, BELL_R, MESSAGE);
    finished++
}

proctype Thread() {
    byte mine, mine_rung;
    bool stands, stood, napped, disturbed, counted;
    wait(THREAD, BELL_R, BOTH, (visible[OTHER] > 0));
    finished++
}

/* The processor's own emptying of store buffers, oldest first. */
proctype Memory() {
end:
    do
    :: atomic { buffered[SENDER] > 0 -> buffered[SENDER]--; visible[SENDER]++ }
    :: atomic { buffered[RECEIVER] > 0 -> buffered[RECEIVER]--; visible[RECEIVER]++ }
    :: atomic { buffered[OTHER] > 0 -> buffered[OTHER]--; visible[OTHER]++ }
    od
}

init {
    atomic {
        run Sender();
        run Receiver();
#ifdef THREADS
        run Other();
        run Thread();
#else
        finished = 2;
#endif
        run Memory()
    }
}

ltl all_finish { <> (finished == 4) }
