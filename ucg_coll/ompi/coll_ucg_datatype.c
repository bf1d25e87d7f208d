/*
 * Datatypes: how a user's buffer becomes the packed bytes that messages carry, and back. A buffer
 * whose bytes lie in that order already is used where it is; every other one is packed by Open
 * MPI's convertor on this rank alone, so that layouts never show on the wire.
 */
#include <stdlib.h>
#include <sys/uio.h>

#include "coll_ucg.h"

/* ------------------------------------------------------------------ scratch */

enum { kScratchAlignment = 64, kScratchLeast = 4096 };

void* coll_ucg_scratch_get(coll_ucg_scratch_t* scratch, size_t bytes) {
    if (OPAL_LIKELY(bytes <= scratch->capacity && NULL != scratch->base)) {
        return scratch->base;
    }
    coll_ucg_scratch_free(scratch);
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

void coll_ucg_scratch_free(coll_ucg_scratch_t* scratch) {
    free(scratch->base);
    scratch->base = NULL;
    scratch->capacity = 0;
}

static void trim(coll_ucg_scratch_t* scratch) {
    if (scratch->capacity > COLL_UCG_SCRATCH_KEPT) {
        coll_ucg_scratch_free(scratch);
    }
}

void coll_ucg_scratch_trim(mca_coll_ucg_module_t* module) {
    trim(&module->send);
    trim(&module->receive);
    trim(&module->left);
    trim(&module->right);
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

ucg_status_t coll_ucg_open_packed(coll_ucg_buffer_t* buffer, coll_ucg_scratch_t* scratch) {
    buffer->packed =
        coll_ucg_scratch_get(scratch, coll_ucg_packed_bytes(buffer->type, buffer->count));
    return NULL != buffer->packed ? UCG_OK : UCG_ERR_NO_MEMORY;
}

ucg_status_t coll_ucg_load_packed(const coll_ucg_buffer_t* buffer, size_t first, size_t count) {
    return coll_ucg_pack(coll_ucg_at(buffer->user, buffer->type, (ptrdiff_t)first), count,
                         buffer->type, buffer->packed + coll_ucg_packed_bytes(buffer->type, first));
}

ucg_status_t coll_ucg_store_packed(const coll_ucg_buffer_t* buffer) {
    return coll_ucg_unpack(buffer->user, buffer->count, buffer->type, buffer->packed);
}

/* ------------------------------------------------------------------ blocks of many ranks */

static const ompi_datatype_t* block_type(const coll_ucg_blocks_t* blocks, int index) {
    return NULL != blocks->types ? blocks->types[index] : blocks->type;
}

/** Bytes from the start of the user's buffer to the lower bound of a block's first element. */
static ptrdiff_t block_displacement(const coll_ucg_blocks_t* blocks, int index) {
    const ptrdiff_t unit = NULL != blocks->types ? 1 : coll_ucg_extent(blocks->type);
    return unit * blocks->displs[index];
}

/** Blocks where they lie in the user's memory. False if one of them does not lie there as a message
 *  carries it. */
static bool lay_out_in_place(coll_ucg_blocks_t* blocks) {
    uint64_t* const lengths = blocks->bytes;
    int64_t* const offsets = blocks->offsets;
    const int size = blocks->size;
    for (int i = 0; i < size; i++) {
        const ompi_datatype_t* type = block_type(blocks, i);
        const size_t count = (size_t)blocks->counts[i];
        if (!coll_ucg_is_dense(type, count)) {
            return false;
        }
        const size_t bytes = coll_ucg_packed_bytes(type, count);
        lengths[i] = bytes;
        offsets[i] = 0 == bytes ? 0 : block_displacement(blocks, i) + type->super.true_lb;
    }
    return true;
}

/** Blocks one after the other in scratch. Returns the sum of lengths. */
static size_t lay_out_in_scratch(coll_ucg_blocks_t* blocks) {
    size_t sum = 0;
    for (int i = 0; i < blocks->size; i++) {
        blocks->bytes[i] = coll_ucg_packed_bytes(block_type(blocks, i), (size_t)blocks->counts[i]);
        blocks->offsets[i] = (int64_t)sum;
        sum += blocks->bytes[i];
    }
    return sum;
}

/** Blocks as vectors in bytes. `which` (0 or 1) chooses the part of the module's vectors to use. */
static ucg_status_t open_in_bytes(coll_ucg_blocks_t* blocks, mca_coll_ucg_module_t* module,
                                  int which) {
    const size_t size = (size_t)blocks->size;
    uint64_t* vectors = coll_ucg_scratch_get(&module->vectors, 4 * size * sizeof *vectors);
    if (NULL == vectors) {
        return UCG_ERR_NO_MEMORY;
    }
    blocks->bytes = vectors + 2 * size * (size_t)which;
    blocks->offsets = (int64_t*)(blocks->bytes + size);
    blocks->direct = lay_out_in_place(blocks);
    blocks->packed = blocks->user;
    if (!blocks->direct) {
        coll_ucg_scratch_t* scratch = 0 == which ? &module->send : &module->receive;
        blocks->packed = coll_ucg_scratch_get(scratch, lay_out_in_scratch(blocks));
    }
    return blocks->direct || NULL != blocks->packed ? UCG_OK : UCG_ERR_NO_MEMORY;
}

static void open_where_they_are(coll_ucg_blocks_t* blocks) {
    blocks->direct = true;
    blocks->packed = (unsigned char*)blocks->user + blocks->type->super.true_lb;
}

ucg_status_t coll_ucg_open_send_blocks(coll_ucg_blocks_t* blocks, mca_coll_ucg_module_t* module,
                                       ucg_coll_params_t* params) {
    ucg_status_t status = UCG_OK;
    if (coll_ucg_has_own_vectors(params)) {
        open_where_they_are(blocks);
        params->int_send_counts = blocks->counts;
        params->int_send_displs = blocks->displs;
    } else {
        status = open_in_bytes(blocks, module, 0);
        params->send_counts = blocks->bytes;
        params->send_displs = blocks->offsets;
    }
    params->send_buffer = blocks->packed;
    return status;
}

ucg_status_t coll_ucg_open_receive_blocks(coll_ucg_blocks_t* blocks, mca_coll_ucg_module_t* module,
                                          ucg_coll_params_t* params) {
    ucg_status_t status = UCG_OK;
    if (coll_ucg_has_own_vectors(params)) {
        open_where_they_are(blocks);
        params->int_recv_counts = blocks->counts;
        params->int_recv_displs = blocks->displs;
    } else {
        status = open_in_bytes(blocks, module, 1);
        params->recv_counts = blocks->bytes;
        params->recv_displs = blocks->offsets;
    }
    params->recv_buffer = blocks->packed;
    return status;
}

ucg_status_t coll_ucg_load_packed_block(coll_ucg_blocks_t* blocks, int index) {
    if (0 == blocks->bytes[index]) {
        return UCG_OK;
    }
    return coll_ucg_pack((unsigned char*)blocks->user + block_displacement(blocks, index),
                         (size_t)blocks->counts[index], block_type(blocks, index),
                         blocks->packed + blocks->offsets[index]);
}

ucg_status_t coll_ucg_load_packed_blocks(coll_ucg_blocks_t* blocks) {
    ucg_status_t status = UCG_OK;
    for (int i = 0; i < blocks->size && UCG_OK == status; i++) {
        status = coll_ucg_load_packed_block(blocks, i);
    }
    return status;
}

static ucg_status_t store_block(coll_ucg_blocks_t* blocks, int index) {
    if (0 == blocks->bytes[index]) {
        return UCG_OK;
    }
    return coll_ucg_unpack((unsigned char*)blocks->user + block_displacement(blocks, index),
                           (size_t)blocks->counts[index], block_type(blocks, index),
                           blocks->packed + blocks->offsets[index]);
}

ucg_status_t coll_ucg_store_packed_blocks(coll_ucg_blocks_t* blocks) {
    ucg_status_t status = UCG_OK;
    for (int i = 0; i < blocks->size && UCG_OK == status; i++) {
        status = store_block(blocks, i);
    }
    return status;
}
