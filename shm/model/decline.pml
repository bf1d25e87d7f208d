/*
 * Messages that stay where they are, of which the receiver may read none any more from some moment
 * on (shm/ring.hpp, as transport/shm/link.cpp and link_elsewhere.cpp use it): MESSAGES messages
 * with one of MARKS marks. That slots are free when they are written is ring.pml's subject: here
 * each entry of the ring has a slot of its own.
 *
 *   sender    sends them in order, each by the ring or, while there is a mark and it has not seen
 *             that they are declined, announced; changes the buffer of one that it takes for read;
 *             sends those that are declined and that it has not taken so, in any order
 *   receiver  awaits them in any order; what comes before the one it awaits it copies aside or
 *             remembers; may be refused whenever it is about to read, and declines from then on
 *
 * The assertions say that a buffer holds what was sent when it is read, by either end, that each
 * message comes once, and that a mark is set for the message that has it. spin reports an invalid
 * end state if somebody waits for ever.
 *
 * Steps and memory: as in ring.pml. The sender loads the receipt, the bit of a mark, or whether
 * they are declined, in one step each.
 *
 * Each variant breaks something, and must fail: NO_BIT (the receiver frees the slot of an announced
 * message that it declines, and sets no bit), KEPT_STAY (it does not decline what it remembers),
 * CLEAR_EARLY (it clears the bit of one that it awaits, and that has not come), LOOK_FIRST (the
 * sender asks whether a message was read before it sees that they are declined, and not after),
 * FREE_EARLY (it gives the mark away when it sends the message). With NO_CLEAR (the receiver clears
 * no bit of what it declined) marks are lost, and nothing else: it must hold.
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

/* The ring, by entry, and the receipt in the sender's memory. */
byte written; /* How many entries are there. */
byte message[ENTRIES];
byte mark[ENTRIES]; /* NONE: it came by the ring. */
byte taken;         /* The entry after the latest announced one that was taken. */
bool remembered[MARKS];
bool declined;

bool changed[MESSAGES]; /* The sender's buffer. */
byte holder[MARKS];     /* The sender's own, which the assertions look at. */

inline append(m, its_mark) {
    atomic {
        message[written] = m;
        mark[written] = its_mark;
        written++
    }
}

/* The sender's steps about message m, which is announced. */
inline look(m) {
    passed = taken > entry[m];
    if
    :: passed -> clear = !remembered[its[m]]
    :: else -> clear = false
    fi
}

inline take_back(m) {
#ifdef LOOK_FIRST
    look(m);
    if
    :: clear -> end_of(m)
    :: else ->
        if
        :: declined -> send_now(m)
        :: else
        fi
    fi;
#else
    look(m);
    if
    :: clear -> end_of(m)
    :: else ->
        if
        :: declined ->
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
        vain = (its[m] != NONE && vain > 0 -> vain - 1 : vain)
    }
}

inline end_of(m) {
    atomic {
        changed[m] = true;
        holder[its[m]] = NONE;
        its[m] = NONE;
        outstanding--
    }
}

inline send_now(m) {
    atomic {
        seen = true;
        assert(!changed[m]);
        append(m, NONE);
#ifdef FREE_EARLY
        holder[its[m]] = NONE;
        its[m] = NONE;
#else
        lost[m] = its[m];
        its[m] = NONE;
#endif
        changed[m] = true;
        outstanding--
    }
}

/* The mark of one that was sent is free when the receiver has said so. */
inline free_mark(m) {
    passed = taken > entry[m];
    if
    :: passed && !remembered[lost[m]] -> atomic { holder[lost[m]] = NONE; lost[m] = NONE }
    :: else
    fi;
    passed = false
}

/* Of looks that find nothing there are few, or who waits for ever would look for ever. */
#define CAN_LOOK(m)                                                                                \
    (its[m] != NONE && (taken > entry[m] && !remembered[its[m]] || declined || vain > 0))
#define CAN_FREE(m) (lost[m] != NONE && taken > entry[m] && !remembered[lost[m]])

