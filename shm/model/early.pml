/*
 * Messages that come before they are awaited (transport/shm/link.cpp, link_elsewhere.cpp): two
 * ranks with COLLECTIVES collectives, in each of which each sends the other a message (ONE_WAY: the
 * first rank alone does). It goes through a ring of DEPTH slots, in one piece or in PIECES, or, of
 * so many, leaves as an RTS, and is read piece by piece.
 *
 *   program  posts sends and receives in any order, of collectives less than WINDOW after the first
 *            that has not ended (Engine::may_begin)
 *   outbox   a queue: what is posted leaves in that order, each piece when there is room; a message
 *            whose RTS was sent ends with its FIN
 *   inbox    while something is awaited looks at the ring's head: what is awaited goes to its post,
 *            other messages to the early arrivals, or are remembered if an RTS came; a post
 *            looks at these first
 *
 * With DECLINES a rank may be refused to read the other's memory, at any time and from then on:
 * what it has not read its sender sends by the ring.
 *
 * The assertions say that each message goes to one post, that of its collective, whole, each piece
 * once and in its place; that no message ends while it may yet be read where its sender has it; and
 * that no more than BOUND are early arrivals at a time. Those are of collectives less than WINDOW
 * before or after one that is awaited, which the sender has not ended, though it may have ended all
 * before it; and the receiver none of them. Nobody waits for ever: what both ends have posted ends
 * at both, though neither posts anything more; so whatever a rank does first waits for nothing but
 * what it awaits. That all collectives end is said by spin, which reports an invalid end state
 * else.
 *
 * Memory is sequentially consistent here: by which orders slots, buffers, FINs and marks pass
 * from one side to the other is ring.pml's subject, and decline.pml's. Here a ring is a channel,
 * and a FIN a bit of each message.
 *
 * Each variant breaks something, and must fail: NO_MOVING (what is not awaited stays in the ring
 * though others are awaited), MOVE_ALWAYS (it is moved though nothing is), NO_LOOK (a post looks at
 * the ring alone), NOT_HALVES (it takes no early arrival that is half received), HALF_AS_WHOLE (it
 * takes that for whole), HALF_ANEW (it puts the rest where the message begins), HALF_STAYS (the
 * rest goes on to the early arrival), IN_ORDER (what comes is taken for the first that is awaited,
 * whatever its name), FIN_EARLY (the FIN is given when a message is remembered), RING_FIRST (what
 * is remembered is read only when nothing else is awaited), SEND_INSIDE (who has something to send
 * receives nothing), NO_WINDOW, WINDOW_COUNTS (it bounds how many collectives are in progress, not
 * how far from each other), a BOUND of less; and with DECLINES: NOT_BACK (what is awaited and
 * remembered is not awaited anew when it is declined), EARLY_STAYS (what is only remembered stays
 * an early arrival), NOT_ANEW (what comes by the ring goes on where its reading ended),
 * DECLINED_FIRST (it is sent before what is queued, of which a part may have left).
 */
#ifndef COLLECTIVES
#define COLLECTIVES 3
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
#ifndef PIECES
#define PIECES 2
#endif
#ifndef BOUND
#define BOUND (2 * WINDOW - 2)
#endif

#define NONE 255
#define PEER (1 - me)
#define AT(rank, m) ((rank) * COLLECTIVES + (m))

/* What is in a slot for a rank: of which message, which piece, or that it is an RTS. */
chan ring[2] = [DEPTH] of { byte, byte, bool };
/* By rank: messages to be sent, and awaited ones whose RTS has come, as they were posted. */
chan queue[2] = [COLLECTIVES] of { byte };
chan later[2] = [COLLECTIVES] of { byte };

/* How messages stand, by who sends or receives them. */
#define UNPOSTED 0
#define DONE 1
#define QUEUED 2
#define RTS_SENT 3
byte sending[2 * COLLECTIVES];
#define AWAITED 2
#define ARRIVING 3
#define LATER 4
byte receiving[2 * COLLECTIVES];

/* By who sends them. */
byte length[2 * COLLECTIVES]; /* In pieces; 0: nothing has left yet. */
bool fin[2 * COLLECTIVES];

/* Of a rank's inbox. */
byte awaited[2];        /* How many messages are. */
byte current[2] = NONE; /* The message whose pieces come next. */
bool declines[2];

