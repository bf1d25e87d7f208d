/*
 * Short forms of the calls of <ucg/ucg.h>: arguments in MPI's order, counts in elements of one of
 * the library's datatypes (bytes: UCG_DT_UINT8). For each collective
 *   - ucg_<collective>(group, ...) runs it and blocks: ucg_coll_run();
 *   - ucg_<collective>_params(...) fills the structure, for ucg_coll_init(),
 *     ucg_coll_run_or_post() or ucg_group_explain(). Vectors must live until that call returns,
 *     buffers until the collective has ended.
 * `ucg_in_place` as `send_buffer` stands for the structure's UCG_COLL_FLAG_IN_PLACE: MPI_IN_PLACE,
 * where MPI has it. UCG_DT_OPAQUE has no size and is UCG_ERR_INVALID_PARAM; elements of other
 * sizes, and operators of the caller's own, need the structure. Errors, threads and ownership are
 * those of the functions named above.
 */
#ifndef UCG_CALLS_H_
#define UCG_CALLS_H_

#include <string.h>
#include <ucg/ucg.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Stands for MPI_IN_PLACE: an address that is not that of any buffer. It is given as the send
 *  buffer, and by the root of a scatter(v), cast to void*, as the receive buffer. */
extern const unsigned char ucg_in_place[1];

/** Returns the parameters that the short forms have in common, of a collective `type` with `count`
 *  elements. A datatype without a size makes the type UCG_COLL_LAST, which every function
 *  refuses. */
static inline ucg_coll_params_t ucg_short_params(ucg_coll_type_t type, const void* send_buffer,
                                                 void* recv_buffer, uint64_t count,
                                                 ucg_datatype_t datatype) {
    ucg_coll_params_t params;
    memset(&params, 0, sizeof(params));
    params.element_bytes = ucg_datatype_bytes(datatype);
    params.type = params.element_bytes > 0 ? type : UCG_COLL_LAST;
    params.flags = send_buffer == ucg_in_place ? UCG_COLL_FLAG_IN_PLACE : 0;
    params.send_buffer = send_buffer;
    params.recv_buffer = recv_buffer;
    params.count = count;
    params.datatype = datatype;
    return params;
}

/** Returns the parameters of a barrier. Each function ..._params() below does so for its
 *  collective. */
static inline ucg_coll_params_t ucg_barrier_params(void) {
    ucg_coll_params_t params;
    memset(&params, 0, sizeof(params));
    params.type = UCG_COLL_BARRIER;
    return params;
}

static inline ucg_status_t ucg_barrier(ucg_group_h group) {
    const ucg_coll_params_t params = ucg_barrier_params();
    return ucg_coll_run(group, &params);
}

/** Broadcasts the whole vector of `count` elements from the root to all ranks. */
static inline ucg_coll_params_t ucg_bcast_params(void* buffer, uint64_t count,
                                                 ucg_datatype_t datatype, uint32_t root) {
    ucg_coll_params_t params = ucg_short_params(UCG_COLL_BCAST, NULL, buffer, count, datatype);
    params.root = root;
    return params;
}

static inline ucg_status_t ucg_bcast(ucg_group_h group, void* buffer, uint64_t count,
                                     ucg_datatype_t datatype, uint32_t root) {
    const ucg_coll_params_t params = ucg_bcast_params(buffer, count, datatype, root);
    return ucg_coll_run(group, &params);
}

/** Reduces the whole vector of `count` elements to the root; `recv_buffer` is used at the root
 *  alone. */
static inline ucg_coll_params_t ucg_reduce_params(const void* send_buffer, void* recv_buffer,
                                                  uint64_t count, ucg_datatype_t datatype,
                                                  ucg_op_t op, uint32_t root) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_REDUCE, send_buffer, recv_buffer, count, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.op = op;
    params.root = root;
    return params;
}

