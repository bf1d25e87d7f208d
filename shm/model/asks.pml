/*
 * What one rank asks others to copy, where the kernel refuses it (transport/shm/asks.hpp): ASKS asks
 * in a row, each of one of PEERS ranks, which either brings something to that rank or fetches
 * something there, by way of the same memory of the asker's (the room).
 *
 *   asker  writes what it asks for, then the word that names the ask and the rank, then the count
 *          in that rank's memory; goes on when the ask was answered
 *   peer   looks when its count has risen, or because somebody else asks it; copies what a word
 *          that names it and that it has not answered asks for, and answers
 *
 * Memory is that of release_acquire.pml, with the orders that the code has: what is asked for, and
 * the room, are places, so the assertions say that each is written before it is read, and read
 * before it is written again; and that each ask is done once, by the rank that it names. spin
 * reports an invalid end state if the asker waits for ever.
 *
 * Each variant breaks something, and must fail: WORD_FIRST (a peer loads the word before the answer,
 * by which it tells whether that word is a new one), WORD_EARLY (the word is there before what is
 * asked for), COUNT_FIRST (the count rises before the word is there), ANSWER_EARLY (a peer answers
 * before it has copied), NO_ANSWER_SEEN (a peer does not look whether it has answered), and each
 * order that is weaker.
 */
#ifndef ASKS
#define ASKS 2
#endif
#define PEERS 2
#define LOOKS 1 /* For which the asker is not the reason. */

/* The orders. */
#ifndef WORD_STORED
#define WORD_STORED RELEASE
#endif
#ifndef WORD_LOADED
#define WORD_LOADED ACQUIRE
#endif
#ifndef COUNT_ADDED
#define COUNT_ADDED RELEASE
#endif
#ifndef COUNT_LOADED
#define COUNT_LOADED ACQUIRE
#endif
#ifndef ANSWER_STORED
#define ANSWER_STORED RELEASE
#endif
#ifndef ANSWER_LOADED
#define ANSWER_LOADED ACQUIRE /* By the asker. */
#endif
#ifndef EARLIER_LOADED
#define EARLIER_LOADED ACQUIRE /* The same word, by a peer. */
#endif

#define COUNT(rank) (rank)
#define WORD PEERS
#define ANSWERED (PEERS + 1)
#define WORDS (PEERS + 2)
#define STORES (ASKS + 1)

#define ASKED_FOR 0
#define ROOM 1
#define PLACES 2

#define ASKER PEERS
#define PROCESSES (PEERS + 1)
#define READERS 3
#include "release_acquire.pml"

#define NUMBER(word) ((word) / PEERS)
#define RANK(word) ((word) % PEERS)

/* What the place holds. */
byte asked_for; /* The number of the ask that it belongs to. */
bool fetches;   /* It is to come by the room. */

bool done[ASKS + 1];
bool ended;

inline say() {
    atomic {
        if
        :: fetches = true
        :: fetches = false; write_place(ROOM)
        fi;
        write_place(ASKED_FOR);
        asked_for = number
    }
}

inline load_word() { atomic { choose(WORD, true); now = CHOICE(WORD); take_in(WORD, WORD_LOADED) } }

inline load_answer() {
    atomic { choose(ANSWERED, true); before = CHOICE(ANSWERED); take_in(ANSWERED, EARLIER_LOADED) }
}

inline answer() { store(ANSWERED, ANSWER_STORED, now) }

#ifdef NO_ANSWER_SEEN
#define IS_NEW true
#else
#define IS_NEW (now != before)
#endif

inline look() {
#ifdef WORD_FIRST
    load_word();
    load_answer();
#else
    load_answer();
    load_word();
#endif
    if
    :: NUMBER(now) > 0 && RANK(now) == me && IS_NEW ->
#ifdef ANSWER_EARLY
        answer();
#endif
        atomic {
            read_place(ASKED_FOR);
            assert(asked_for == NUMBER(now) && !done[NUMBER(now)]);
            if
            :: fetches -> write_place(ROOM)
            :: else -> read_place(ROOM)
            fi;
            done[NUMBER(now)] = true
        }
#ifndef ANSWER_EARLY
        answer()
#endif
    :: else
    fi;
    atomic { now = 0; before = 0 }
}

proctype Asker(byte me) {
    byte number = 1;
    byte rank;
    byte asking;
    do
    :: number <= ASKS ->
        if
        :: rank = 0
        :: rank = 1
        fi;
        asking = number * PEERS + rank;
#ifdef COUNT_FIRST
        swap(COUNT(rank), COUNT_ADDED, LATEST(COUNT(rank)) + 1);
#endif
#ifdef WORD_EARLY
        store(WORD, WORD_STORED, asking);
        say();
#else
        say();
        store(WORD, WORD_STORED, asking);
#endif
#ifndef COUNT_FIRST
        swap(COUNT(rank), COUNT_ADDED, LATEST(COUNT(rank)) + 1);
#endif
        atomic {
            LATEST(ANSWERED) == asking -> choose(ANSWERED, CHOICE(ANSWERED) == asking);
            take_in(ANSWERED, ANSWER_LOADED);
            assert(done[number]);
            if
            :: fetches -> read_place(ROOM)
            :: else
            fi;
            number++
        }
    :: else -> break
    od;
    ended = true
}

proctype Peer(byte me) {
    byte looks, counted, now, before;
end:
    do
    :: atomic {
           LATEST(COUNT(me)) > counted -> choose(COUNT(me), CHOICE(COUNT(me)) > counted);
           counted = CHOICE(COUNT(me));
           take_in(COUNT(me), COUNT_LOADED)
       }
       look()
    :: looks < LOOKS -> looks++; look()
    :: ended -> break
    od
}

init {
    atomic {
        run Peer(0);
        run Peer(1);
        run Asker(ASKER)
    }
}