/* Early arrivals. */
#define NOTHING 0
#define HALF 1
#define WHOLE 2
#define REMEMBERED 3

/* What the program may begin. */
#ifdef NO_WINDOW
#define MAY_BEGIN(m) true
#elif defined(WINDOW_COUNTS)
#define MAY_BEGIN(m) (m < begun || in_progress + m - begun < WINDOW)
#else
#define MAY_BEGIN(m) (m < oldest + WINDOW)
#endif

inline begin(m) { /* With all before it. */
#ifdef WINDOW_COUNTS
    if
    :: m >= begun -> in_progress = in_progress + m + 1 - begun; begun = m + 1
    :: else
    fi
#else
    skip
#endif
}

#define HAS_ENDED(m) (sending[AT(me, m)] == DONE && receiving[AT(me, m)] == DONE)

inline end_here(m) {
#ifdef WINDOW_COUNTS
    in_progress = in_progress - HAS_ENDED(m);
#endif
    do
    :: oldest < COLLECTIVES && HAS_ENDED(oldest) -> oldest++
    :: else -> break
    od
}

inline end_send(m) {
    sending[AT(me, m)] = DONE;
    end_here(m)
}

inline end_receive(m, pieces) {
    assert(receiving[AT(me, m)] != UNPOSTED && receiving[AT(me, m)] != DONE);
    assert(pieces == length[AT(PEER, m)]);
    receiving[AT(me, m)] = DONE;
    end_here(m)
}

#ifdef NO_LOOK
#define IS_EARLY(m) false
#elif defined(NOT_HALVES)
#define IS_EARLY(m) (early[m] == WHOLE || early[m] == REMEMBERED)
#else
#define IS_EARLY(m) (early[m] != NOTHING)
#endif

/* Inbox::take_early */
inline take_early(m) {
    if
    :: early[m] == WHOLE -> receiving[AT(me, m)] = ARRIVING; end_receive(m, length[AT(PEER, m)])
    :: early[m] == REMEMBERED -> receiving[AT(me, m)] = LATER; later[me] ! m
    :: early[m] == HALF ->
        assert(current[me] == m && is_early);
        receiving[AT(me, m)] = ARRIVING;
#ifdef HALF_AS_WHOLE
        end_receive(m, moved);
#endif
#ifdef HALF_ANEW
        moved = 0;
#endif
#ifdef HALF_STAYS
        skip
#else
        is_early = false
#endif
    fi;
    early[m] = NOTHING;
    early_count--
}

#define PROGRAM(m)                                                                                 \
    ::atomic {                                                                                     \
        receiving[AT(me, m)] == UNPOSTED && MAY_BEGIN(m)->begin(m);                                \
        if                                                                                         \
            ::IS_EARLY(m)->take_early(m) ::else->receiving[AT(me, m)] = AWAITED;                   \
        awaited[me]++ fi                                                                           \
    }                                                                                              \
    ::atomic {                                                                                     \
        sending[AT(me, m)] == UNPOSTED && MAY_BEGIN(m)->begin(m);                                  \
        sending[AT(me, m)] = QUEUED;                                                               \
        queue[me] ! m                                                                              \
    }

/* Outbox::push: of the queue's first message the next piece or the RTS leaves. */
inline push() {
    queue[me] ? <m>;
    if
    :: length[AT(me, m)] != 0
    :: length[AT(me, m)] == 0 -> length[AT(me, m)] = PIECES
    :: length[AT(me, m)] == 0 && PIECES > 1 -> length[AT(me, m)] = 1
    fi;
    if
    :: sent[m] == 0 && length[AT(me, m)] == PIECES && !declines[PEER] ->
        ring[PEER] ! m, 0, true;
        queue[me] ? m;
        sending[AT(me, m)] = RTS_SENT
    :: ring[PEER] ! m, sent[m], false;
        sent[m]++;
        if
        :: sent[m] == length[AT(me, m)] -> queue[me] ? m; sent[m] = 0; end_send(m)
        :: else
        fi
    fi;
    m = 0
}

/* Outbox::take_back: a message whose FIN was awaited was read, or is sent after all. */
#define IS_BACK(rank, m)                                                                           \
    (sending[AT(rank, m)] == RTS_SENT && (fin[AT(rank, m)] || declines[1 - (rank)]))