static inline ucg_status_t ucg_reduce(ucg_group_h group, const void* send_buffer, void* recv_buffer,
                                      uint64_t count, ucg_datatype_t datatype, ucg_op_t op,
                                      uint32_t root) {
    const ucg_coll_params_t params =
        ucg_reduce_params(send_buffer, recv_buffer, count, datatype, op, root);
    return ucg_coll_run(group, &params);
}

/** Reduces the whole vector of `count` elements; all ranks receive the result. */
static inline ucg_coll_params_t ucg_allreduce_params(const void* send_buffer, void* recv_buffer,
                                                     uint64_t count, ucg_datatype_t datatype,
                                                     ucg_op_t op) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_ALLREDUCE, send_buffer, recv_buffer, count, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.op = op;
    return params;
}

static inline ucg_status_t ucg_allreduce(ucg_group_h group, const void* send_buffer,
                                         void* recv_buffer, uint64_t count, ucg_datatype_t datatype,
                                         ucg_op_t op) {
    const ucg_coll_params_t params =
        ucg_allreduce_params(send_buffer, recv_buffer, count, datatype, op);
    return ucg_coll_run(group, &params);
}

/** Scans the whole vector of `count` elements: rank r receives the reduction over ranks 0 to r. */
static inline ucg_coll_params_t ucg_scan_params(const void* send_buffer, void* recv_buffer,
                                                uint64_t count, ucg_datatype_t datatype,
                                                ucg_op_t op) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_SCAN, send_buffer, recv_buffer, count, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.op = op;
    return params;
}

static inline ucg_status_t ucg_scan(ucg_group_h group, const void* send_buffer, void* recv_buffer,
                                    uint64_t count, ucg_datatype_t datatype, ucg_op_t op) {
    const ucg_coll_params_t params = ucg_scan_params(send_buffer, recv_buffer, count, datatype, op);
    return ucg_coll_run(group, &params);
}

/** Like ucg_scan_params(), but rank r receives the reduction over ranks 0 to r - 1, rank 0
 *  nothing. */
static inline ucg_coll_params_t ucg_exscan_params(const void* send_buffer, void* recv_buffer,
                                                  uint64_t count, ucg_datatype_t datatype,
                                                  ucg_op_t op) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_EXSCAN, send_buffer, recv_buffer, count, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.op = op;
    return params;
}

static inline ucg_status_t ucg_exscan(ucg_group_h group, const void* send_buffer, void* recv_buffer,
                                      uint64_t count, ucg_datatype_t datatype, ucg_op_t op) {
    const ucg_coll_params_t params =
        ucg_exscan_params(send_buffer, recv_buffer, count, datatype, op);
    return ucg_coll_run(group, &params);
}

/** Gathers the blocks of all ranks on every rank. `count`: elements of one rank's block. */
static inline ucg_coll_params_t ucg_allgather_params(const void* send_buffer, void* recv_buffer,
                                                     uint64_t count, ucg_datatype_t datatype) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_ALLGATHER, send_buffer, recv_buffer, count, datatype);
    return params;
}

static inline ucg_status_t ucg_allgather(ucg_group_h group, const void* send_buffer,
                                         void* recv_buffer, uint64_t count,
                                         ucg_datatype_t datatype) {
    const ucg_coll_params_t params =
        ucg_allgather_params(send_buffer, recv_buffer, count, datatype);
    return ucg_coll_run(group, &params);
}

/** Sends a block from each rank to each rank. `count`: elements of one block. */
static inline ucg_coll_params_t ucg_alltoall_params(const void* send_buffer, void* recv_buffer,
                                                    uint64_t count, ucg_datatype_t datatype) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_ALLTOALL, send_buffer, recv_buffer, count, datatype);
    return params;
}

static inline ucg_status_t ucg_alltoall(ucg_group_h group, const void* send_buffer,
                                        void* recv_buffer, uint64_t count,
                                        ucg_datatype_t datatype) {
    const ucg_coll_params_t params = ucg_alltoall_params(send_buffer, recv_buffer, count, datatype);
    return ucg_coll_run(group, &params);
}

