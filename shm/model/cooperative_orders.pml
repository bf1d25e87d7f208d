/*
 * The memory orders of a message that both of its ends copy (shm/cooperative_copy.hpp): MESSAGES messages
 * of UNITS units each, in any order. cooperative.pml has the whole agreement, where memory is
 * sequentially consistent; this has what the orders are for, with the memory of
 * release_acquire.pml.
 *
 *   sender    sends their RTS one after the other, and pushes units of the one that is not taken
 *   receiver  awaits them by number; may open a sequence number for the first that it awaits before
 *             one comes, closes it and opens it again for another that has come; pulls units
 *
 * The target and each unit of a message's memory are places, so the assertions say that the sender
 * reads the target of its own message, that each unit is written once, and that all are there when
 * the receiver ends the message. The name is one word here, as both of its words have the same
 * orders.
 *
 * Each of these that is weaker must fail: the release of `claims` when they are opened, the acquire
 * of the sender's swap, and both orders of `pushed`. All others hold when they are relaxed, even
 * all at once, since whose swap succeeds has acquired target and name with `claims`. The code keeps
 * them: that the sender loads the name before its swap, and the receiver stores another one after
 * it has closed, this memory takes for granted, which has no load buffering; C++ orders it by the
 * release of the swap and the acquire of the close, or by those of the name.
 */
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef UNITS
#define UNITS 2
#endif

/* The orders. */
#ifndef NAME_STORED
#define NAME_STORED RELEASE
#endif
#ifndef NAME_LOADED
#define NAME_LOADED ACQUIRE
#endif
#ifndef CLAIMS_STORED
#define CLAIMS_STORED RELEASE
#endif
#ifndef CLAIMS_LOADED
#define CLAIMS_LOADED ACQUIRE
#endif
#ifndef SENDER_SWAPS
#define SENDER_SWAPS (ACQUIRE | RELEASE)
#endif
#ifndef RECEIVER_SWAPS
#define RECEIVER_SWAPS (ACQUIRE | RELEASE)
#endif
#ifndef CLOSE_SWAPS
#define CLOSE_SWAPS (ACQUIRE | RELEASE)
#endif
#ifndef PUSHED_BEGUN
#define PUSHED_BEGUN RELAXED
#endif
#ifndef PUSHED_STORED
#define PUSHED_STORED RELEASE
#endif
#ifndef PUSHED_LOADED
#define PUSHED_LOADED ACQUIRE
#endif

#define SENT 0  /* The ring: how many RTS were sent. */
#define TAKEN 1 /* The FIN. */
#define CLAIMS 2
#define PUSHED 3
#define NAME 4
#define WORDS 5
#define STORES 14

#define TARGET 0
#define SLOT(sequence) (1 + (sequence))
#define MEMORY(m, unit) (1 + MESSAGES + (m) * UNITS + (unit))
#define PLACES (1 + MESSAGES + MESSAGES * UNITS)

#define PROCESSES 2
#define me (_pid - 1)
#include "release_acquire.pml"

/* The word `claims`: the sequence number, and how many units each end has claimed. */
#define COUNTS ((UNITS + 1) * (UNITS + 1))
#define OPENED(sequence) ((1 + (sequence)) * COUNTS)
#define SEQUENCE_OF(claims) ((claims) / COUNTS - 1)
#define FRONT(claims) ((claims) % COUNTS / (UNITS + 1))
#define BACK(claims) ((claims) % (UNITS + 1))
#define CLAIMABLE(claims, sequence)                                                                \
    ((claims) >= COUNTS && SEQUENCE_OF(claims) == sequence && FRONT(claims) + BACK(claims) < UNITS)

byte message[MESSAGES]; /* In the slots. */
byte target;
byte written[MESSAGES]; /* By message: its units, as bits. */

inline copy_unit(own, goes_to, unit) {
    write_place(MEMORY(goes_to, unit));
    assert(goes_to == own && (written[own] & (1 << (unit))) == 0);
    written[own] = written[own] | (1 << (unit))
}

