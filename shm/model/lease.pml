/*
 * Memory that a rank leases for its end of a group, gives back, and leases for another group
 * (shm/heap.cpp, as transport/shm/shm_transport.cpp uses it): rank 0 makes GROUPS groups one after
 * the other, each with the peers that GROUP_OF says, and has REGIONS places for its memory.
 *
 *   owner  takes a region that is free, writes zeros to it, tells where it is in the exchange by
 *          which the group is made, shares something there, ends the group, and retires the region;
 *          it is free when all peers of the group have said that they have left
 *   peer   reads what is shared, or not, says that it has left, and makes its next group
 *
 * Memory is that of release_acquire.pml, with the orders that the code has: what is shared is a
 * place, so the assertions say that each is read before it is written for another group; and that
 * nobody finds what an earlier group has left. spin reports an invalid end state if somebody waits
 * for ever. That the exchange orders what comes before it at all ranks is the program's to see to
 * (an allgather of MPI's does).
 *
 * Each variant breaks something, and must fail: NO_WAIT (a retired region is free at once),
 * ONE_LEFT (when all but one have left), LEAVE_EARLY (a peer says so before it has read), NO_ZEROS
 * (the region is leased as it is), ZEROS_LATE (zeros are written when the address was told),
 * and each order that is weaker.
 */
#ifndef GROUPS
#define GROUPS 3
#endif
#ifndef REGIONS
#define REGIONS 1
#endif
#define PEERS 2
/* A bit for each peer: both, the first, both, ... */
#define GROUP_OF(g) ((g) % 2 == 0 -> 3 : 1)
#define MEMBERS(g) ((g) % 2 == 0 -> 2 : 1) /* The peers. */

/* The orders. */
#ifndef LEFT_STORED
#define LEFT_STORED RELEASE
#endif
#ifndef LEFT_LOADED
#define LEFT_LOADED ACQUIRE
#endif
#ifndef EXCHANGED
#define EXCHANGED BOTH
#endif
#ifndef SHARE_STORED
#define SHARE_STORED RELEASE
#endif
#ifndef SHARE_LOADED
#define SHARE_LOADED ACQUIRE
#endif

#define LEFT(r, p) ((r) * PEERS + (p)) /* The peer's mark. */
#define SHARED(r) (PEERS * REGIONS + (r))
#define ARRIVED(g) ((PEERS + 1) * REGIONS + (g)) /* Ranks of the group that are in its exchange. */
#define WORDS ((PEERS + 1) * REGIONS + GROUPS)
#define STORES (4 * GROUPS + 1)
#define MEMORY(r) (r)
#define PLACES REGIONS

#define OWNER PEERS
#define PROCESSES (PEERS + 1)
#define READERS PEERS
#include "release_acquire.pml"

byte group_in[REGIONS]; /* What is shared there. */
byte region_of[GROUPS]; /* What the address says. */

#ifdef NO_WAIT
#define AWAITED(r, p) false
#elif defined(ONE_LEFT)
#define AWAITED(r, p) ((p) == 1 && (expected[r] & 2) != 0)
#else
#define AWAITED(r, p) ((expected[r] & (1 << (p))) != 0)
#endif
#define HAS_LEFT(r, p, mark) (!AWAITED(r, p) || mark == 1)

/* All of the group come, and go on when all have come. */
inline exchange(g) {
    swap(ARRIVED(g), EXCHANGED, LATEST(ARRIVED(g)) + 1);
    atomic {
        LATEST(ARRIVED(g)) == MEMBERS(g) + 1 ->
        choose(ARRIVED(g), CHOICE(ARRIVED(g)) == MEMBERS(g) + 1);
        take_in(ARRIVED(g), EXCHANGED)
    }
}

inline write_zeros() {
    atomic {
#ifndef NO_ZEROS
        write_place(MEMORY(region));
        store(LEFT(region, 0), RELAXED, 0);
        store(LEFT(region, 1), RELAXED, 0);
        store(SHARED(region), RELAXED, 0);
#endif
        skip
    }
}

/* The first region that nobody looks at any more. */
#define IS_FREE(r)                                                                                 \
    ((r) < REGIONS && HAS_LEFT(r, 0, LATEST(LEFT(r, 0))) && HAS_LEFT(r, 1, LATEST(LEFT(r, 1))))
inline look_at(r, p) {
    choose(LEFT(r, p), HAS_LEFT(r, p, CHOICE(LEFT(r, p))));
    take_in(LEFT(r, p), LEFT_LOADED)
}
inline collect(r) {
    look_at(r, 0);
    look_at(r, 1);
    region = r
}

proctype Owner(byte me) {
    byte group, region;
    byte expected[REGIONS]; /* Who is to leave. */
    do
    :: group == GROUPS -> break
    :: group < GROUPS ->
        if
        :: atomic { IS_FREE(0) -> collect(0) }
#if REGIONS > 1
        :: atomic { IS_FREE(1) -> collect(1) }
#endif
        fi;
#ifndef ZEROS_LATE
        write_zeros();
#endif
        region_of[group] = region;
        exchange(group);
#ifdef ZEROS_LATE
        write_zeros();
#endif
        atomic {
            write_place(MEMORY(region));
            group_in[region] = group + 1
        }
        store(SHARED(region), SHARE_STORED, 1);
        atomic {
            expected[region] = GROUP_OF(group);
            group++
        }
    od
}

inline leave() { store(LEFT(region, me), LEFT_STORED, 1) }

proctype Peer(byte me) {
    byte group, region;
    do
    :: group == GROUPS -> break
    :: group < GROUPS && (GROUP_OF(group) & (1 << me)) == 0 -> group++
    :: group < GROUPS && (GROUP_OF(group) & (1 << me)) != 0 ->
        exchange(group);
        region = region_of[group];
#ifdef LEAVE_EARLY
        leave();
#endif
        atomic {
            LATEST(SHARED(region)) == 1 -> choose(SHARED(region), CHOICE(SHARED(region)) == 1);
            take_in(SHARED(region), SHARE_LOADED);
            read_place(MEMORY(region));
            assert(group_in[region] == group + 1)
        }
#ifndef LEAVE_EARLY
        leave();
#endif
        atomic { group++; region = 0 }
    od
}

init {
    atomic {
        run Peer(0);
        run Peer(1);
        run Owner(OWNER)
    }
}