proctype Sender() {
    byte sent, k, outstanding;
    byte its[MESSAGES], lost[MESSAGES], entry[MESSAGES];
    byte vain = LOOKS;
    bool passed, clear, seen;
    atomic {
        do
        :: k < MESSAGES -> its[k] = NONE; lost[k] = NONE; k++
        :: else -> break
        od;
        k = 0
    }
    do
    :: sent < MESSAGES -> atomic { append(sent, NONE); changed[sent] = true; sent++ }
    :: sent < MESSAGES && !seen ->
        if
        :: declined -> seen = true
        :: else ->
            atomic {
                do
                :: k < MARKS && holder[k] != NONE -> k++
                :: else -> break
                od;
                if
                :: k < MARKS ->
                    assert(!remembered[k]);
                    holder[k] = sent;
                    its[sent] = k;
                    entry[sent] = written;
                    outstanding++;
                    append(sent, k);
                    sent++
                :: else
                fi;
                k = 0
            }
        fi
    :: CAN_LOOK(0) -> take_back(0)
    :: CAN_LOOK(1) -> take_back(1)
    :: CAN_LOOK(2) -> take_back(2)
    :: CAN_FREE(0) -> free_mark(0)
    :: CAN_FREE(1) -> free_mark(1)
    :: CAN_FREE(2) -> free_mark(2)
#if MESSAGES > 3
    :: CAN_LOOK(3) -> take_back(3)
    :: CAN_FREE(3) -> free_mark(3)
#endif
    :: sent == MESSAGES && outstanding == 0 -> break
    od
}

inline set_bit(m, its_mark) {
    atomic { assert(holder[its_mark] == m); remembered[its_mark] = true }
}

/* Inbox::decline_announced, after the message that could not be read. */
inline decline_all() {
#ifndef KEPT_STAY
    atomic {
        i = 0;
        do
        :: i < MESSAGES ->
            if
            :: kept[i] != NONE -> skipped[i] = kept[i]; kept[i] = NONE
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0
    }
#endif
    declines = true;
    declined = true
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
    m = message[received];
    if
    :: mark[received] == NONE ->
#ifndef NO_CLEAR
        if
        :: skipped[m] != NONE ->
            if
            :: taken <= at[m] -> taken = at[m] + 1
            :: else
            fi;
            atomic { remembered[skipped[m]] = false; skipped[m] = NONE }
        :: else
        fi;
#endif
        come(m);
        received++
    :: mark[received] != NONE && declines -> pass_over()
    :: mark[received] != NONE && !declines && wanted == m ->
        if
        :: assert(!changed[m]);
           come(m);
           atomic { taken = received + 1; received++ }
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
    :: atomic { assert(!changed[wanted]); come(wanted) }
       if
       :: taken <= at[wanted] -> taken = at[wanted] + 1
       :: else
       fi;
       atomic { remembered[kept[wanted]] = false; kept[wanted] = NONE }
    :: !declines -> decline_all()
    fi
}

proctype Receiver() {
    byte received, wanted, count, m, i;
    bool got[MESSAGES], early[MESSAGES];
    byte kept[MESSAGES], skipped[MESSAGES], at[MESSAGES];
    bool declines;
    atomic {
        do
        :: i < MESSAGES -> kept[i] = NONE; skipped[i] = NONE; i++
        :: else -> break
        od;
        i = 0
    }
    do
    :: count == MESSAGES -> break
    :: count < MESSAGES ->
        atomic {
            if
            :: !got[0] -> wanted = 0
            :: !got[1] -> wanted = 1
            :: !got[2] -> wanted = 2
#if MESSAGES > 3
            :: !got[3] -> wanted = 3
#endif
            fi
        }
#ifdef CLEAR_EARLY
        if
        :: skipped[wanted] != NONE ->
            atomic { taken = (taken > at[wanted] -> taken : at[wanted] + 1) }
            atomic { remembered[skipped[wanted]] = false; skipped[wanted] = NONE }
        :: else
        fi;
#endif
        do
        :: early[wanted] -> atomic { early[wanted] = false; got[wanted] = true; break }
        :: !early[wanted] && kept[wanted] != NONE -> read_kept()
        :: !early[wanted] && kept[wanted] == NONE && received < written -> read_entry()
        od;
        count++
    od
}

init {
    byte i = 0;
    atomic {
        do
        :: i < MARKS -> holder[i] = NONE; i++
        :: else -> break
        od;
        run Sender();
        run Receiver()
    }
}
