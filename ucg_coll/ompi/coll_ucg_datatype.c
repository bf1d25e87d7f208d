/*
 * Datatypes: how a user's buffer becomes the packed bytes that messages carry, and back. A buffer
 * whose bytes lie in that order already is used where it is; every other one is packed by Open
 * MPI's convertor on this rank alone, so that layouts never show on the wire.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "coll_ucg_call.h"

/* ------------------------------------------------------------------ scratch */

enum { kScratchAlignment = 64, kScratchLeast = 4096 };

static void scratch_free(coll_ucg_scratch_t* scratch) {
    free(scratch->base);
    scratch->base = NULL;
    scratch->capacity = 0;
}

void* coll_ucg_scratch_get(coll_ucg_scratch_t* scratch, size_t bytes) {
    if (OPAL_LIKELY(bytes <= scratch->capacity && NULL != scratch->base)) {
        return scratch->base;
    }
    scratch_free(scratch);
    size_t capacity = kScratchLeast;
    while (capacity < bytes && capacity < COLL_UCG_SCRATCH_KEPT) {
        capacity *= 2;
    }
    if (capacity < bytes) {
        capacity = (bytes + kScratchAlignment - 1) & ~(size_t)(kScratchAlignment - 1);
    }
    void* base = NULL;
    if (capacity < bytes || 0 != posix_memalign(&base, kScratchAlignment, capacity)) {
        return NULL;
    }
    scratch->base = base;
    scratch->capacity = capacity;
    return base;
}

/** Frees the scratch if it is of unusual size. Returns how many bytes are left of it. */
static size_t trim(coll_ucg_scratch_t* scratch) {
    if (scratch->capacity > COLL_UCG_SCRATCH_KEPT) {
        scratch_free(scratch);
    }
    return scratch->capacity;
}

/** What all workspaces keep. */
static atomic_size_t kept_in_all;

bool coll_ucg_workspace_trim(coll_ucg_workspace_t* workspace) {
    const size_t kept = trim(&workspace->send) + trim(&workspace->receive) +
                        trim(&workspace->left) + trim(&workspace->right) +
                        trim(&workspace->vectors);
    const size_t more = kept - workspace->kept; /* Modulo 2^64: it may be less. */
    workspace->kept = kept;
    if (atomic_fetch_add(&kept_in_all, more) + more <= COLL_UCG_KEPT_IN_ALL) {
        return true;
    }
    coll_ucg_workspace_free(workspace);
    return false;
}

void coll_ucg_workspace_free(coll_ucg_workspace_t* workspace) {
    scratch_free(&workspace->send);
    scratch_free(&workspace->receive);
    scratch_free(&workspace->left);
    scratch_free(&workspace->right);
    scratch_free(&workspace->vectors);
    (void)atomic_fetch_sub(&kept_in_all, workspace->kept);
    workspace->kept = 0;
}

/* ------------------------------------------------------------------ elements in scratch */

/** Returns where the last of `count` elements lies, from the origin of the first. */
static ptrdiff_t last_of(const ompi_datatype_t* type, size_t count) {
    return 0 != count ? (ptrdiff_t)(count - 1) * coll_ucg_extent(type) : 0;
}

size_t coll_ucg_covered_bytes(const ompi_datatype_t* type, size_t count) {
    const ptrdiff_t last = last_of(type, count);
    return (size_t)(type->super.true_ub - type->super.true_lb) + (size_t)(last < 0 ? -last : last);
}

size_t coll_ucg_bytes_for(const ompi_datatype_t* type, size_t count) {
    return coll_ucg_covered_bytes(type, count) + kScratchAlignment;
}

unsigned char* coll_ucg_origin_in(void* memory, const ompi_datatype_t* type, size_t count) {
    const ptrdiff_t last = last_of(type, count);
    const ptrdiff_t lowest = type->super.true_lb + (last < 0 ? last : 0);
    const uintptr_t origin = (uintptr_t)memory - (uintptr_t)lowest;
    return (unsigned char*)((origin + kScratchAlignment - 1) & ~(uintptr_t)(kScratchAlignment - 1));
}