#define TAKE_BACK(m)                                                                               \
    ::atomic {                                                                                     \
        IS_BACK(me, m)->if ::fin[AT(me, m)]->end_send(m) ::else->sending[AT(me, m)] = QUEUED;      \
        send_after_all(m) fi                                                                       \
    }

inline send_after_all(m) {
    queue[me] ! m;
#ifdef DECLINED_FIRST
    n = len(queue[me]);
    do
    :: n > 1 -> queue[me] ? piece; queue[me] ! piece; n--
    :: else -> break
    od;
    n = 0;
    piece = 0
#endif
}

inline await_again(m, pieces) {
    receiving[AT(me, m)] = AWAITED;
    awaited[me]++;
#ifdef NOT_ANEW
    start[m] = pieces
#endif
}

/* Inbox::decline_rts: all that is remembered comes by the ring. */
inline decline() {
    do
    :: n < COLLECTIVES ->
#ifndef NOT_BACK
        if
        :: receiving[AT(me, n)] == LATER -> later[me] ?? eval(n); await_again(n, 0)
        :: else
        fi;
#endif
#ifndef EARLY_STAYS
        if
        :: early[n] == REMEMBERED -> early[n] = NOTHING; early_count--
        :: else
        fi;
#endif
        n++
    :: else -> break
    od;
    n = 0;
    later_read = 0;
    declines[me] = true
}

inline read_piece(m, pieces) {
    assert(sending[AT(PEER, m)] != DONE);
    pieces++
}

inline read_remembered() {
    later[me] ? <m>;
    if
    :: read_piece(m, later_read);
        if
        :: later_read == length[AT(PEER, m)] ->
            later[me] ? m;
            fin[AT(PEER, m)] = true;
            end_receive(m, later_read);
            later_read = 0
        :: else
        fi
#ifdef DECLINES
    :: decline()
#endif
    fi;
    m = 0
}

#ifdef IN_ORDER
#define IS_AWAITED (awaited[me] > 0)
#else
#define IS_AWAITED (receiving[AT(me, m)] == AWAITED)
#endif

inline begin_awaited() {
#ifdef IN_ORDER
    do
    :: receiving[AT(me, n)] != AWAITED -> n++
    :: else -> break
    od;
    current[me] = n;
    n = 0;
#else
    current[me] = m;
#endif
    receiving[AT(me, current[me])] = ARRIVING;
    awaited[me]--;
#ifdef NOT_ANEW
    moved = start[current[me]]
#endif
}

inline begin_unawaited() {
    assert(receiving[AT(me, m)] == UNPOSTED && early[m] == NOTHING);
    early_count++;
    assert(early_count <= BOUND);
    if
    :: rts ->
        early[m] = REMEMBERED;
#ifdef FIN_EARLY
        fin[AT(PEER, m)] = true;
#endif
        ring[me] ? _, _, _
    :: else -> early[m] = HALF; current[me] = m; is_early = true
    fi
}

/* Inbox::begin_message */
inline begin_message() {
    if
    :: rts && declines[me] -> ring[me] ? _, _, _
#ifdef DECLINES
    :: rts && !declines[me] -> ring[me] ? _, _, _; decline() /* By another group. */
#endif
    :: !(rts && declines[me]) && IS_AWAITED -> begin_awaited()
    :: !(rts && declines[me]) && !IS_AWAITED -> begin_unawaited()
    fi
}

inline decline_current() {
    ring[me] ? _, _, _;
    await_again(current[me], moved);
    current[me] = NONE;
    moved = 0;
    decline()
}

/* Inbox::move_incoming, and Incoming::end. */
inline move() {
    assert(m == current[me]);
    if
    :: rts && !declines[me] ->
        read_piece(m, moved);
        if
        :: moved == length[AT(PEER, m)] -> fin[AT(PEER, m)] = true; ring[me] ? _, _, _
        :: else
        fi
#ifdef DECLINES
    :: rts -> decline_current()
#endif
    :: !rts -> assert(piece == moved); moved++; ring[me] ? _, _, _
    fi;
    if
    :: current[me] != NONE && moved == length[AT(PEER, m)] ->
        if
        :: is_early -> early[m] = WHOLE; is_early = false
        :: else -> end_receive(m, moved)
        fi;
        current[me] = NONE;
        moved = 0
    :: else
    fi
}

inline drain() {
    ring[me] ? <m, piece, rts>;
    if
    :: current[me] == NONE -> begin_message()
    :: else
    fi;
    if
    :: current[me] != NONE -> move()
    :: else
    fi;
    m = 0;
    piece = 0;
    rts = false
}

