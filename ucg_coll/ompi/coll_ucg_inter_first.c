/*
 * Inter-communicators on several hosts: short gathers and scatters. A root takes longer for a
 * message from each process on another host than the other side takes for a gather of its own. So
 * the blocks of the other side all go through its first process.
 */
#include "coll_ucg_inter.h"

enum {
    kRootRank = 0,
    kFirstOther = 1,
    kOneMessage = 1 << 16 /**< More bytes take longer to copy than to send by themselves. */
};

bool coll_ucg_goes_by_first(const coll_ucg_sides_t* sides, coll_ucg_part_t* part,
                            const coll_ucg_rooted_t* rooted) {
    const int size = MPI_ROOT == rooted->root ? sides->remote_size : sides->local_size;
    const coll_ucg_edge_blocks_t* blocks = &rooted->blocks;
    /* If the lengths differ, only the root knows them all. */
    const bool even =
        COLL_UCG_FN_gather == rooted->function || COLL_UCG_FN_scatter == rooted->function;
    return 1 < size && even && coll_ucg_is_on_several_hosts(part->group, &part->hosts) &&
           coll_ucg_packed_bytes(blocks->type, (size_t)blocks->count) <=
               (size_t)kOneMessage / (size_t)size;
}

/** Sends `block` between the root and the first process of the other side; the side's other
 *  processes have no part in it. */
static ucg_status_t go_across(mca_coll_ucg_module_t* module, ucg_group_h group, bool sends,
                              bool takes_part, int first, const coll_ucg_edge_blocks_t* block) {
    const coll_ucg_edge_blocks_t none = {.user = NULL};
    const coll_ucg_edges_t edges = coll_ucg_edges_across(
        module->sides, first, 0, takes_part && sends ? 1 : 0, 0, takes_part && !sends ? 1 : 0);
    coll_ucg_call_t call;
    coll_ucg_begin_blocking_in(&call, module, group);
    return coll_ucg_run_opened(
        &call, coll_ucg_open_edges(&call, &edges, sends ? block : &none, sends ? &none : block));
}

/** Gathers or scatters among the processes of this side, whose first one has all blocks at
 *  `all`. */
static ucg_status_t go_on_side(mca_coll_ucg_module_t* module, bool gathers,
                               const coll_ucg_edge_blocks_t* own, void* all) {
    coll_ucg_call_t call;
    ucg_status_t status;
    coll_ucg_begin_blocking_in(&call, module, module->sides->side.group);
    call.params = (ucg_coll_params_t){
        .type = gathers ? UCG_COLL_GATHER : UCG_COLL_SCATTER,
        .count = coll_ucg_packed_bytes(own->type, (size_t)own->count),
        .element_bytes = 1,
    };
    if (gathers) {
        status = coll_ucg_open_send(&call, own->user, (size_t)own->count, own->type);
        call.params.recv_buffer = all;
    } else {
        status = coll_ucg_open_receive(&call, (void*)own->user, (size_t)own->count, own->type);
        call.params.send_buffer = all;
    }
    return coll_ucg_run_opened(&call, status);
}

static ucg_status_t run_at_root(mca_coll_ucg_module_t* module, ucg_group_h group, bool gathers,
                                const coll_ucg_edge_blocks_t* blocks) {
    coll_ucg_edge_blocks_t all = *blocks;
    all.count *= (coll_ucg_count_t)module->sides->remote_size;
    return go_across(module, group, !gathers, true, kFirstOther, &all);
}

ucg_status_t coll_ucg_run_by_first(mca_coll_ucg_module_t* module, ucg_group_h group,
                                   const coll_ucg_rooted_t* rooted) {
    coll_ucg_sides_t* sides = module->sides;
    const coll_ucg_edge_blocks_t* mine = &rooted->blocks;
    const bool gathers = COLL_UCG_FN_gather == rooted->function;
    const bool is_first = 0 == ompi_comm_rank(module->comm);
    coll_ucg_edge_blocks_t all = {.type = MPI_BYTE};
    coll_ucg_workspace_t own;
    if (MPI_ROOT == rooted->root) {
        return run_at_root(module, group, gathers, mine);
    }
    coll_ucg_workspace_t* const memory = coll_ucg_take_workspace(&sides->memory, &own);
    ucg_status_t status = UCG_OK;
    if (is_first) {
        const size_t bytes =
            coll_ucg_packed_bytes(mine->type, (size_t)mine->count) * (size_t)sides->local_size;
        all.count = (coll_ucg_count_t)bytes;
        all.user = coll_ucg_scratch_get(&memory->receive, bytes);
        status = NULL != all.user ? UCG_OK : UCG_ERR_NO_MEMORY;
    }
    if (UCG_OK == status && gathers) {
        status = go_on_side(module, true, mine, (void*)all.user);
    }
    if (UCG_OK == status) {
        status = go_across(module, group, gathers, is_first, kRootRank, &all);
    }
    if (UCG_OK == status && !gathers) {
        status = go_on_side(module, false, mine, (void*)all.user);
    }
    coll_ucg_leave_workspace(memory, &own);
    return status;
}
