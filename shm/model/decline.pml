/*
 * Messages that stay where they are, of which the receiver may read none any more from some moment
 * on (shm/ring.hpp, as transport/shm/link.cpp and link_elsewhere.cpp use it): MESSAGES messages
 * with one of MARKS marks. That slots are free when they are written is ring.pml's subject: here
 * each entry of the ring has a slot of its own.
 *
 *   sender    sends them in order, each by the ring or, while there is a mark and it has not seen
 *             that they are declined, by an RTS; changes the buffer of one that it takes for read;
 *             sends those that are declined and that it has not taken so, in any order
 *   receiver  awaits them in any order; what comes before the one it awaits it copies aside or
 *             remembers; may be refused whenever it is about to read, and declines from then on
 *
 * Memory is that of release_acquire.pml, with the orders that the code has: what an RTS names is a
 * place, so the assertions say that the sender changes nothing that the receiver may yet read; that
 * each message comes once; and that a mark is set for the message that has it. spin reports an
 * invalid end state if somebody waits for ever. With SEQUENTIAL it is for more messages, and the
 * assertions say that a buffer holds what was sent when it is read.
 *
 * The sender loads the FIN, the bit of a mark, or whether they are declined, in one step each.
 *
 * Each variant breaks something, and must fail: NO_BIT (the receiver frees the slot of the RTS of a
 * message that it declines, and sets no bit), KEPT_STAY (it does not decline what it remembers),
 * CLEAR_EARLY (it clears the bit of one that it awaits, and that has not come), LOOK_FIRST (the
 * sender asks whether a message was read before it sees that they are declined, and not after),
 * FREE_EARLY (it gives the mark away when it sends the message). With NO_CLEAR (the receiver clears
 * no bit of what it declined) marks are lost, and nothing else: it must hold. Each order that is
 * weaker must fail.
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef MARKS
#define MARKS 2
#endif

#define LOOKS 2
#define NONE 255
#define ENTRIES (2 * MESSAGES)

/* The orders. */
#ifndef SEQUENCE_STORED
#define SEQUENCE_STORED RELEASE
#endif
#ifndef SEQUENCE_LOADED
#define SEQUENCE_LOADED ACQUIRE
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
#define MARK_SET RELEASE
#endif
#ifndef MARK_CLEARED
#define MARK_CLEARED RELEASE
#endif
#ifndef MARK_LOADED
#define MARK_LOADED ACQUIRE
#endif
#ifndef DECLINED_STORED
#define DECLINED_STORED RELEASE
#endif
#ifndef DECLINED_LOADED
#define DECLINED_LOADED ACQUIRE
#endif

#define WRITTEN 0    /* How many entries of the ring are there. */
#define TAKEN 1      /* The FIN: the entry after the latest RTS whose message was taken. */
#define REMEMBERED 2 /* A bit for each mark. */
#define DECLINED 3
#define WORDS 4
#define STORES (ENTRIES + 1)

#define MEMORY(m) (m)
#define PLACES MESSAGES

#define PROCESSES 2
#define READERS 1
#define me (2 - _pid) /* The receiver is 0, which is run after the sender. */
#include "release_acquire.pml"

#define BIT(its_mark) (1 << (its_mark))

/* What entries hold. */
byte message[ENTRIES];
byte mark[ENTRIES]; /* NONE: it came by the ring. */

bool changed[MESSAGES]; /* The sender's buffer. */
byte holder[MARKS];     /* The sender's own, which the assertions look at. */

inline append(m, its_mark) {
    atomic {
        message[LATEST(WRITTEN)] = m;
        mark[LATEST(WRITTEN)] = its_mark;
        store(WRITTEN, SEQUENCE_STORED, LATEST(WRITTEN) + 1)
    }
}

inline load_declined() {
    atomic { choose(DECLINED, true); saw = CHOICE(DECLINED); take_in(DECLINED, DECLINED_LOADED) }
}

/* The sender's steps about message m, whose RTS has been sent. */
inline load_taken(m) {
    atomic { choose(TAKEN, true); passed = CHOICE(TAKEN) > entry[m]; take_in(TAKEN, TAKEN_LOADED) }
}