#if COLLECTIVES == 2
#define SOME(what, rank) (what(rank, 0) || what(rank, 1))
#elif COLLECTIVES == 3
#define SOME(what, rank) (what(rank, 0) || what(rank, 1) || what(rank, 2))
#elif COLLECTIVES == 4
#define SOME(what, rank) (what(rank, 0) || what(rank, 1) || what(rank, 2) || what(rank, 3))
#else
#define SOME(what, rank)                                                                           \
    (what(rank, 0) || what(rank, 1) || what(rank, 2) || what(rank, 3) || what(rank, 4))
#endif

#define IS_MET(rank, m) (receiving[AT(rank, m)] == AWAITED && ring[rank] ? [m, _, _])
#ifdef MOVE_ALWAYS
#define IS_BUSY(rank) true
#elif defined(NO_MOVING)
#define IS_BUSY(rank) (current[rank] != NONE || SOME(IS_MET, rank))
#else
#define IS_BUSY(rank) (current[rank] != NONE || awaited[rank] > 0)
#endif
#ifdef SEND_INSIDE
#define RECEIVES(rank) (len(queue[rank]) == 0)
#else
#define RECEIVES(rank) true
#endif
#ifdef RING_FIRST
#define READS(rank) (RECEIVES(rank) && !IS_BUSY(rank))
#else
#define READS(rank) RECEIVES(rank)
#endif
#define CAN_PUSH(rank) (len(queue[rank]) > 0 && len(ring[1 - (rank)]) < DEPTH)
#define CAN_DRAIN(rank) (RECEIVES(rank) && len(ring[rank]) > 0 && IS_BUSY(rank))
#define CAN_READ(rank) (READS(rank) && !declines[rank] && len(later[rank]) > 0)
#define CAN_MOVE(rank)                                                                             \
    (CAN_PUSH(rank) || CAN_DRAIN(rank) || CAN_READ(rank) || SOME(IS_BACK, rank))

/* Both ends have posted it, and it has not ended. */
#define IS_UNDER_WAY(rank, m)                                                                      \
    (sending[AT(rank, m)] != UNPOSTED && receiving[AT(1 - (rank), m)] != UNPOSTED &&               \
     (sending[AT(rank, m)] != DONE || receiving[AT(1 - (rank), m)] != DONE))
#define IS_STUCK                                                                                   \
    (!CAN_MOVE(0) && !CAN_MOVE(1) && (SOME(IS_UNDER_WAY, 0) || SOME(IS_UNDER_WAY, 1)))

proctype Rank(byte me) {
    byte oldest; /* The first collective that has not ended. */
#ifdef WINDOW_COUNTS
    byte begun;  /* The first that has not begun. */
    byte in_progress;
#endif
    byte sent[COLLECTIVES];  /* Pieces of each message. */
    bool is_early;           /* The current message. */
    byte moved;              /* Pieces of it, */
    byte later_read;         /* and of the first that is read later. */
    byte early[COLLECTIVES];
    byte early_count;
#ifdef NOT_ANEW
    byte start[COLLECTIVES];
#endif
    byte m, n, piece;
    bool rts;
    do
    PROGRAM(0)
    PROGRAM(1)
    TAKE_BACK(0)
    TAKE_BACK(1)
#if COLLECTIVES > 2
    PROGRAM(2)
    TAKE_BACK(2)
#endif
#if COLLECTIVES > 3
    PROGRAM(3)
    TAKE_BACK(3)
#endif
#if COLLECTIVES > 4
    PROGRAM(4)
    TAKE_BACK(4)
#endif
    :: atomic { CAN_PUSH(me) -> push() }
    :: atomic { CAN_READ(me) -> read_remembered() }
    :: atomic { CAN_DRAIN(me) -> drain() }
    :: IS_STUCK -> assert(false)
    :: oldest == COLLECTIVES -> break
    od;
    assert(early_count == 0 && len(ring[me]) == 0)
}

init {
    byte m;
    atomic {
#ifdef ONE_WAY
        do
        :: m < COLLECTIVES -> sending[AT(1, m)] = DONE; receiving[AT(0, m)] = DONE; m++
        :: else -> break
        od;
#endif
        run Rank(0);
        run Rank(1)
    }
}
