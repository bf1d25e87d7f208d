/*
 * A ring (shm/ring.hpp), and messages that stay where they are (shm/marks.hpp, as
 * transport/shm/link.cpp uses them): MESSAGES messages through DEPTH slots, or by an RTS with one
 * of MARKS marks.
 *
 *   sender    sends them in order, each by the ring, several in one run, or, while there is a mark,
 *             by an RTS; changes the memory of one whose RTS was sent as soon as it takes it for
 *             read, in any order; loads the credit at any time, and begins the round of BUFFERS
 *             anew, or not, when it finds that all was read (RingSender::reuse_buffers)
 *   receiver  awaits them in any order; what comes before the one it awaits it copies aside, if it
 *             came by the ring, or remembers, if an RTS came; gives slots back BATCH at a time
 *
 * Memory is that of release_acquire.pml, with the orders that the code has: slots, buffers and what
 * an RTS names are places, so the assertions say that each is written before it is read, and read
 * before it is written again; and a slot holds what was sent under its sequence number. spin
 * reports an invalid end state if somebody waits for ever. A look in vain is no step.
 *
 * Each variant breaks something, and must fail: SEQUENCE_FIRST (the sender stores the sequence
 * number before the slot is written), ROOM_TOO_MUCH (by one slot), RELEASE_FIRST (the receiver
 * gives a slot back that it has yet to read), TAKEN_FIRST (the FIN passes a message before its mark
 * is set), BIT_FIRST (the sender looks at the mark before the FIN), CLEAR_FIRST (the receiver
 * clears the mark of a message that it has yet to read), MARK_EARLY (the sender gives a mark away
 * that the FIN has passed, set or not), a BATCH of more than the slots, REUSE_EARLY (the sender
 * begins anew with one fragment unread), REUSE_ANYWHERE (also where no run may begin), BUFFERS that
 * are no multiple of the slots, and each order that is weaker.
 */
#ifndef MESSAGES
#define MESSAGES 4
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef MARKS
#define MARKS 2 /* 0: no RTS is sent. */
#endif
#ifndef BATCH
#define BATCH 1
#endif
#ifndef RUN
#define RUN 1 /* Slots of a run; 1: there are none. */
#endif
#ifndef BUFFERS
#define BUFFERS DEPTH
#endif
#ifndef FIRST_ROUNDS
#define FIRST_ROUNDS 1 /* In which only as many buffers as slots are used. */
#endif
#ifdef ROOM_TOO_MUCH
#define ROOM (DEPTH + 1)
#else
#define ROOM DEPTH
#endif
#ifdef REUSE_EARLY
#define UNREAD 1
#else
#define UNREAD 0
#endif

#ifdef REUSE_ANYWHERE
#define MAY_REUSE (first < sent && sent < MESSAGES)
#else
#define MAY_REUSE (first < sent && sent < MESSAGES && sent % RUN == 0)
#endif

/* The orders. */
#ifndef SEQUENCE_STORED
#define SEQUENCE_STORED RELEASE
#endif
#ifndef SEQUENCE_LOADED
#define SEQUENCE_LOADED ACQUIRE
#endif
#ifndef CREDIT_STORED
#define CREDIT_STORED RELEASE
#endif
#ifndef CREDIT_LOADED
#define CREDIT_LOADED ACQUIRE
#endif
#ifndef EMPTY_LOADED
#define EMPTY_LOADED ACQUIRE /* The credit, before the round of buffers begins anew. */
#endif
#ifndef TAKEN_STORED
#define TAKEN_STORED RELEASE
#endif
#ifndef TAKEN_LATER
#define TAKEN_LATER RELEASE /* The same for a message that was remembered. */
#endif
#ifndef TAKEN_LOADED
#define TAKEN_LOADED ACQUIRE
#endif
#ifndef MARK_SET
#define MARK_SET RELEASE /* Whose load shows other marks clear, too. */
#endif
#ifndef MARK_CLEARED
#define MARK_CLEARED RELEASE
#endif
#ifndef MARK_LOADED
#define MARK_LOADED ACQUIRE
#endif

#define SEQUENCE(n) ((n) % DEPTH)
#define RELEASED DEPTH
#define TAKEN (DEPTH + 1) /* The FIN: one more than the latest RTS whose message was read, ... */
#define REMEMBERED (DEPTH + 2) /* ... and a bit for each mark, of those that are read later. */
#define WORDS (DEPTH + 3)
#define STORES (2 * MESSAGES + 1)

#define SLOT(n) ((n) % DEPTH)
#define BUFFERS_AT(p) (DEPTH + ((p) >= FIRST_ROUNDS * DEPTH) * (BUFFERS - DEPTH))
#define BUFFER(p) (DEPTH + (p) % BUFFERS_AT(p))
#define MEMORY(m) (DEPTH + BUFFERS + (m))
#define PLACES (DEPTH + BUFFERS + MESSAGES)

