/*
 * Memory as C++ orders it, for models to include: words (std::atomic) that are loaded and stored
 * relaxed, with acquire or with release, and places that are not atomic, on which a race is an
 * error.
 *
 * A word has a history of its stores. Each process has a view: of each word the latest store that
 * it knows of. A load may return that one or any later one. A store with release carries the view
 * of the process that stores, and a load with acquire that returns it takes that view over; a
 * relaxed store carries nothing, and a relaxed load takes nothing over. A read-modify-write reads
 * the latest store of all, and carries what that one carried as well (the release sequence). A
 * place has no history: who reads it must know of its latest write, and who writes it of that and
 * of all reads since, by the same views. Else it is a race, and an assertion fails.
 *
 * This is the operational form of the release-acquire fragment of C++20 with relaxed accesses:
 * Lahav, Giannarakis and Vafeiadis, "Taming release-acquire consistency" (2016); Kang, Hur, Lahav,
 * Vafeiadis and Dreyer, "A promising semantics for relaxed-memory concurrency" (2017), without its
 * promises; Kaiser, Dang, Dreyer, Lahav and Vafeiadis, "Strong logic for weak memory" (2017), for
 * races. Left out are fences and load buffering: a relaxed load that returns a store which follows
 * from what it returned. Two stores of one word, of which neither process knows the other's, are an
 * error, so that steps are in the order of stores.
 *
 * Accesses that are sequentially consistent (TOTAL) are in the order of the steps, which is the
 * order S of C++20: such a load returns no store that is older than the latest such store of that
 * word; all else that S decides is about fences.
 *
 * A model defines before it includes this PROCESSES, WORDS, STORES (of a word at most, with its
 * zeros), PLACES, READERS (the first of the processes, who alone read places) if they are fewer
 * than all, and `me`, the process. To load is to choose a store, by a condition that the latest one
 * fulfils, and to take it in:
 *
 *     atomic { LATEST(w) > 2 -> choose(w, CHOICE(w) > 2); mine = CHOICE(w); take_in(w, ACQUIRE) }
 *
 * A model that has TOTAL accesses defines HAS_TOTAL, too, and loads by choose_total().
 *
 * With SEQUENTIAL defined memory is sequentially consistent, for models that are too large else.
 */
#define RELAXED 0
#define ACQUIRE 1
#define RELEASE 2
#define BOTH (ACQUIRE | RELEASE)
#define TOTAL (4 | BOTH)

#ifdef SEQUENTIAL /* All see the latest store at once, and races are not looked for. */

byte value[WORDS];
#define LATEST(word) value[word]
#define CHOICE(word) value[word]
inline choose(word, condition) { skip }
inline choose_total(word, order, condition) { skip }
inline take_in(word, order) { skip }
inline store(word, order, what) { value[word] = what }
inline overwrite(word, order, what) { value[word] = what }
inline swap(word, order, what) { value[word] = what }
inline read_place(place) { skip }
inline write_place(place) { skip }

#else

#define AT_STORE(word, number) ((word) * STORES + (number))
#define SEEN(process, word) seen[(process) * WORDS + (word)]
#define CARRIED(word, number, other) carried[AT_STORE(word, number) * WORDS + (other)]
#define LATEST(word) value[AT_STORE(word, latest[word])]

byte oldest[WORDS]; /* That anybody may see. */
byte latest[WORDS];
byte value[WORDS * STORES];
byte seen[PROCESSES * WORDS];
byte carried[WORDS * STORES * WORDS];
#ifdef HAS_TOTAL
byte ordered[WORDS]; /* The latest store that is in one order of all. */
#endif

/* Of places: the latest write of each, and the reads since by each process that reads any. A bit
   says that a process, or a store, does not know of it. */
#ifndef READERS
#define READERS PROCESSES
#endif
#define WRITE_OF(place) (1 << (place))
#define READ_OF(place, process) (1 << ((1 + (process)) * PLACES + (place)))
#if READERS == 1
#define READS_OF(place) READ_OF(place, 0)
#elif READERS == 2
#define READS_OF(place) (READ_OF(place, 0) | READ_OF(place, 1))
#elif READERS == 3
#define READS_OF(place) (READ_OF(place, 0) | READ_OF(place, 1) | READ_OF(place, 2))
#else
#define READS_OF(place)                                                                            \
    (READ_OF(place, 0) | READ_OF(place, 1) | READ_OF(place, 2) | READ_OF(place, 3))
#endif
#define KNOWS_NOTHING (-1)
int unknown[PROCESSES];
int unknown_to[WORDS * STORES];

byte chosen, i, j; /* 0 between steps, but for `chosen` before take_in. */

/* The value of the store that is chosen. */
#define CHOICE(word) value[AT_STORE(word, chosen)]

/* Any store that the process may see and of which the condition on CHOICE(word) holds. */
inline choose(word, condition) {
    chosen = SEEN(me, word);
    do
    :: chosen < latest[word] -> chosen++
    :: (condition) -> break
    od
}

