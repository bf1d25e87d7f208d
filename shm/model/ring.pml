/*
 * A ring (shm/ring.hpp), and messages that stay where they are (shm/marks.hpp, as
 * transport/shm/link.cpp uses them): MESSAGES messages through DEPTH slots, announced with one of
 * MARKS marks.
 *
 *   sender    sends them in order, each by the ring or, while there is a mark, announced; changes
 *             the buffer of one that was announced as soon as it takes it for read, in any order
 *   receiver  awaits them in any order; what comes before the one it awaits it copies aside, if it
 *             came by the ring, or remembers, if it was announced; gives slots back BATCH at a time
 *
 * The assertions say that a slot holds what was sent in its turn when it is read, and a buffer when
 * it is. spin reports an invalid end state if somebody waits for ever.
 *
 * Steps: each load and each store of a shared word is one. Memory is sequentially consistent. That
 * is enough: each word has one writer, who stores it with release, and is loaded with acquire; what
 * is plain is written before such a store and read after such a load. So only loads could overtake
 * earlier stores, and the sender, which loads the receipt and then the bit of a mark, stores
 * nothing in between; nor does the receiver rely on a load after its own stores.
 *
 * Each variant breaks something, and must fail: TURN_FIRST (the sender says the turn before the
 * slot is written), ROOM_TOO_MUCH (by one slot), RELEASE_FIRST (the receiver gives a slot back that
 * it has yet to read), TAKEN_FIRST (the receipt passes a message before its mark is set),
 * BIT_FIRST (the sender looks at the mark before the receipt), CLEAR_FIRST (the receiver clears the
 * mark of a message that it has yet to read), MARK_EARLY (the sender gives a mark away that the
 * receipt has passed, set or not), and a BATCH of more than the slots.
 */
#ifndef MESSAGES
#define MESSAGES 4
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef MARKS
#define MARKS 2
#endif
#ifndef BATCH
#define BATCH 1
#endif
#ifdef ROOM_TOO_MUCH
#define ROOM (DEPTH + 1)
#else
#define ROOM DEPTH
#endif

#define NONE 255
#define DATA(m) ((m) + 1)
#define CHANGED 0

/* The ring. */
byte turn[DEPTH];
byte content[DEPTH];   /* By the ring: the data. */
bool elsewhere[DEPTH]; /* Announced, with ... */
byte mark[DEPTH];      /* ... this mark. */
byte released;

/* The receipt, in the sender's memory: the turn after the latest announced one that was read or
   remembered, and those remembered. */
byte taken;
bool remembered[MARKS];

byte buffer[MESSAGES];

/* The sender's own. */
byte message_of[MARKS]; /* Unread, or NONE. */
byte unread[MESSAGES];  /* Its mark, or NONE. */

inline write_slot(m, how, its_mark) {
#ifdef TURN_FIRST
    turn[m % DEPTH] = m + 1;
#endif
    elsewhere[m % DEPTH] = how;
    mark[m % DEPTH] = its_mark;
    content[m % DEPTH] = DATA(m);
    turn[m % DEPTH] = m + 1
}

#define MARK_OF(m) message_of[unread[m]]

/* Steps of the sender's loop: it takes a message for read. A look in vain is none. */
#ifdef BIT_FIRST
#define TAKE(m)                                                                                    \
    ::unread[m] != NONE && !remembered[unread[m]]->if ::taken > m->end_of(m) ::else fi
#else
#define TAKE(m) ::unread[m] != NONE && taken > m && !remembered[unread[m]]->end_of(m)
#endif

/* In MARK_EARLY it gives the mark away as soon as the receipt has passed. */
#ifdef MARK_EARLY
#define GIVE(m) ::unread[m] != NONE && taken > m && MARK_OF(m) == m->MARK_OF(m) = NONE
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
    buffer[m] = CHANGED
}

proctype Sender() {
    byte sent = 0;
    byte credit = 0;
    byte k = 0;
    byte outstanding = 0;
    do
    :: sent < MESSAGES && sent - credit < ROOM ->
        write_slot(sent, false, NONE);
        sent++
    :: sent < MESSAGES && sent - credit < ROOM ->
        do /* The lowest mark that is free. */
        :: k < MARKS && message_of[k] != NONE -> k++
        :: else -> break
        od;
        if
        :: k < MARKS ->
            message_of[k] = sent;
            unread[sent] = k;
            outstanding++;
            write_slot(sent, true, k);
            sent++
        :: else
        fi;
        k = 0
    :: sent < MESSAGES && sent - credit >= ROOM && released > credit -> credit = released
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
    :: sent == MESSAGES && outstanding == 0 -> break
    od
}

inline read_buffer(m) {
    assert(buffer[m] == DATA(m))
}

/* The next fragment: message `received` of the sender's. */
inline read_slot() {
    assert(turn[received % DEPTH] == received + 1);
#ifdef RELEASE_FIRST
    released = received + 1;
#endif
    here = !elsewhere[received % DEPTH];
    if
    :: here ->
        assert(content[received % DEPTH] == DATA(received));
        early[received] = true
    :: !here && received == wanted ->
        read_buffer(received);
        taken = received + 1;
        got[received] = true
    :: !here && received != wanted ->
        its_mark = mark[received % DEPTH];
#ifdef TAKEN_FIRST
        taken = received + 1;
        remembered[its_mark] = true;
#else
        remembered[its_mark] = true;
        taken = received + 1;
#endif
        kept[received] = its_mark;
        its_mark = NONE
    fi;
    here = false;
    received++;
    if
    :: received - released >= BATCH -> released = received
    :: else
    fi
}

proctype Receiver() {
    byte received = 0;
    byte wanted = 0;
    byte count = 0;
    byte its_mark = NONE;
    bool here = false;
    bool got[MESSAGES];
    bool early[MESSAGES];
    byte kept[MESSAGES];
    atomic {
        do
        :: count < MESSAGES -> kept[count] = NONE; count++
        :: else -> break
        od;
        count = 0
    }
    do
    :: count == MESSAGES -> break
    :: count < MESSAGES ->
        atomic { /* Any that it does not have. */
            if
            :: !got[0] -> wanted = 0
            :: !got[1] -> wanted = 1
            :: !got[2] -> wanted = 2
            :: !got[3] -> wanted = 3
#if MESSAGES > 4
            :: !got[4] -> wanted = 4
#endif
            fi
        }
        do
        :: got[wanted] -> break
        :: !got[wanted] && early[wanted] -> got[wanted] = true
        :: !got[wanted] && kept[wanted] != NONE ->
#ifdef CLEAR_FIRST
            remembered[kept[wanted]] = false;
            read_buffer(wanted);
#else
            read_buffer(wanted);
            remembered[kept[wanted]] = false;
#endif
            got[wanted] = true
        :: !got[wanted] && !early[wanted] && kept[wanted] == NONE &&
           turn[received % DEPTH] == received + 1 -> read_slot()
        od;
        count++
    od
}

init {
    byte i = 0;
    atomic {
        do
        :: i < MESSAGES -> unread[i] = NONE; buffer[i] = DATA(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < MARKS -> message_of[i] = NONE; i++
        :: else -> break
        od;
        run Sender();
        run Receiver()
    }
}