inline load_mark(its_mark) {
    atomic {
        choose(REMEMBERED, true);
        clear = (CHOICE(REMEMBERED) & BIT(its_mark)) == 0;
        take_in(REMEMBERED, MARK_LOADED)
    }
}

inline look(m) {
    load_taken(m);
    if
    :: passed -> load_mark(its[m])
    :: else -> clear = false
    fi
}

inline take_back(m) {
#ifdef LOOK_FIRST
    look(m);
    if
    :: clear -> end_of(m)
    :: else ->
        load_declined();
        if
        :: saw -> send_now(m)
        :: else
        fi
    fi;
#else
    look(m);
    if
    :: clear -> end_of(m)
    :: else ->
        load_declined();
        if
        :: saw ->
            look(m);
            if
            :: clear -> end_of(m)
            :: else -> send_now(m)
            fi
        :: else
        fi
    fi;
#endif
    atomic {
        passed = false;
        clear = false;
        saw = false;
        vain = (its[m] != NONE && vain > 0 -> vain - 1 : vain)
    }
}

inline end_of(m) {
    atomic {
        write_place(MEMORY(m));
        changed[m] = true;
        holder[its[m]] = NONE;
        its[m] = NONE;
        outstanding--
    }
}

inline send_now(m) {
    atomic {
        stopped = true;
        assert(!changed[m]);
        append(m, NONE);
#ifdef FREE_EARLY
        holder[its[m]] = NONE;
        its[m] = NONE;
#else
        lost[m] = its[m];
        its[m] = NONE;
#endif
        write_place(MEMORY(m));
        changed[m] = true;
        outstanding--
    }
}

/* The mark of one that was sent is free when the receiver has said so. */
inline free_mark(m) {
    load_taken(m);
    if
    :: passed -> load_mark(lost[m])
    :: else
    fi;
    if
    :: clear -> atomic { holder[lost[m]] = NONE; lost[m] = NONE }
    :: else
    fi;
    atomic { passed = false; clear = false }
}

/* Of looks that find nothing there are few, or who waits for ever would look for ever. */
#define CLEAR(its_mark) ((LATEST(REMEMBERED) & BIT(its_mark)) == 0)
#define PASSED(m) (LATEST(TAKEN) > entry[m])
#define CAN_LOOK(m)                                                                                \
    (its[m] != NONE && (PASSED(m) && CLEAR(its[m]) || LATEST(DECLINED) != 0 || vain > 0))
#define CAN_FREE(m) (lost[m] != NONE && PASSED(m) && CLEAR(lost[m]))

proctype Sender() {
    byte sent, k, outstanding;
    byte its[MESSAGES], lost[MESSAGES], entry[MESSAGES];
    byte vain = LOOKS;
    bool passed, clear, saw, stopped;
    atomic {
        do
        :: k < MESSAGES -> its[k] = NONE; lost[k] = NONE; k++
        :: else -> break
        od;
        k = 0
    }
    do
    :: sent < MESSAGES -> atomic { append(sent, NONE); changed[sent] = true; sent++ }
    :: sent < MESSAGES && !stopped ->
        load_declined();
        if
        :: saw -> atomic { stopped = true; saw = false }
        :: else ->
            atomic {
                do
                :: k < MARKS && holder[k] != NONE -> k++
                :: else -> break
                od;
                if
                :: k < MARKS ->
                    assert(CLEAR(k));
                    holder[k] = sent;
                    its[sent] = k;
                    entry[sent] = LATEST(WRITTEN);
                    outstanding++;
                    write_place(MEMORY(sent));
                    append(sent, k);
                    sent++
                :: else
                fi;
                k = 0
            }
        fi
    :: CAN_LOOK(0) -> take_back(0)
    :: CAN_LOOK(1) -> take_back(1)
    :: CAN_FREE(0) -> free_mark(0)
    :: CAN_FREE(1) -> free_mark(1)
#if MESSAGES > 2
    :: CAN_LOOK(2) -> take_back(2)
    :: CAN_FREE(2) -> free_mark(2)
#endif
#if MESSAGES > 3
    :: CAN_LOOK(3) -> take_back(3)
    :: CAN_FREE(3) -> free_mark(3)
#endif
    :: sent == MESSAGES && outstanding == 0 -> break
    od
}