#define PROCESSES 2
#define READERS 1
#define me (2 - _pid) /* The receiver is 0, which is run after the sender. */
#include "release_acquire.pml"

#define NONE 255
#define BIT(mark) (1 << (mark))

/* What slots hold. */
byte message[DEPTH];
byte length[DEPTH]; /* In slots; 0: it is an RTS, with ... */
byte mark[DEPTH];   /* ... this mark; otherwise it has ... */
byte at_place[DEPTH];  /* ... this place in the round of buffers. */

/* The sender's own. */
byte message_of[2]; /* By mark: unread, or NONE. */
byte unread[MESSAGES]; /* Its mark, or NONE. */

/* The receiver's own. */
bool got[MESSAGES];
byte kept[MESSAGES]; /* The mark of what it remembers, or NONE. */

byte count;

#if MARKS == 0
#define A_MARK_IS_FREE false
#elif MARKS == 1
#define A_MARK_IS_FREE (message_of[0] == NONE)
#else
#define A_MARK_IS_FREE (message_of[0] == NONE || message_of[1] == NONE)
#endif
#if MESSAGES == 4
#define ALL_GOT (got[0] && got[1] && got[2] && got[3])
#elif MESSAGES == 5
#define ALL_GOT (got[0] && got[1] && got[2] && got[3] && got[4])
#else
#define ALL_GOT (got[0] && got[1] && got[2] && got[3] && got[4] && got[5])
#endif

#define FREE(slots) (sent < MESSAGES && sent + (slots) - credit <= ROOM)

inline publish(slots, its_mark, its_place) {
#ifdef SEQUENCE_FIRST
    store(SEQUENCE(sent), SEQUENCE_STORED, sent + 1);
#endif
    write_place(SLOT(sent));
    message[SLOT(sent)] = sent;
    length[SLOT(sent)] = slots;
    mark[SLOT(sent)] = its_mark;
    at_place[SLOT(sent)] = its_place;
#ifndef SEQUENCE_FIRST
    store(SEQUENCE(sent), SEQUENCE_STORED, sent + 1);
#endif
    sent = sent + (slots > 1 -> slots : 1)
}

/* Buffers of a run lie side by side. */
inline send(slots) {
    do
    :: k < slots -> write_place(BUFFER(sent - first + k)); k++
    :: else -> break
    od;
    k = 0;
    assert(slots == 1 || BUFFER(sent - first + slots - 1) == BUFFER(sent - first) + slots - 1);
    publish(slots, NONE, sent - first)
}

inline send_rts() {
    do /* The lowest mark that is free. */
    :: message_of[k] != NONE -> k++
    :: else -> break
    od;
    message_of[k] = sent;
    unread[sent] = k;
    outstanding++;
    publish(0, k, NONE);
    k = 0
}

#define MARK_OF(m) message_of[unread[m]]
#define CLEAR_AT(store, m) ((value[AT_STORE(REMEMBERED, store)] & BIT(unread[m])) == 0)
/* The sender may load a word in which the mark is clear. */
#define MAY_BE_CLEAR(m)                                                                            \
    (CLEAR_AT(SEEN(me, REMEMBERED), m) || CLEAR_AT(latest[REMEMBERED], m))

inline load_taken(m) {
    choose(TAKEN, CHOICE(TAKEN) > m);
    take_in(TAKEN, TAKEN_LOADED)
}
inline load_mark(m) {
    choose(REMEMBERED, CLEAR_AT(chosen, m));
    take_in(REMEMBERED, MARK_LOADED)
}

/* Steps of the sender's loop: it takes a message for read. */
#define MAY_TAKE(m) (unread[m] != NONE && LATEST(TAKEN) > m && MAY_BE_CLEAR(m))
#ifdef BIT_FIRST
#define TAKE(m)                                                                                    \
    ::atomic { MAY_TAKE(m)->load_mark(m) }                                                         \
    atomic { load_taken(m); end_of(m) }
#else
#define TAKE(m)                                                                                    \
    ::atomic { MAY_TAKE(m)->load_taken(m) }                                                        \
    atomic {                                                                                       \
        if                                                                                         \
        ::MAY_BE_CLEAR(m)->load_mark(m);                                                           \
        end_of(m) ::else fi                                                                        \
    }
#endif

/* In MARK_EARLY it gives the mark away as soon as the FIN has passed. */
#ifdef MARK_EARLY
#define GIVE(m)                                                                                    \
    ::atomic {                                                                                     \
        unread[m] != NONE && MARK_OF(m) == m && LATEST(TAKEN) > m->load_taken(m);                  \
        MARK_OF(m) = NONE                                                                          \
    }
#else
#define GIVE(m)
#endif

inline end_of(m) {
    if
    :: MARK_OF(m) == m -> MARK_OF(m) = NONE
    :: else
    fi;
    unread[m] = NONE;
    outstanding--;
    write_place(MEMORY(m))
}

