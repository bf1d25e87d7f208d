/*
 * A message that both of its ends copy (shm/cooperative_copy.hpp, as transport/shm/link.cpp uses it):
 * MESSAGES messages of two or three units each, with the sequence numbers of a ring of DEPTH slots,
 * which the words know only modulo NUMBERS.
 *
 *   sender    sends them, of two that follow one another perhaps the second first; sends an RTS,
 *             which says where a message lies, or sends the message by the ring; pushes pieces of
 *             the first whose FIN it awaits, or is busy at any time; one push may fail, and then it
 *             helps no more
 *   receiver  posts them in order, some before they come; may open a sequence number for the first
 *             that it awaits before it knows what comes; pulls pieces, waits for those that are
 *             pushed, or copies alone; may abandon all at any time
 *
 * The assertions say that each unit is copied once, to the target of its own message, that nothing
 * is written after the receiver has taken its memory back, and that a message is there when it is
 * over. A rank that waits is at no executable step, and a look that finds nothing to do is none;
 * spin reports an invalid end state if somebody waits for ever.
 *
 * Steps: each of the sender's loads is one, and so is its compare-and-swap. The receiver's load and
 * swap are one together: between them there may be a claim, and then it tries again. Memory is
 * sequentially consistent. That is enough: each word is stored with release and loaded with
 * acquire, or is written before such a store, so only a load may overtake an earlier store, and see
 * too little. Nobody relies on having seen all: a swap meets the last value, all else is looked at
 * again.
 *
 * Each variant breaks something, and must fail: NO_NAME (the sender does not compare it), NO_CLOSE
 * (of what was opened ahead, when another message comes), NAME_BEFORE_CLOSE (the receiver says the
 * next name while the last message is open), TARGET_FIRST (the sender reads it before its swap),
 * CLAIMS_FIRST (the receiver allows them before it says for whom and where to), PUSHED_FIRST (the
 * sender counts a piece before it pushes it), SILENT (it does not tell of one that failed),
 * NO_WAIT (for pieces on their way, when all is abandoned), STALE_CLAIMS (what the sender had
 * claimed of an earlier message is awaited of one opened ahead), LEFT_OPEN (a message that is
 * over), and NUMBERS that are no more than the slots: the sender may be between load and swap
 * while the receiver goes through all that was sent.
 *
 * With NO_AHEAD nothing is opened ahead, and NO_NAME must hold: the sequence number tells enough.
 */
#ifndef MESSAGES
#define MESSAGES 4
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef NUMBERS
#define NUMBERS 3 /* Of sequence numbers. */
#endif

#define NOBODY MESSAGES
#define UNITS(m) (2 + (m) % 2)
#define NUMBER(sequence) (1 + (sequence) % NUMBERS)
#define BITS(first, count) (((1 << (count)) - 1) << (first))
#define ALL(m) BITS(0, UNITS(m))
#define HAS(set, m) (((set) >> (m)) & 1)

/* The ring, by sequence number. What comes by it takes one slot. */
byte message[MESSAGES];
bool elsewhere[MESSAGES];
bool helped[MESSAGES]; /* Its sender offers to push. */
byte sent;
byte received;
byte taken; /* The FIN: one more than the last sequence number whose message was read. */

/* The word `claims`: the open sequence number, 0 for none, and the units that each end claimed. */
byte number;
byte front;
byte back;
/* The words beside it. */
byte tag;
byte units;
byte target;
byte pushed;
bool failed;

byte written[MESSAGES]; /* By target: the units that are there, one bit each. */
bool pushing;           /* The sender has claimed a piece and not counted it. */
bool steady;            /* The receiver will abandon nothing, but wait for ever. */
bool abandoned;         /* The sender learns of that in some other way. */
bool taken_back;
byte finished;

/* By either end, of message m. */
inline write(place, bits) {
    assert(place == m && !taken_back && (written[place] & (bits)) == 0);
    written[place] = written[place] | (bits)
}

/* The length of a piece: one unit, or all that are left. */
inline choose(most) {
    if
    :: more = 1
    :: most > 1 -> more = most
    fi
}

proctype Sender() {
    byte first;  /* The first sequence number that it does not know to be over. */
    bool looked; /* It has looked whether that is over, and has sent nothing since. */
    byte done;   /* Messages sent, one bit each. */
    byte seen_front, seen_back, more, to, m;
    bool helps = true, may_fail = true, bad;
    do
    :: atomic {
           sent < MESSAGES && sent - received < DEPTH ->
           m = 0;
           do
           :: HAS(done, m) -> m++
           :: else -> break
           od;
           if
           :: true
           :: m + 1 < MESSAGES && !HAS(done, m + 1) -> m++
           fi;
           if
           :: elsewhere[sent] = true; helped[sent] = helps
           :: true
           fi;
           done = done | (1 << m);
           message[sent] = m;
           sent++;
           looked = false
       }
    :: atomic { first < sent && (!elsewhere[first] || taken > first) -> first++; looked = false }
    :: atomic { first < sent && elsewhere[first] && taken <= first && !looked -> looked = true }
       /* Outbox::copy_piece */
    :: atomic {
           helps && looked && number == NUMBER(first) && front + back < UNITS(message[first]) ->
           m = message[first];
           seen_front = front;
           seen_back = back
       }
again:
#ifdef TARGET_FIRST
       to = target;
#endif
#ifndef NO_NAME
       if
       :: tag == m
       :: else -> goto nothing
       fi;
       if
       :: units == UNITS(m)
       :: else -> goto nothing
       fi;
#endif
       atomic {
           if
           :: number == NUMBER(first) && front == seen_front && back == seen_back ->
               choose(UNITS(m) - seen_front - seen_back);
               back = back + more;
               pushing = true
           :: else ->
               if
               :: number == NUMBER(first) && front + back < UNITS(m) ->
                   seen_front = front;
                   seen_back = back;
                   goto again
               :: else -> goto nothing
               fi
           fi
       }
#ifndef TARGET_FIRST
       to = target;
#endif
#ifdef PUSHED_FIRST
       pushed = pushed + more;
#endif
       if
       :: atomic { write(to, BITS(UNITS(m) - seen_back - more, more)) }
       :: atomic { may_fail -> may_fail = false; helps = false; bad = true }
       fi;
#ifdef SILENT
       if
       :: bad -> goto nothing
       :: else
       fi;
#endif
       atomic {
#ifndef PUSHED_FIRST
           pushed = pushed + more;
#endif
           failed = failed || bad;
           bad = false;
           pushing = false
       }
nothing:
       atomic { seen_front = 0; seen_back = 0; more = 0; to = 0; m = 0 }
    :: first == MESSAGES || abandoned -> break
    od;
    finished++
}