inline set_bit(m, its_mark) {
    atomic {
        assert(holder[its_mark] == m);
        store(REMEMBERED, MARK_SET, LATEST(REMEMBERED) | BIT(its_mark))
    }
}

/* Inbox::decline_rts, after the message that could not be read. */
inline decline_all() {
#ifndef KEPT_STAY
    atomic {
        n = 0;
        do
        :: n < MESSAGES ->
            if
            :: kept[n] != NONE -> skipped[n] = kept[n]; kept[n] = NONE
            :: else
            fi;
            n++
        :: else -> break
        od;
        n = 0
    }
#endif
    declines = true;
    store(DECLINED, DECLINED_STORED, 1)
}

/* The sender may change what was remembered. */
inline take_later(sequence, its_mark) {
    if
    :: LATEST(TAKEN) < sequence -> store(TAKEN, TAKEN_LATER, sequence)
    :: else
    fi;
    store(REMEMBERED, MARK_CLEARED, LATEST(REMEMBERED) & ~BIT(its_mark))
}

inline pass_over() {
#ifndef NO_BIT
    set_bit(m, mark[received]);
#endif
    atomic { skipped[m] = mark[received]; at[m] = received; received++ }
}

inline come(m) {
    atomic { assert(!got[m] && !early[m]); early[m] = true }
}

inline read_entry() {
    atomic {
        choose(WRITTEN, CHOICE(WRITTEN) > received);
        take_in(WRITTEN, SEQUENCE_LOADED);
        m = message[received]
    }
    if
    :: mark[received] == NONE ->
#ifndef NO_CLEAR
        if
        :: skipped[m] != NONE -> take_later(at[m] + 1, skipped[m]); skipped[m] = NONE
        :: else
        fi;
#endif
        come(m);
        received++
    :: mark[received] != NONE && declines -> pass_over()
    :: mark[received] != NONE && !declines && wanted == m ->
        if
        :: atomic { assert(!changed[m]); read_place(MEMORY(m)); come(m) }
           atomic { store(TAKEN, TAKEN_STORED, received + 1); received++ }
        :: pass_over(); decline_all() /* It is refused. */
        fi
    :: mark[received] != NONE && !declines && wanted != m ->
        set_bit(m, mark[received]);
        atomic { kept[m] = mark[received]; at[m] = received; received++ }
    fi;
    m = 0
}

inline read_kept() {
    if
    :: atomic { assert(!changed[wanted]); read_place(MEMORY(wanted)); come(wanted) }
       take_later(at[wanted] + 1, kept[wanted]);
       kept[wanted] = NONE
    :: !declines -> decline_all()
    fi
}

proctype Receiver() {
    byte received, wanted, count, m, n;
    bool got[MESSAGES], early[MESSAGES];
    byte kept[MESSAGES], skipped[MESSAGES], at[MESSAGES];
    bool declines;
    atomic {
        do
        :: n < MESSAGES -> kept[n] = NONE; skipped[n] = NONE; n++
        :: else -> break
        od;
        n = 0
    }
    do
    :: count == MESSAGES -> break
    :: count < MESSAGES ->
        atomic {
            if
            :: !got[0] -> wanted = 0
            :: !got[1] -> wanted = 1
#if MESSAGES > 2
            :: !got[2] -> wanted = 2
#endif
#if MESSAGES > 3
            :: !got[3] -> wanted = 3
#endif
            fi
        }
#ifdef CLEAR_EARLY
        if
        :: skipped[wanted] != NONE ->
            take_later(at[wanted] + 1, skipped[wanted]);
            skipped[wanted] = NONE
        :: else
        fi;
#endif
        do
        :: early[wanted] -> atomic { early[wanted] = false; got[wanted] = true; break }
        :: !early[wanted] && kept[wanted] != NONE -> read_kept()
        :: !early[wanted] && kept[wanted] == NONE && received < LATEST(WRITTEN) -> read_entry()
        od;
        count++
    od
}

init {
    byte n = 0;
    atomic {
        do
        :: n < MARKS -> holder[n] = NONE; n++
        :: else -> break
        od;
        run Sender();
        run Receiver()
    }
}