proctype Sender() {
    byte sent = 0;
    byte credit = 0;
    byte first = 0; /* The fragment with which the round of buffers began. */
    byte k = 0;
    byte outstanding = 0;
    do
    :: atomic { FREE(1) -> send(1) }
#if RUN > 1
    :: atomic { FREE(RUN) && sent % RUN == 0 && sent + RUN <= MESSAGES -> send(RUN) }
#endif
    :: atomic { FREE(1) && A_MARK_IS_FREE -> send_rts() }
    :: atomic {
           sent < MESSAGES && LATEST(RELEASED) > credit ->
           choose(RELEASED, CHOICE(RELEASED) > credit);
           credit = CHOICE(RELEASED);
           take_in(RELEASED, CREDIT_LOADED)
       }
#ifdef REUSE
    :: atomic {
           MAY_REUSE && LATEST(RELEASED) + UNREAD >= sent ->
           choose(RELEASED, CHOICE(RELEASED) + UNREAD >= sent);
           credit = CHOICE(RELEASED);
           first = sent;
           take_in(RELEASED, EMPTY_LOADED)
       }
#endif
    TAKE(0)
    TAKE(1)
    TAKE(2)
    TAKE(3)
    GIVE(0)
    GIVE(1)
    GIVE(2)
    GIVE(3)
#if MESSAGES > 4
    TAKE(4)
    GIVE(4)
#endif
#if MESSAGES > 5
    TAKE(5)
    GIVE(5)
#endif
    :: sent == MESSAGES && outstanding == 0 -> break
    od
}

inline release(slots) {
    received = received + slots;
    if
    :: received - credited >= BATCH ->
        credited = received;
        store(RELEASED, CREDIT_STORED, received)
    :: else
    fi
}

/* A fragment that came by the ring: it is copied to where it goes, or aside. */
inline receive() {
    k = 0;
    do
    :: k < slots -> read_place(BUFFER(at_place[SLOT(received)] + k)); got[received + k] = true; k++
    :: else -> break
    od;
    k = 0
}

/* The next fragment: message `received` of the sender's. */
inline read_slot() {
    atomic {
        !got[wanted] && kept[wanted] == NONE && LATEST(SEQUENCE(received)) == received + 1 ->
        choose(SEQUENCE(received), CHOICE(SEQUENCE(received)) == received + 1);
        take_in(SEQUENCE(received), SEQUENCE_LOADED);
        read_place(SLOT(received));
        assert(message[SLOT(received)] == received);
        slots = length[SLOT(received)]
    }
    if
    :: atomic {
           slots > 0 ->
#ifdef RELEASE_FIRST
           release(slots);
           received = received - slots;
           receive();
           received = received + slots;
#else
           receive();
           release(slots);
#endif
       }
    :: atomic { slots == 0 && received == wanted -> read_place(MEMORY(wanted)); release(1) }
       atomic { got[wanted] = true; taken = received; store(TAKEN, TAKEN_STORED, received) }
    :: slots == 0 && received != wanted -> remember()
    fi;
    slots = 0
}

inline remember() {
#ifdef TAKEN_FIRST
    atomic { taken = received + 1; store(TAKEN, TAKEN_STORED, taken) }
#endif
    atomic {
        kept[received] = mark[SLOT(received)];
        store(REMEMBERED, MARK_SET, LATEST(REMEMBERED) | BIT(kept[received]))
    }
    atomic { release(1) }
}

inline clear() {
    atomic {
        store(REMEMBERED, MARK_CLEARED, LATEST(REMEMBERED) & ~BIT(kept[wanted]));
        kept[wanted] = NONE;
#ifdef CLEAR_FIRST
        read_place(MEMORY(wanted));
#endif
        got[wanted] = true
    }
}

#define WANT(m) ::!got[m]->wanted = m

proctype Receiver() {
    byte received = 0;
    byte credited = 0;
    byte taken = 0;
    byte wanted = 0;
    byte slots = 0;
    byte k = 0;
    do
    :: atomic { /* Any that it does not have. */
           if
           WANT(0)
           WANT(1)
           WANT(2)
           WANT(3)
#if MESSAGES > 4
           WANT(4)
#endif
#if MESSAGES > 5
           WANT(5)
#endif
           :: ALL_GOT -> break
           fi
       }
       do
       :: got[wanted] -> break
       :: atomic {
              !got[wanted] && kept[wanted] != NONE ->
#ifndef CLEAR_FIRST
              read_place(MEMORY(wanted));
#endif
              if
              :: taken <= wanted -> taken = wanted + 1; store(TAKEN, TAKEN_LATER, taken)
              :: else
              fi
          }
          clear()
       :: read_slot()
       od
    od
}

init {
    atomic {
        do
        :: count < MESSAGES -> unread[count] = NONE; kept[count] = NONE; count++
        :: else -> break
        od;
        count = 0;
        do
        :: count < 2 -> message_of[count] = NONE; count++
        :: else -> break
        od;
        count = 0;
        run Sender();
        run Receiver()
    }
}
