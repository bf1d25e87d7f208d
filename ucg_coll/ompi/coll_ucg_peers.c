/*
 * Finds which processes have this component, and choose it where this one does. A process that does
 * not would call other collectives, so a communicator is taken only if all of its processes are
 * known to be alike: those of this job, which may have been started with different parameters, and
 * those of jobs that were spawned or connected. Each process publishes what matters while Open MPI
 * starts; what it has published never changes, so all ranks of a communicator come to the same
 * verdict.
 */
#include <stdlib.h>
#include <string.h>

#include "coll_ucg.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/class/opal_hash_table.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"

extern char** environ;

enum { BITS = 64, ENABLED_WORDS = (COLL_UCG_FN_COUNT + BITS - 1) / BITS };

/** Tells builds of one version of libucg apart: raised with every change of what processes exchange
 *  here and while they make a group, apart from what libucg does. */
enum { PROTOCOL = 3 };

/** What a process publishes. All but the last must be equal. */
typedef struct {
    uint64_t enabled[ENABLED_WORDS]; /**< A bit for each function. */
    uint32_t version[3];             /**< Version of the libucg that it runs with. */
    int32_t priority;                /**< Negative: takes nothing. */
    int32_t calls_before;            /**< Collectives before it serves a communicator. */
    uint32_t protocol;
    uint32_t others;   /**< Hash of the other components and their priorities. */
    uint32_t settings; /**< Hash of what the user has set for libucg. */
} card_t;

typedef enum {
    PEER_UNKNOWN,
    PEER_ABSENT, /**< Does not use the component, or uses another version of it. */
    PEER_UNLIKE, /**< Chooses components in another way. */
    PEER_ALIKE
} peer_t;

static struct {
    opal_mutex_t lock; /**< Guards what follows. Held while PMIx looks for what a peer has
                          published; it has a thread of its own and never waits for this one. */
    card_t mine;
    bool published;
    opal_hash_table_t known; /**< A peer_t by the process's name. */
    peer_t job;              /**< What all processes of this job are; unknown if they differ. */
} peers = {.lock = OPAL_MUTEX_STATIC_INIT};

/* ------------------------------------------------------------------ publishing */

static const uint32_t hash_of_nothing = 2166136261u; /* FNV-1a's. */

static uint32_t add_to_hash(uint32_t hash, const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ ((const unsigned char*)data)[i]) * 16777619u; /* FNV-1a */
    }
    return hash;
}

/** Returns a hash of the components that ranks might choose instead of this one, which does not
 *  depend on the order in which they were found. */
static uint32_t other_components(void) {
    mca_base_component_list_item_t* item;
    uint32_t sum = 0;
    OPAL_LIST_FOREACH(item, &ompi_coll_base_framework.framework_components,
                      mca_base_component_list_item_t) {
        const char* name = item->cli_component->mca_component_name;
        const int variable = mca_base_var_find("ompi", "coll", name, "priority");
        const int* priority = NULL;
        uint32_t hash = add_to_hash(hash_of_nothing, name, strlen(name));
        if (variable >= 0 &&
            OPAL_SUCCESS == mca_base_var_get_value(variable, &priority, NULL, NULL) &&
            NULL != priority) {
            hash = add_to_hash(hash, priority, sizeof *priority);
        }
        sum += hash;
    }
    return sum;
}

static uint32_t hash_of_parameters(char* const* values, int count) {
    uint32_t hash = hash_of_nothing;
    for (int i = 0; i < count; i++) {
        const char* value = NULL != values[i] ? values[i] : "";
        hash = add_to_hash(hash, value, strlen(value) + 1);
    }
    return hash;
}

/** Returns a hash of parameters, and of variables in any order. */
static uint32_t hash_of_settings(void) {
    const mca_coll_ucg_component_t* component = &mca_coll_ucg_component;
    uint32_t sum = hash_of_parameters(component->settings, COLL_UCG_SETTING_COUNT) +
                   hash_of_parameters(component->algorithms, COLL_UCG_FN_BLOCKING_COUNT);
    for (char** variable = environ; NULL != *variable; variable++) {
        if (0 == strncmp(*variable, "UCG_", 4)) {
            sum += add_to_hash(hash_of_nothing, *variable, strlen(*variable));
        }
    }
    return sum;
}

/** Returns why this process serves no communicator; NULL if it does. */
static const char* reason_to_stay_out(void) {
    if (coll_ucg_has_devices()) {
        return "buffers may lie in the memory of a device";
    }
    if (coll_ucg_survives_peers()) {
        return "fault tolerance is on (mpirun --with-ft), and its waits do not end when a peer "
               "does or a communicator is revoked";
    }
    return NULL;
}

static card_t make_card(bool stays_out) {
    const mca_coll_ucg_component_t* component = &mca_coll_ucg_component;
    card_t card;
    memset(&card, 0, sizeof card);
    ucg_get_version(&card.version[0], &card.version[1], &card.version[2]);
    card.priority = stays_out ? -1 : component->priority;
    card.calls_before = component->calls_before;
    for (int i = 0; i < COLL_UCG_FN_COUNT; i++) {
        card.enabled[i / BITS] |= component->enabled[i] ? UINT64_C(1) << i % BITS : 0;
    }
    card.protocol = PROTOCOL;
    card.others = other_components();
    card.settings = hash_of_settings();
    return card;
}