/* ------------------------------------------------------------------ packing */

/** Runs a prepared convertor over all of `bytes` bytes at `packed`. */
static ucg_status_t convert(opal_convertor_t* convertor, void* packed, size_t bytes, bool pack) {
    size_t done = 0;
    while (done < bytes) {
        struct iovec piece = {(unsigned char*)packed + done, bytes - done};
        uint32_t pieces = 1;
        size_t moved = bytes - done;
        const int32_t rc = pack ? opal_convertor_pack(convertor, &piece, &pieces, &moved)
                                : opal_convertor_unpack(convertor, &piece, &pieces, &moved);
        if (rc < 0 || 0 == moved) {
            return UCG_ERR_INTERNAL;
        }
        done += moved;
    }
    return UCG_OK;
}

ucg_status_t coll_ucg_pack(const void* buffer, size_t count, const ompi_datatype_t* type,
                           void* packed) {
    opal_convertor_t convertor;
    ucg_status_t status = UCG_ERR_INTERNAL;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    if (OPAL_SUCCESS == opal_convertor_copy_and_prepare_for_send(
                            ompi_mpi_local_convertor, &type->super, count, buffer, 0, &convertor)) {
        status = convert(&convertor, packed, coll_ucg_packed_bytes(type, count), true);
    }
    OBJ_DESTRUCT(&convertor);
    return status;
}

ucg_status_t coll_ucg_unpack(void* buffer, size_t count, const ompi_datatype_t* type,
                             const void* packed) {
    opal_convertor_t convertor;
    ucg_status_t status = UCG_ERR_INTERNAL;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    if (OPAL_SUCCESS == opal_convertor_copy_and_prepare_for_recv(
                            ompi_mpi_local_convertor, &type->super, count, buffer, 0, &convertor)) {
        status = convert(&convertor, (void*)packed, coll_ucg_packed_bytes(type, count), false);
    }
    OBJ_DESTRUCT(&convertor);
    return status;
}

/* ------------------------------------------------------------------ one buffer */

ucg_status_t coll_ucg_refuse_own_block(const coll_ucg_call_t* call, size_t sent, size_t received) {
    opal_output(0,
                "coll/ucg: %s: %s: rank %d sends %zu bytes to itself, and receives %zu: by MPI the "
                "two must be equal",
                call->module->comm->c_name, ucg_coll_type_string(call->params.type),
                coll_ucg_rank(call), sent, received);
    return UCG_ERR_DISAGREEMENT;
}

ucg_status_t coll_ucg_open_packed(coll_ucg_data_t* data, coll_ucg_scratch_t* scratch,
                                  size_t count) {
    data->packed = coll_ucg_scratch_get(scratch, coll_ucg_packed_bytes(data->type, count));
    return NULL != data->packed ? UCG_OK : UCG_ERR_NO_MEMORY;
}

static ucg_status_t load_elements(const coll_ucg_data_t* data) {
    const ptrdiff_t origin = (ptrdiff_t)data->load_first * coll_ucg_extent(data->type);
    return coll_ucg_pack(coll_ucg_at(data->user, origin), data->load_count, data->type,
                         data->packed + coll_ucg_packed_bytes(data->type, data->load_first));
}

/* ------------------------------------------------------------------ blocks of many ranks */

static const ompi_datatype_t* block_type(const coll_ucg_data_t* data, size_t index) {
    return NULL != data->types ? data->types[index] : data->type;
}

/** Returns the bytes from the start of the user's buffer to the origin of a block's first
 *  element. */
static ptrdiff_t block_displacement(const coll_ucg_data_t* data, size_t index) {
    if (NULL != data->places) {
        return data->places[index];
    }
    const ptrdiff_t unit = NULL != data->types ? 1 : coll_ucg_extent(data->type);
    return unit * coll_ucg_displ_at(data->displs, index);
}