/* CooperativeCopy::close: what the sender had claimed. */
inline close() {
    atomic {
        if
        :: number == NUMBER(received) ->
            got = back;
            number = 0;
            front = 0;
            back = 0
        :: else -> got = 0
        fi
    }
}

/* CooperativeCopy::open, in three parts. */
inline say_name() {
    tag = m;
    units = UNITS(m)
}
inline say_target() {
    target = m;
    atomic { assert(!pushing); pushed = 0; failed = false }
}
inline allow_claims() {
    atomic { number = NUMBER(received); front = 0; back = 0 }
}
inline open() {
#ifdef CLAIMS_FIRST
    allow_claims();
#endif
    say_name();
    say_target();
#ifndef CLAIMS_FIRST
    allow_claims()
#endif
}

inline close_ahead() {
    if
    :: opened != NOBODY ->
#ifndef NO_CLOSE
        close();
        assert(got == 0);
#endif
        opened = NOBODY
    :: else
    fi
}

/* Frees the slot and stores the FIN. */
inline take() {
    atomic { done = done | (1 << m); received++ }
    if
    :: elsewhere[received - 1] -> taken = received
    :: else
    fi
}

#define AWAITS (((1 << posted) - 1) & ~done)

proctype Receiver() {
    byte posted; /* How many. */
    byte done;   /* Messages that have come, one bit each. */
    byte opened = NOBODY;
    byte claimed; /* By the sender, of a message that was closed before its end. */
    byte got, moved, more, m;
    bool offered = true, cooperative;
    do
    :: posted < MESSAGES -> posted++
#ifndef NO_AHEAD
       /* Inbox::open_ahead */
    :: atomic {
           opened == NOBODY && offered && AWAITS != 0 ->
           m = 0;
           do
           :: HAS(done, m) -> m++
           :: else -> break
           od;
           opened = m;
#ifndef STALE_CLAIMS
           claimed = 0
#endif
       }
       open()
#endif
       /* Inbox::begin_message. One that is not posted yet goes to memory of the receiver's own,
          which is its target here. */
    :: atomic {
           sent > received && AWAITS != 0 ->
           m = message[received];
           if
           :: elsewhere[received] -> offered = helped[received]
           :: else
           fi;
           if
           :: elsewhere[received] && offered && m < posted -> cooperative = true
           :: opened != m -> cooperative = false
           :: !elsewhere[received] || !offered -> cooperative = false
           fi
       }
       if
       :: cooperative ->
           claimed = 0;
           if
           :: opened != m ->
#ifdef NAME_BEFORE_CLOSE
               say_name();
#endif
               close_ahead();
               open()
           :: else -> opened = NOBODY
           fi;
           do /* Inbox::read_cooperatively */
           :: atomic {
                  number == NUMBER(received) && front + back < UNITS(m) ->
                  choose(UNITS(m) - front - back);
                  front = front + more
              }
              atomic { write(m, BITS(moved, more)); moved = moved + more; more = 0 }
           :: failed -> /* Inbox::copy_alone */
              close();
              claimed = claimed + got;
              if
              :: pushed >= claimed
              :: !steady -> goto stop
              fi;
              /* Also what the sender has pushed: it is done with it. */
              atomic { assert(!pushing); written[m] = written[m] | BITS(moved, UNITS(m) - moved) }
              break
           :: !failed && moved + pushed == UNITS(m) ->
#ifndef LEFT_OPEN
              close();
#endif
              break
           :: !steady -> goto stop
           od;
           moved = 0;
           cooperative = false
       :: else ->
           close_ahead();
           atomic { write(m, ALL(m)) }
       fi;
       assert(written[m] == ALL(m));
       take()
    :: done == (1 << MESSAGES) - 1 -> break
    :: !steady -> goto stop
    od;
    goto over;
stop: /* CooperativeReceiver::close_and_wait */
    abandoned = true;
    close();
#ifndef NO_WAIT
    claimed = claimed + got;
    pushed >= claimed;
#endif
    taken_back = true;
over:
    finished++
}

init {
    atomic {
        if
        :: steady = true
        :: true
        fi;
        run Sender();
        run Receiver()
    }
}

ltl all_finish { <> (finished == 2) }