#ifdef HAS_TOTAL
/* The same for a load of that order. */
inline choose_total(word, order, condition) {
    chosen = SEEN(me, word);
    if
    :: (order) == TOTAL && ordered[word] > chosen -> chosen = ordered[word]
    :: else
    fi;
    do
    :: chosen < latest[word] -> chosen++
    :: (condition) -> break
    od
}
#endif

/* Nobody can see stores any more that are before all views: they are alike then. */
inline forget(word) {
    i = SEEN(0, word);
    j = 1;
    do
    :: j < PROCESSES -> i = (SEEN(j, word) < i -> SEEN(j, word) : i); j++
    :: else -> break
    od;
    do
    :: oldest[word] < i ->
        value[AT_STORE(word, oldest[word])] = 0;
        unknown_to[AT_STORE(word, oldest[word])] = 0;
        j = 0;
        do
        :: j < WORDS -> CARRIED(word, oldest[word], j) = 0; j++
        :: else -> break
        od;
        oldest[word] = oldest[word] + 1
    :: else -> break
    od;
    i = 0;
    j = 0
}

/* Of the store `chosen`. */
inline take_over(word) {
    do
    :: i < WORDS ->
        if
        :: CARRIED(word, chosen, i) > SEEN(me, i) -> SEEN(me, i) = CARRIED(word, chosen, i)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    unknown[me] = unknown[me] & unknown_to[AT_STORE(word, chosen)]
}

inline take_in(word, order) {
    d_step {
        SEEN(me, word) = chosen;
        if
        :: ((order) & ACQUIRE) != 0 -> take_over(word)
        :: else
        fi;
        forget(word);
        chosen = 0
    }
}

/* What the latest store carries as the process has stored it; `sequence`: and what the one before
   it carried. */
inline carry(word, order, sequence) {
    chosen = latest[word];
    unknown_to[AT_STORE(word, chosen)] =
        (((order) & RELEASE) != 0 -> unknown[me] : KNOWS_NOTHING) &
        (sequence -> unknown_to[AT_STORE(word, chosen - 1)] : KNOWS_NOTHING);
    do
    :: i < WORDS ->
        CARRIED(word, chosen, i) = (((order) & RELEASE) != 0 -> SEEN(me, i) : 0);
        if
        :: sequence && CARRIED(word, chosen - 1, i) > CARRIED(word, chosen, i) ->
            CARRIED(word, chosen, i) = CARRIED(word, chosen - 1, i)
        :: else
        fi;
        i++
    :: else -> break
    od;
#ifdef HAS_TOTAL
    ordered[word] = ((order) == TOTAL -> chosen : ordered[word]);
#endif
    i = 0
}

/* `what` may be made of the latest store's value. */
inline add_store(word, what) {
    assert(latest[word] + 1 < STORES);
    i = what;
    latest[word] = latest[word] + 1;
    value[AT_STORE(word, latest[word])] = i;
    SEEN(me, word) = latest[word];
    i = 0
}

inline store(word, order, what) {
    d_step {
        assert(SEEN(me, word) == latest[word]);
        add_store(word, what);
        carry(word, order, false);
        forget(word);
        chosen = 0
    }
}

/* As store(), where all that the process does not know of are read-modify-writes of what it knows,
   and none of its own store. */
inline overwrite(word, order, what) {
    d_step {
        add_store(word, what);
        carry(word, order, false);
        forget(word);
        chosen = 0
    }
}

/* A read-modify-write: `what` is made of LATEST(word), which it reads. */
inline swap(word, order, what) {
    d_step {
        chosen = latest[word];
        if
        :: ((order) & ACQUIRE) != 0 -> take_over(word)
        :: else
        fi;
        add_store(word, what);
        carry(word, order, true);
        forget(word);
        chosen = 0
    }
}

/* All other processes and all stores come not to know of what the process does; `known`: what
   need not be known any more. */
inline tell_nobody(bits, known) {
    i = 0;
    do
    :: i < PROCESSES ->
        unknown[i] = (i == me -> unknown[i] & ~(bits) : unknown[i] | (bits)) & ~(known);
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < WORDS ->
        j = oldest[i];
        do
        :: j <= latest[i] ->
            unknown_to[AT_STORE(i, j)] = (unknown_to[AT_STORE(i, j)] | (bits)) & ~(known);
            j++
        :: else -> break
        od;
        i++
    :: else -> break
    od;
    i = 0;
    j = 0
}

inline read_place(place) {
    d_step {
        assert(me < READERS && (unknown[me] & WRITE_OF(place)) == 0);
        tell_nobody(READ_OF(place, me), 0)
    }
}

inline write_place(place) {
    d_step {
        assert((unknown[me] & (WRITE_OF(place) | READS_OF(place))) == 0);
        tell_nobody(WRITE_OF(place), READS_OF(place))
    }
}

#endif