/** Lays out the blocks where they lie in the user's memory. Returns false if one of them does not
 *  lie there as a message carries it. */
static bool lay_out_in_place(coll_ucg_data_t* data) {
    uint64_t* const lengths = data->bytes;
    int64_t* const offsets = data->offsets;
    const size_t size = (size_t)data->size;
    for (size_t i = 0; i < size; i++) {
        const ompi_datatype_t* type = block_type(data, i);
        const size_t count = coll_ucg_count_at(data->counts, i);
        if (!coll_ucg_is_dense(type, count)) {
            return false;
        }
        const size_t bytes = coll_ucg_packed_bytes(type, count);
        lengths[i] = bytes;
        offsets[i] = 0 == bytes ? 0 : block_displacement(data, i) + type->super.true_lb;
    }
    return true;
}

/** Lays out the blocks one after the other in scratch. Returns the sum of their lengths in
 *  bytes. */
static size_t lay_out_in_scratch(coll_ucg_data_t* data) {
    size_t sum = 0;
    for (size_t i = 0; i < (size_t)data->size; i++) {
        data->bytes[i] =
            coll_ucg_packed_bytes(block_type(data, i), coll_ucg_count_at(data->counts, i));
        data->offsets[i] = (int64_t)sum;
        sum += data->bytes[i];
    }
    return sum;
}

ucg_status_t coll_ucg_lay_out_blocks(coll_ucg_data_t* data, coll_ucg_scratch_t* scratch) {
    data->direct = lay_out_in_place(data);
    data->packed = data->user;
    if (!data->direct) {
        data->packed = coll_ucg_scratch_get(scratch, lay_out_in_scratch(data));
    }
    return data->direct || NULL != data->packed ? UCG_OK : UCG_ERR_NO_MEMORY;
}

/** Copies counts and displacements of blocks that are packed and unpacked after the function of a
 *  nonblocking call has returned; coll_ucg_arguments_t says what may have changed them by then. */
static void keep_vectors(coll_ucg_data_t* data, uint64_t* memory) {
    const size_t size = (size_t)data->size;
    coll_ucg_entries_t counts = coll_ucg_counts_entries(data->counts);
    coll_ucg_entries_t displs = coll_ucg_displs_entries(data->displs);
    counts.data = memcpy(memory, counts.data, size * counts.width);
    displs.data = memcpy(memory + size, displs.data, size * displs.width);
    data->counts = coll_ucg_counts_of(counts);
    data->displs = coll_ucg_displs_of(displs);
}

enum { kWordsOfBlock = 5 }; /* Length, offset, datatype, count and displacement. */

/**
 * Opens blocks as vectors in bytes. `which` (0: send, 1: receive) chooses the part of the
 * workspace's vectors to use. Datatypes are copied: Fortran's bindings make an array of them for
 * the duration of the call.
 */
static ucg_status_t open_in_bytes(coll_ucg_data_t* data, coll_ucg_workspace_t* workspace,
                                  int which) {
    const size_t size = (size_t)data->size;
    uint64_t* vectors =
        coll_ucg_scratch_get(&workspace->vectors, 2 * kWordsOfBlock * size * sizeof *vectors);
    if (NULL == vectors) {
        return UCG_ERR_NO_MEMORY;
    }
    data->bytes = vectors + kWordsOfBlock * size * (size_t)which;
    data->offsets = (int64_t*)(data->bytes + size);
    if (NULL != data->types) {
        struct ompi_datatype_t** types = (struct ompi_datatype_t**)(data->offsets + size);
        memcpy(types, data->types, size * sizeof *types);
        data->types = types;
    }
    const ucg_status_t status =
        coll_ucg_lay_out_blocks(data, 0 == which ? &workspace->send : &workspace->receive);
    if (!data->direct) {
        keep_vectors(data, data->bytes + 3 * size);
    }
    return status;
}