/** Gathers the blocks of all ranks at the root. `count`: elements of one rank's block. */
static inline ucg_coll_params_t ucg_gather_params(const void* send_buffer, void* recv_buffer,
                                                  uint64_t count, ucg_datatype_t datatype,
                                                  uint32_t root) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_GATHER, send_buffer, recv_buffer, count, datatype);
    params.root = root;
    return params;
}

static inline ucg_status_t ucg_gather(ucg_group_h group, const void* send_buffer, void* recv_buffer,
                                      uint64_t count, ucg_datatype_t datatype, uint32_t root) {
    const ucg_coll_params_t params =
        ucg_gather_params(send_buffer, recv_buffer, count, datatype, root);
    return ucg_coll_run(group, &params);
}

/** Scatters the root's blocks to all ranks. `count`: elements of one rank's block. */
static inline ucg_coll_params_t ucg_scatter_params(const void* send_buffer, void* recv_buffer,
                                                   uint64_t count, ucg_datatype_t datatype,
                                                   uint32_t root) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_SCATTER, send_buffer, recv_buffer, count, datatype);
    params.flags = recv_buffer == ucg_in_place ? UCG_COLL_FLAG_IN_PLACE : 0;
    params.root = root;
    return params;
}

static inline ucg_status_t ucg_scatter(ucg_group_h group, const void* send_buffer,
                                       void* recv_buffer, uint64_t count, ucg_datatype_t datatype,
                                       uint32_t root) {
    const ucg_coll_params_t params =
        ucg_scatter_params(send_buffer, recv_buffer, count, datatype, root);
    return ucg_coll_run(group, &params);
}

/** Reduces vectors that have a block for each rank, which receives the result of its block.
 *  `count`: elements of one rank's block. */
static inline ucg_coll_params_t ucg_reduce_scatter_block_params(const void* send_buffer,
                                                                void* recv_buffer, uint64_t count,
                                                                ucg_datatype_t datatype,
                                                                ucg_op_t op) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_REDUCE_SCATTER_BLOCK, send_buffer, recv_buffer, count, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.op = op;
    return params;
}

static inline ucg_status_t ucg_reduce_scatter_block(ucg_group_h group, const void* send_buffer,
                                                    void* recv_buffer, uint64_t count,
                                                    ucg_datatype_t datatype, ucg_op_t op) {
    const ucg_coll_params_t params =
        ucg_reduce_scatter_block_params(send_buffer, recv_buffer, count, datatype, op);
    return ucg_coll_run(group, &params);
}

/** Gathers blocks on every rank, of each rank's own length; displacements are in elements. */
static inline ucg_coll_params_t ucg_allgatherv_params(const void* send_buffer, void* recv_buffer,
                                                      const uint64_t* recv_counts,
                                                      const int64_t* recv_displs,
                                                      ucg_datatype_t datatype) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_ALLGATHERV, send_buffer, recv_buffer, 0, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
    params.recv_counts = recv_counts;
    params.recv_displs = recv_displs;
    return params;
}

static inline ucg_status_t ucg_allgatherv(ucg_group_h group, const void* send_buffer,
                                          void* recv_buffer, const uint64_t* recv_counts,
                                          const int64_t* recv_displs, ucg_datatype_t datatype) {
    const ucg_coll_params_t params =
        ucg_allgatherv_params(send_buffer, recv_buffer, recv_counts, recv_displs, datatype);
    return ucg_coll_run(group, &params);
}

/** Sends a block from each rank to each rank, each of its own length; displacements are in
 *  elements. */
static inline ucg_coll_params_t
ucg_alltoallv_params(const void* send_buffer, const uint64_t* send_counts,
                     const int64_t* send_displs, void* recv_buffer, const uint64_t* recv_counts,
                     const int64_t* recv_displs, ucg_datatype_t datatype) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_ALLTOALLV, send_buffer, recv_buffer, 0, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
    params.send_counts = send_counts;
    params.send_displs = send_displs;
    params.recv_counts = recv_counts;
    params.recv_displs = recv_displs;
    return params;
}