void coll_ucg_open_peers(void) {
    OBJ_CONSTRUCT(&peers.known, opal_hash_table_t);
    opal_hash_table_init(&peers.known, 64);
    peers.job = PEER_UNKNOWN;
    const char* reason = reason_to_stay_out();
    peers.mine = make_card(NULL != reason);
    if (NULL != reason && 0 <= mca_coll_ucg_component.priority && 0 == OPAL_PROC_MY_NAME.vpid) {
        opal_output(0, "coll/ucg: collectives run without it: %s", reason);
    }
    const int rc = coll_ucg_publish(&mca_coll_ucg_component.super.collm_version, &peers.mine,
                                    sizeof peers.mine);
    peers.published = 0 == rc;
    if (!peers.published) {
        opal_output(0,
                    "coll/ucg: PMIx does not publish that this process has the component (%d); "
                    "all its communicators use Open MPI's other collectives",
                    rc);
    }
}

void coll_ucg_close_peers(void) {
    OBJ_DESTRUCT(&peers.known);
}

/* ------------------------------------------------------------------ looking */

/** Has a component of the framework published something in that process that is found within
 *  `reach`? */
static bool has_come(const opal_process_name_t* name, mca_base_framework_t* framework,
                     coll_ucg_reach_t reach) {
    mca_base_component_list_item_t* item;
    bool found = false;
    if (!mca_base_framework_is_open(framework)) {
        return false;
    }
    OPAL_LIST_FOREACH(item, &framework->framework_components, mca_base_component_list_item_t) {
        char* key = mca_base_component_to_string(item->cli_component);
        found = NULL != key && 0 <= coll_ucg_find_published(name, key, reach, NULL, 0);
        free(key);
        if (found) {
            break;
        }
    }
    return found;
}

/** Has what a process publishes come here? It comes as a whole, so if anything has come, nothing is
 *  missing. */
static bool has_all_come(const opal_process_name_t* name, coll_ucg_reach_t reach) {
    return has_come(name, &opal_btl_base_framework, reach) ||
           has_come(name, &ompi_pml_base_framework, reach) ||
           has_come(name, &ompi_mtl_base_framework, reach);
}

/** Finds the card that a process has published. Returns its length, negative if it was not found.
 *  Looks in order of rising cost. */
static ptrdiff_t find_card(const opal_process_name_t* name, card_t* card) {
    char* key = mca_base_component_to_string(&mca_coll_ucg_component.super.collm_version);
    ptrdiff_t length = COLL_UCG_NOT_KNOWN;
    bool all_here = false;
    if (NULL == key) {
        return length;
    }
    for (int reach = COLL_UCG_LOOK_HERE; reach <= COLL_UCG_LOOK_ANYWHERE && 0 > length && !all_here;
         reach++) {
        length = coll_ucg_find_published(name, key, (coll_ucg_reach_t)reach, card, sizeof *card);
        all_here = 0 > length && has_all_come(name, COLL_UCG_LOOK_HERE);
        if (all_here) { /* It may have come since then, by a look of another thread. */
            length = coll_ucg_find_published(name, key, COLL_UCG_LOOK_HERE, card, sizeof *card);
        }
    }
    /* Finding anything else that the process has published brings the card as well. */
    if (COLL_UCG_NOT_PUBLISHED > length && has_all_come(name, COLL_UCG_LOOK_ANYWHERE)) {
        length = coll_ucg_find_published(name, key, COLL_UCG_LOOK_HERE, card, sizeof *card);
    }
    free(key);
    return length;
}

static peer_t judge(const card_t* card) {
    if (card->priority < 0 ||
        0 != memcmp(card->version, peers.mine.version, sizeof card->version)) {
        return PEER_ABSENT;
    }
    return 0 == memcmp(card, &peers.mine, offsetof(card_t, settings)) ? PEER_ALIKE : PEER_UNLIKE;
}

/** Ends the job. A verdict of this process alone would be worse than none: others may know better,
 *  and would wait for this one in libucg. */
static void give_up(const opal_process_name_t* name) {
    opal_output(0,
                "coll/ucg: PMIx does not tell what process %u of job %u has published; run without "
                "it: --mca coll ^ucg",
                (unsigned)name->vpid, (unsigned)name->jobid);
    ompi_rte_abort(1, NULL);
}

static peer_t ask(const opal_process_name_t* name) {
    enum { TRIES_MAX = 3 };
    card_t card;
    ptrdiff_t length = COLL_UCG_NOT_KNOWN;
    for (int i = 0; i < TRIES_MAX && COLL_UCG_NOT_PUBLISHED > length; i++) {
        length = find_card(name, &card);
    }
    if (COLL_UCG_NOT_KNOWN == length) {
        give_up(name);
    }
    return (ptrdiff_t)sizeof card == length ? judge(&card) : PEER_ABSENT;
}