static void take_blocks(coll_ucg_data_t* data, const coll_ucg_blocks_t* blocks, int size) {
    data->user = (void*)blocks->user;
    data->in_blocks = true;
    data->counts = blocks->counts;
    data->displs = blocks->displs;
    data->places = NULL;
    data->type = blocks->type;
    data->types = blocks->types;
    data->size = size;
    data->load_first = 0;
}

static void open_where_they_are(coll_ucg_data_t* data) {
    data->direct = true;
    data->packed = coll_ucg_at(data->user, data->type->super.true_lb);
}

ucg_status_t coll_ucg_open_send_blocks(coll_ucg_call_t* call, const coll_ucg_blocks_t* blocks) {
    coll_ucg_data_t* data = &call->input;
    ucg_coll_params_t* params = &call->params;
    ucg_status_t status = UCG_OK;
    take_blocks(data, blocks, (int)coll_ucg_size(call));
    data->load_count = (size_t)data->size;
    if (coll_ucg_has_own_vectors(params)) {
        open_where_they_are(data);
        params->int_send_counts = coll_ucg_counts_entries(data->counts).data;
        params->int_send_displs = coll_ucg_displs_entries(data->displs).data;
    } else {
        status = open_in_bytes(data, call->workspace, 0);
        params->send_counts = data->bytes;
        params->send_displs = data->offsets;
    }
    params->send_buffer = data->packed;
    return status;
}

ucg_status_t coll_ucg_open_receive_blocks(coll_ucg_call_t* call, const coll_ucg_blocks_t* blocks) {
    coll_ucg_data_t* data = &call->output;
    ucg_coll_params_t* params = &call->params;
    ucg_status_t status = UCG_OK;
    take_blocks(data, blocks, (int)coll_ucg_size(call));
    data->load_count = 0;
    data->store_count = (size_t)data->size;
    if (coll_ucg_has_own_vectors(params)) {
        open_where_they_are(data);
        params->int_recv_counts = coll_ucg_counts_entries(data->counts).data;
        params->int_recv_displs = coll_ucg_displs_entries(data->displs).data;
    } else {
        status = open_in_bytes(data, call->workspace, 1);
        params->recv_counts = data->bytes;
        params->recv_displs = data->offsets;
    }
    params->recv_buffer = data->packed;
    return status;
}

static ucg_status_t load_block(const coll_ucg_data_t* data, size_t index) {
    if (0 == data->bytes[index]) {
        return UCG_OK;
    }
    return coll_ucg_pack(coll_ucg_at(data->user, block_displacement(data, index)),
                         coll_ucg_count_at(data->counts, index), block_type(data, index),
                         data->packed + data->offsets[index]);
}

static ucg_status_t store_block(const coll_ucg_data_t* data, size_t index) {
    if (0 == data->bytes[index]) {
        return UCG_OK;
    }
    return coll_ucg_unpack(coll_ucg_at(data->user, block_displacement(data, index)),
                           coll_ucg_count_at(data->counts, index), block_type(data, index),
                           data->packed + data->offsets[index]);
}

/* ------------------------------------------------------------------ before and after a call */

ucg_status_t coll_ucg_load_packed(const coll_ucg_data_t* data) {
    ucg_status_t status = UCG_OK;
    if (!data->in_blocks) {
        return 0 == data->load_count ? UCG_OK : load_elements(data);
    }
    for (size_t i = 0; i < data->load_count && UCG_OK == status; i++) {
        status = load_block(data, data->load_first + i);
    }
    return status;
}

ucg_status_t coll_ucg_store_packed(const coll_ucg_data_t* data) {
    ucg_status_t status = UCG_OK;
    if (!data->in_blocks) {
        return 0 == data->store_count
                   ? UCG_OK
                   : coll_ucg_unpack(data->user, data->store_count, data->type, data->packed);
    }
    for (size_t i = 0; i < data->store_count && UCG_OK == status; i++) {
        status = store_block(data, i);
    }
    return status;
}