static inline ucg_status_t ucg_alltoallv(ucg_group_h group, const void* send_buffer,
                                         const uint64_t* send_counts, const int64_t* send_displs,
                                         void* recv_buffer, const uint64_t* recv_counts,
                                         const int64_t* recv_displs, ucg_datatype_t datatype) {
    const ucg_coll_params_t params = ucg_alltoallv_params(
        send_buffer, send_counts, send_displs, recv_buffer, recv_counts, recv_displs, datatype);
    return ucg_coll_run(group, &params);
}

/** Gathers blocks of each rank's own length at the root. `count`: elements of the caller's own
 *  block; the vectors are read at the root alone. */
static inline ucg_coll_params_t ucg_gatherv_params(const void* send_buffer, uint64_t count,
                                                   void* recv_buffer, const uint64_t* recv_counts,
                                                   const int64_t* recv_displs,
                                                   ucg_datatype_t datatype, uint32_t root) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_GATHERV, send_buffer, recv_buffer, count, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
    params.root = root;
    params.recv_counts = recv_counts;
    params.recv_displs = recv_displs;
    return params;
}

static inline ucg_status_t ucg_gatherv(ucg_group_h group, const void* send_buffer, uint64_t count,
                                       void* recv_buffer, const uint64_t* recv_counts,
                                       const int64_t* recv_displs, ucg_datatype_t datatype,
                                       uint32_t root) {
    const ucg_coll_params_t params = ucg_gatherv_params(send_buffer, count, recv_buffer,
                                                        recv_counts, recv_displs, datatype, root);
    return ucg_coll_run(group, &params);
}

/** Scatters the root's blocks, of each rank's own length. `count`: elements of the caller's own
 *  block; the vectors are read at the root alone. */
static inline ucg_coll_params_t ucg_scatterv_params(const void* send_buffer,
                                                    const uint64_t* send_counts,
                                                    const int64_t* send_displs, void* recv_buffer,
                                                    uint64_t count, ucg_datatype_t datatype,
                                                    uint32_t root) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_SCATTERV, send_buffer, recv_buffer, count, datatype);
    params.flags = recv_buffer == ucg_in_place ? UCG_COLL_FLAG_IN_PLACE : 0;
    params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
    params.root = root;
    params.send_counts = send_counts;
    params.send_displs = send_displs;
    return params;
}

static inline ucg_status_t ucg_scatterv(ucg_group_h group, const void* send_buffer,
                                        const uint64_t* send_counts, const int64_t* send_displs,
                                        void* recv_buffer, uint64_t count, ucg_datatype_t datatype,
                                        uint32_t root) {
    const ucg_coll_params_t params = ucg_scatterv_params(send_buffer, send_counts, send_displs,
                                                         recv_buffer, count, datatype, root);
    return ucg_coll_run(group, &params);
}

/** Reduces vectors that have a block for each rank, which receives the result of its block.
 *  `recv_counts`: elements of each rank's block, the same on every rank. */
static inline ucg_coll_params_t ucg_reduce_scatter_params(const void* send_buffer,
                                                          void* recv_buffer,
                                                          const uint64_t* recv_counts,
                                                          ucg_datatype_t datatype, ucg_op_t op) {
    ucg_coll_params_t params =
        ucg_short_params(UCG_COLL_REDUCE_SCATTER, send_buffer, recv_buffer, 0, datatype);
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE | UCG_COLL_PARAM_FIELD_VECTORS;
    params.op = op;
    params.recv_counts = recv_counts;
    return params;
}

static inline ucg_status_t ucg_reduce_scatter(ucg_group_h group, const void* send_buffer,
                                              void* recv_buffer, const uint64_t* recv_counts,
                                              ucg_datatype_t datatype, ucg_op_t op) {
    const ucg_coll_params_t params =
        ucg_reduce_scatter_params(send_buffer, recv_buffer, recv_counts, datatype, op);
    return ucg_coll_run(group, &params);
}

#ifdef __cplusplus
}
#endif

#endif
