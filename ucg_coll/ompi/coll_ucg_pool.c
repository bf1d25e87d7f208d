/*
 * The groups of a communicator's persistent requests.
 */
#include "coll_ucg_pool.h"

#include <stdlib.h>

#include "coll_ucg_background.h"
#include "coll_ucg_call.h"
#include "coll_ucg_setup.h"
#include "opal/util/output.h"

/** Number of spare groups after an agreement, if requests keep coming. Each request then costs that
 *  fraction of a short call, and a communicator has that many more groups than requests live at
 *  once. Like the list of requests (coll_ucg_request.h), the pool keeps what it has once needed. */
enum { SPARE_MAX = 8 };

typedef enum {
    SPARE, /**< No process has a request of it, as all know. */
    TAKEN, /**< A request of this process has it. */
    FREED, /**< The request of this process was freed; other processes may have theirs still. */
    LOST   /**< Freed likewise, and the group serves no requests any more. */
} holder_t;

struct coll_ucg_pooled {
    struct coll_ucg_pool* pool;
    ucg_group_h group; /**< NULL: it is lost. */
    holder_t holder;   /**< Guarded by the component's lock. */
};

/** What a process tells the others about a group that is not spare: after how many collectives it
 *  has given the group up. The minimum over all processes shows whether all have given it up, and
 *  after equally many. They may differ: a program may be wrong, and have started a request more
 *  often on one process than on others. */
typedef struct {
    uint64_t calls;    /**< Number of collectives + 1; 0: not given up. */
    uint64_t inverted; /**< `calls` with all bits inverted, so that the minimum is that of the most
                            calls; 0 likewise. */
} account_t;

typedef struct coll_ucg_pool {
    coll_ucg_pooled_t** groups;
    account_t* accounts; /**< Memory for as many. */
    int count;
    int room;
    int wanted;   /**< Least number of spare groups after the next agreement. */
    bool filling; /**< This process takes part in an agreement, or in making groups. */
    int held;     /**< Groups that requests have; guarded by the component's lock, like: */
    bool left;    /**< The module is gone: what requests give back is not needed. */
} coll_ucg_pool_t;

/* ------------------------------------------------------------------ groups */

/** Leaves the group. Local. */
static void leave_group(coll_ucg_pooled_t* pooled) {
    if (NULL == pooled->group) {
        return;
    }
    ucg_group_destroy(pooled->group);
    pooled->group = NULL;
}

static void free_group(coll_ucg_pooled_t* pooled) {
    leave_group(pooled);
    free(pooled);
}

static void free_pool(coll_ucg_pool_t* pool) {
    free(pool->groups);
    free(pool->accounts);
    free(pool);
}

/** Makes room for one more group. Returns false if there is no memory. */
static bool has_room(coll_ucg_pool_t* pool) {
    if (pool->count < pool->room) {
        return true;
    }
    const size_t room = 2 * (size_t)pool->room + SPARE_MAX;
    coll_ucg_pooled_t** groups = realloc(pool->groups, room * sizeof *groups);
    pool->groups = NULL == groups ? pool->groups : groups;
    account_t* accounts = realloc(pool->accounts, room * sizeof *accounts);
    pool->accounts = NULL == accounts ? pool->accounts : accounts;
    if (NULL == groups || NULL == accounts) {
        return false;
    }
    pool->room = (int)room;
    return true;
}

/** Makes one more group, which is spare. */
static ucg_status_t add_group(mca_coll_ucg_module_t* module) {
    coll_ucg_pool_t* pool = module->pool;
    coll_ucg_pooled_t* pooled = malloc(sizeof *pooled);
    if (NULL == pooled || !has_room(pool)) {
        free(pooled);
        return UCG_ERR_NO_MEMORY;
    }
    const ucg_status_t status = coll_ucg_make_further_group(module, &pooled->group);
    if (UCG_OK != status) {
        free(pooled);
        return status;
    }
    pooled->pool = pool;
    pooled->holder = SPARE;
    coll_ucg_poll_library_for(pooled->group);
    pool->groups[pool->count++] = pooled;
    return UCG_OK;
}

/* ------------------------------------------------------------------ agreement */

static uint64_t calls_of(ucg_group_h group) {
    ucg_group_attr_t attributes = {.field_mask = UCG_GROUP_ATTR_FIELD_STARTED};
    uint64_t calls = 0;
    (void)ucg_group_query(group, &attributes);
    for (int i = 0; i < UCG_COLL_MAX; i++) {
        calls += attributes.started[i];
    }
    return calls;
}

/** Returns what this process tells about a group. */
static account_t account_of(const coll_ucg_pooled_t* pooled) {
    if (FREED != pooled->holder) {
        return (account_t){0, 0};
    }
    const uint64_t calls = calls_of(pooled->group) + 1;
    return (account_t){calls, ~calls};
}

/** Have all processes given the group up, by the minimum of what they tell? */
static bool given_up_by_all(const account_t* least) {
    return 0 != least->calls && least->calls == ~least->inverted;
}