proctype Sender() {
    byte sequence, m, claims;
    byte left = (1 << MESSAGES) - 1;
    do
    :: sequence == MESSAGES -> break
    :: sequence < MESSAGES ->
        atomic { /* Any that it has not sent. */
            if
            :: (left & 1) != 0 -> m = 0
            :: (left & 2) != 0 -> m = 1
            :: (left & 4) != 0 -> m = 2
            fi;
            left = left & ~(1 << m);
            write_place(SLOT(sequence));
            message[sequence] = m;
            store(SENT, RELEASE, sequence + 1)
        }
        do
        :: atomic {
               LATEST(TAKEN) > sequence ->
               choose(TAKEN, CHOICE(TAKEN) > sequence);
               take_in(TAKEN, ACQUIRE)
           }
           break
        :: atomic { /* CooperativeCopy::claim: a load, the name, the swap. */
               choose(CLAIMS, true);
               claims = CHOICE(CLAIMS);
               take_in(CLAIMS, CLAIMS_LOADED)
           }
           if
           :: CLAIMABLE(claims, sequence) ->
               atomic {
                   choose(NAME, true);
                   claims = (CHOICE(NAME) == 1 + m -> claims : 0);
                   take_in(NAME, NAME_LOADED)
               }
               if
               :: atomic {
                      claims != 0 && LATEST(CLAIMS) == claims ->
                      swap(CLAIMS, SENDER_SWAPS, LATEST(CLAIMS) + 1)
                  }
                  atomic {
                      read_place(TARGET);
                      copy_unit(m, target, (UNITS - 1 - BACK(claims)))
                  }
                  store(PUSHED, PUSHED_STORED, LATEST(PUSHED) + 1)
               :: claims == 0 || LATEST(CLAIMS) != claims
               fi
           :: else
           fi;
           claims = 0
        od;
        sequence++
    od
}

inline open(own) {
    store(NAME, NAME_STORED, 1 + own);
    atomic { write_place(TARGET); target = own; store(PUSHED, PUSHED_BEGUN, 0) }
    store(CLAIMS, CLAIMS_STORED, OPENED(sequence))
}

proctype Receiver() {
    byte sequence, m, wanted, moved;
    byte done;
    bool opened;
    do
    :: sequence == MESSAGES -> break
    :: sequence < MESSAGES ->
        atomic {
            wanted = 0;
            do
            :: (done & (1 << wanted)) != 0 -> wanted++
            :: else -> break
            od
        }
        if
        :: opened = true; open(wanted)
        :: true
        fi;
        atomic {
            LATEST(SENT) > sequence ->
            choose(SENT, CHOICE(SENT) > sequence);
            take_in(SENT, ACQUIRE);
            read_place(SLOT(sequence));
            m = message[sequence]
        }
        if
        :: opened && m == wanted
        :: opened && m != wanted ->
            atomic { assert(BACK(LATEST(CLAIMS)) == 0); swap(CLAIMS, CLOSE_SWAPS, 0) }
            open(m)
        :: !opened -> open(m)
        fi;
        opened = false;
        do
        :: atomic {
               CLAIMABLE(LATEST(CLAIMS), sequence) ->
               swap(CLAIMS, RECEIVER_SWAPS, LATEST(CLAIMS) + UNITS + 1);
               copy_unit(m, m, (FRONT(LATEST(CLAIMS)) - 1));
               moved++
           }
        :: atomic {
               LATEST(PUSHED) + moved == UNITS ->
               choose(PUSHED, CHOICE(PUSHED) + moved == UNITS);
               take_in(PUSHED, PUSHED_LOADED)
           }
           break
        od;
        atomic { swap(CLAIMS, CLOSE_SWAPS, 0); moved = 0 }
        atomic {
            assert(written[m] == (1 << UNITS) - 1);
            do
            :: moved < UNITS -> read_place(MEMORY(m, moved)); moved++
            :: else -> break
            od;
            moved = 0;
            done = done | (1 << m);
            sequence++;
            store(TAKEN, RELEASE, sequence)
        }
    od
}

init {
    atomic {
        run Sender();
        run Receiver()
    }
}