static peer_t recall(const opal_process_name_t* name) {
    void* known = NULL;
    if (OPAL_PROC_MY_NAME.jobid == name->jobid) {
        if (mca_coll_ucg_component.assume_alike) {
            return PEER_ALIKE;
        }
        if (PEER_UNKNOWN != peers.job) {
            return peers.job;
        }
    }
    const uint64_t key = (uint64_t)name->jobid << 32 | name->vpid;
    return OPAL_SUCCESS == opal_hash_table_get_value_uint64(&peers.known, key, &known)
               ? (peer_t)(intptr_t)known
               : PEER_UNKNOWN;
}

static peer_t find_out(const opal_process_name_t* name) {
    peer_t peer = recall(name);
    if (PEER_UNKNOWN == peer) {
        const uint64_t key = (uint64_t)name->jobid << 32 | name->vpid;
        const bool self = 0 == memcmp(name, &OPAL_PROC_MY_NAME, sizeof *name);
        peer = self ? judge(&peers.mine) : ask(name);
        /* If there is no memory to remember it, it is asked again. */
        (void)opal_hash_table_set_value_uint64(&peers.known, key, (void*)(intptr_t)peer);
    }
    return peer;
}

/* ------------------------------------------------------------------ verdicts */

static bool is_stranger(peer_t peer) {
    return PEER_ABSENT == peer || PEER_UNLIKE == peer;
}

/** Returns a rank that is known to be a stranger, else one that turns out to be one when asked,
 *  else -1. */
static int find_stranger(ompi_group_t* group) {
    for (int i = 0; i < group->grp_proc_count; i++) {
        const opal_process_name_t name = ompi_group_get_proc_name(group, i);
        if (is_stranger(recall(&name))) {
            return i;
        }
    }
    for (int i = 0; i < group->grp_proc_count; i++) {
        const opal_process_name_t name = ompi_group_get_proc_name(group, i);
        if (is_stranger(find_out(&name))) {
            return i;
        }
    }
    return -1;
}

/** Remembers the processes of this job by one value, if they are all the same. */
static void sum_up_job(ompi_group_t* world) {
    const opal_process_name_t first = ompi_group_get_proc_name(world, 0);
    const peer_t job = recall(&first);
    for (int i = 1; i < world->grp_proc_count; i++) {
        const opal_process_name_t name = ompi_group_get_proc_name(world, i);
        if (job != recall(&name)) {
            return;
        }
    }
    peers.job = job;
    opal_hash_table_remove_all(&peers.known);
}

/** Says once why a communicator is not taken; the first rank of this side that has the component
 *  says so. */
static void tell(ompi_communicator_t* comm, ompi_group_t* group, int stranger) {
    const ompi_group_t* mine = comm->c_local_group;
    const opal_process_name_t named = ompi_group_get_proc_name(group, stranger);
    const bool absent = PEER_ABSENT == recall(&named);
    if (coll_ucg_was_told(absent ? COLL_UCG_FOR_ABSENCE : COLL_UCG_FOR_CHOICE)) {
        return;
    }
    for (int i = 0; i < mine->grp_my_rank; i++) {
        const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, i);
        if (PEER_ABSENT != find_out(&name)) {
            return;
        }
    }
    opal_output(0,
                "coll/ucg: a communicator of %d processes uses Open MPI's other collectives: its "
                "rank %d%s %s",
                mine->grp_proc_count +
                    (mine == comm->c_remote_group ? 0 : comm->c_remote_group->grp_proc_count),
                stranger, mine == group ? "" : " of the other side",
                absent ? "has no coll/ucg of this version"
                       : "has other parameters that choose collectives (coll, coll_*_priority, "
                         "coll_ucg_enable_*)");
}

/** Are all processes of one side alike? If not, somebody has said so. */
static bool is_alike(ompi_communicator_t* comm, ompi_group_t* group) {
    const int stranger = find_stranger(group);
    if (stranger >= 0) {
        tell(comm, group, stranger);
    }
    return stranger < 0;
}

bool coll_ucg_all_alike(ompi_communicator_t* comm) {
    ompi_group_t* group = comm->c_local_group;
    ompi_group_t* others = OMPI_COMM_IS_INTER(comm) ? comm->c_remote_group : NULL;
    if (peers.mine.priority < 0) {
        return false;
    }
    opal_mutex_lock(&peers.lock);
    const bool alike =
        peers.published && is_alike(comm, group) && (NULL == others || is_alike(comm, others));
    if (alike && comm == &ompi_mpi_comm_world.comm) {
        sum_up_job(group);
    }
    opal_mutex_unlock(&peers.lock);
    return alike;
}

bool coll_ucg_first_is_set_alike(ompi_communicator_t* comm) {
    const opal_process_name_t first = ompi_group_get_proc_name(comm->c_local_group, 0);
    card_t card;
    bool alike = false;
    if (0 != ompi_comm_rank(comm)) {
        opal_mutex_lock(&peers.lock);
        alike = (ptrdiff_t)sizeof card == find_card(&first, &card) &&
                card.settings == hash_of_settings();
        opal_mutex_unlock(&peers.lock);
    }
    return alike;
}