/** Finds which groups have become spare; all processes come to the same result. */
static ucg_status_t agree(mca_coll_ucg_module_t* module) {
    coll_ucg_pool_t* pool = module->pool;
    size_t count = 0;
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    for (int i = 0; i < pool->count; i++) {
        if (SPARE != pool->groups[i]->holder) {
            pool->accounts[count++] = account_of(pool->groups[i]);
        }
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    if (0 == count) {
        return UCG_OK;
    }
    const ucg_status_t status = coll_ucg_find_least(
        module, (uint64_t*)pool->accounts, count * sizeof *pool->accounts / sizeof(uint64_t));
    if (UCG_OK != status) {
        return status;
    }
    count = 0;
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    for (int i = 0; i < pool->count; i++) {
        coll_ucg_pooled_t* pooled = pool->groups[i];
        if (SPARE != pooled->holder && given_up_by_all(&pool->accounts[count++])) {
            pooled->holder = SPARE;
        }
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    return UCG_OK;
}

/* ------------------------------------------------------------------ take and return */

static int count_spare(const coll_ucg_pool_t* pool) {
    int spare = 0;
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    for (int i = 0; i < pool->count; i++) {
        spare += SPARE == pool->groups[i]->holder ? 1 : 0;
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    return spare;
}

/** Takes a spare group. NULL: there is none, as all processes find alike. */
static coll_ucg_pooled_t* take_spare(coll_ucg_pool_t* pool) {
    coll_ucg_pooled_t* taken = NULL;
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    for (int i = 0; i < pool->count && NULL == taken; i++) {
        if (SPARE == pool->groups[i]->holder) {
            taken = pool->groups[i];
            taken->holder = TAKEN;
            pool->held++;
        }
    }
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    return taken;
}

/** Provides spare groups when there is none. The more requests a program has made, the more it will
 *  make. */
static ucg_status_t refill(mca_coll_ucg_module_t* module) {
    coll_ucg_pool_t* pool = module->pool;
    ucg_status_t status = agree(module);
    const int wanted = pool->wanted;
    int spare = count_spare(pool);
    pool->wanted = wanted < SPARE_MAX / 2 ? 2 * wanted : SPARE_MAX;
    while (UCG_OK == status && spare < wanted) {
        status = add_group(module);
        spare += UCG_OK == status ? 1 : 0;
    }
    /* All know that there will be no more groups now; the existing ones serve. */
    return UCG_ERR_UNSUPPORTED == status && 0 < spare ? UCG_OK : status;
}

/** Makes the module's pool, and its group: a program that makes persistent requests uses the
 *  communicator enough to earn its group. */
static ucg_status_t open_pool(mca_coll_ucg_module_t* module) {
    module->calls_before_group = 0;
    ucg_status_t status = coll_ucg_enter(module);
    while (UCG_INPROGRESS == status) {
        status = coll_ucg_make_group_now(module);
        status = UCG_OK == status ? coll_ucg_enter(module) : status;
    }
    if (UCG_OK == status && NULL == module->pool) {
        module->pool = calloc(1, sizeof *module->pool);
        if (NULL == module->pool) {
            return UCG_ERR_NO_MEMORY;
        }
        module->pool->wanted = 1;
    }
    return status;
}

/** Refuses a request that a callback of the program makes while the pool is being filled. Ranks
 *  whose callback runs after that would agree in another order. */
static ucg_status_t refuse_nested(const mca_coll_ucg_module_t* module) {
    opal_output(0,
                "coll/ucg: %s: rank %d makes a persistent request in a callback that runs while it "
                "makes another one of this communicator",
                module->comm->c_name, ompi_comm_rank(module->comm));
    return UCG_ERR_BUSY;
}

static ucg_status_t take(mca_coll_ucg_module_t* module, coll_ucg_pooled_t** pooled_p) {
    ucg_status_t status = open_pool(module);
    if (UCG_OK != status) {
        return status;
    }
    if (module->pool->filling) {
        return refuse_nested(module);
    }
    *pooled_p = take_spare(module->pool);
    if (NULL == *pooled_p) {
        module->pool->filling = true;
        status = refill(module);
        module->pool->filling = false;
        *pooled_p = UCG_OK == status ? take_spare(module->pool) : NULL;
    }
    return status;
}

ucg_status_t coll_ucg_take_group(mca_coll_ucg_module_t* module, coll_ucg_pooled_t** pooled_p) {
    const ucg_status_t status = take(module, pooled_p);
    if (UCG_ERR_NO_MEMORY == status || UCG_ERR_INTERNAL == status) {
        coll_ucg_give_up_lacking(module, true); /* Others go on to agree in the group. */
    }
    return status;
}

ucg_group_h coll_ucg_pooled_group(const coll_ucg_pooled_t* pooled) {
    return pooled->group;
}

void coll_ucg_return_group(coll_ucg_pooled_t* pooled, bool intact) {
    coll_ucg_pool_t* pool = pooled->pool;
    if (intact) {
        ucg_group_trim(pooled->group, COLL_UCG_SCRATCH_KEPT);
    } else {
        leave_group(pooled);
    }
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    pooled->holder = intact ? FREED : LOST;
    const bool alone = pool->left;
    const bool last = 0 == --pool->held && alone;
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    if (alone) {
        free_group(pooled);
    }
    if (last) {
        free_pool(pool);
    }
}

void coll_ucg_leave_pool(mca_coll_ucg_module_t* module) {
    coll_ucg_pool_t* pool = module->pool;
    if (NULL == pool) {
        return;
    }
    module->pool = NULL;
    /* The last request may free the pool as soon as the lock is free. */
    coll_ucg_pooled_t** groups = pool->groups;
    int count = 0;
    opal_mutex_lock(&mca_coll_ucg_component.lock);
    for (int i = 0; i < pool->count; i++) {
        if (TAKEN != groups[i]->holder) {
            groups[count++] = groups[i];
        }
    }
    pool->groups = NULL;
    pool->left = true;
    const bool last = 0 == pool->held;
    opal_mutex_unlock(&mca_coll_ucg_component.lock);
    for (int i = 0; i < count; i++) {
        free_group(groups[i]);
    }
    free(groups);
    if (last) {
        free_pool(pool);
    }
}
