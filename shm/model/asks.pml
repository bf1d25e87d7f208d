/*
 * What one rank asks others to copy, where the kernel refuses it (transport/shm/asks.hpp): ASKS asks
 * in a row, each of one of PEERS ranks.
 *
 *   asker  writes what it asks for, then the word that names the ask and the rank, then the count
 *          in that rank's memory; goes on when the ask was answered
 *   peer   looks when its count has risen, or because somebody else asks it; copies what a word
 *          that names it and that it has not answered asks for, and answers
 *
 * The assertions say that each ask is done once, by the rank that it names, and that what it says
 * stands meanwhile. spin reports an invalid end state if the asker waits for ever.
 *
 * Steps: each load and store is one. Memory is sequentially consistent: the word and the answer are
 * stored with release and loaded with acquire, and a peer loads the answer before the word.
 *
 * Each variant breaks something, and must fail: WORD_FIRST (a peer loads the word before the answer,
 * by which it tells whether that word is a new one), WORD_EARLY (the word is there before what is
 * asked for), COUNT_FIRST (the count rises before the word is there), ANSWER_EARLY (a peer answers
 * before it has copied).
 */
#ifndef ASKS
#define ASKS 3
#endif
#define PEERS 2
#define LOOKS 2 /* For which the asker is not the reason. */

#define NUMBER(word) ((word) / PEERS)
#define RANK(word) ((word) % PEERS)
#define HALF_WRITTEN 255

byte word;
byte answered;
byte asked_for; /* The number of the ask that it belongs to. */
byte count[PEERS];

bool done[ASKS + 1];
bool ended;

inline say() {
    asked_for = HALF_WRITTEN;
    asked_for = number
}

inline look() {
    seen = count[self];
#ifdef WORD_FIRST
    now = word;
    before = answered;
#else
    before = answered;
    now = word;
#endif
    if
    :: NUMBER(now) > 0 && RANK(now) == self && now != before ->
        assert(asked_for == NUMBER(now));
        assert(!done[NUMBER(now)]);
#ifdef ANSWER_EARLY
        answered = now;
#endif
        assert(asked_for == NUMBER(now)); /* It has been copying. */
        done[NUMBER(now)] = true;
        answered = now
    :: else
    fi
}

active proctype asker() {
    byte number = 1;
    byte rank;
    do
    :: number <= ASKS ->
        if
        :: rank = 0
        :: rank = 1
        fi;
#ifdef COUNT_FIRST
        count[rank]++;
#endif
#ifdef WORD_EARLY
        word = number * PEERS + rank;
        say();
#else
        say();
        word = number * PEERS + rank;
#endif
#ifndef COUNT_FIRST
        count[rank]++;
#endif
        answered == word;
        assert(done[number]);
        number++
    :: else -> break
    od;
    ended = true
}

proctype peer(byte self) {
    byte looks = 0;
    byte seen = 0;
    byte now;
    byte before;
end:
    do
    :: count[self] != seen -> look()
    :: looks < LOOKS -> looks++; look()
    :: ended -> break
    od
}

init {
    atomic {
        run peer(0);
        run peer(1)
    }
}
