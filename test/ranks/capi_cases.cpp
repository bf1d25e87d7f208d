#include "test/ranks/capi_cases.hpp"

#include <algorithm>

namespace ucg::test {
namespace {

/// The value that rank `from` contributes at `index` of block `block`.
std::int64_t value(unsigned from, unsigned block, std::size_t index) {
    return static_cast<std::int64_t>(from * 1000003ULL + block * 1009ULL + index * 7ULL + 1);
}

/// On a ring, the first block goes to the rank below, the second to the rank above.
void add_ring(CollectiveCase& c) {
    const int above = static_cast<int>((c.rank + 1) % c.size);
    const int below = static_cast<int>((c.rank + c.size - 1) % c.size);
    c.destinations = {below, above};
    c.sources = {above, below};
    c.neighbors = {c.destinations.data(), c.sources.data(), 2, 2};
    c.params.field_mask |= UCG_COLL_PARAM_FIELD_NEIGHBORS;
    c.params.neighbors = &c.neighbors;
}

std::vector<std::int64_t> from_ring(const CollectiveCase& c) {
    std::vector<std::int64_t> data;
    for (unsigned block = 0; block < 2; ++block) {
        for (std::size_t i = 0; i < c.count; ++i) {
            data.push_back(value(static_cast<unsigned>(c.sources[block]), block, i));
        }
    }
    return data;
}

void base_params(CollectiveCase& c, ucg_coll_type_t type) {
    c.params = {};
    c.params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE | UCG_COLL_PARAM_FIELD_VECTORS;
    c.params.type = type;
    c.params.root = c.root;
    c.params.count = c.count;
    c.params.element_bytes = sizeof(std::int64_t);
    c.params.datatype = UCG_DT_INT64;
    c.params.op = UCG_OP_SUM;
    const unsigned blocks = std::max(c.size, 2U); // A ring has two neighbours.
    c.counts.assign(blocks, c.count);
    c.displs.clear();
    for (unsigned i = 0; i < blocks; ++i) {
        c.displs.push_back(static_cast<std::int64_t>(i * c.count));
    }
    c.params.send_counts = c.params.recv_counts = c.counts.data();
    c.params.send_displs = c.params.recv_displs = c.displs.data();
    if (type == UCG_COLL_NEIGHBOR_ALLTOALLV) {
        add_ring(c);
    }
}

std::vector<std::int64_t> blocks_from(unsigned from, unsigned blocks, std::size_t count) {
    std::vector<std::int64_t> data;
    for (unsigned block = 0; block < blocks; ++block) {
        for (std::size_t i = 0; i < count; ++i) {
            data.push_back(value(from, block, i));
        }
    }
    return data;
}

/// Block `block` of the sum over ranks [0, ranks).
std::vector<std::int64_t> summed(unsigned ranks, unsigned block, std::size_t count) {
    std::vector<std::int64_t> data(count, 0);
    for (unsigned rank = 0; rank < ranks; ++rank) {
        for (std::size_t i = 0; i < count; ++i) {
            data[i] += value(rank, block, i);
        }
    }
    return data;
}

/// Block `block` of all ranks, one after another.
std::vector<std::int64_t> gathered(unsigned size, unsigned block, std::size_t count) {
    std::vector<std::int64_t> data;
    for (unsigned rank = 0; rank < size; ++rank) {
        for (std::size_t i = 0; i < count; ++i) {
            data.push_back(value(rank, block, i));
        }
    }
    return data;
}

bool sends_blocks(ucg_coll_type_t type) {
    return type == UCG_COLL_ALLTOALL || type == UCG_COLL_ALLTOALLV || type == UCG_COLL_SCATTER ||
           type == UCG_COLL_SCATTERV || type == UCG_COLL_REDUCE_SCATTER ||
           type == UCG_COLL_REDUCE_SCATTER_BLOCK;
}

std::vector<std::int64_t> expectation(const CollectiveCase& c, ucg_coll_type_t type) {
    const bool root = c.rank == c.root;
    switch (type) {
    case UCG_COLL_BCAST: return blocks_from(c.root, 1, c.count);
    case UCG_COLL_REDUCE: return root ? summed(c.size, 0, c.count) : std::vector<std::int64_t>();
    case UCG_COLL_ALLREDUCE: return summed(c.size, 0, c.count);
    case UCG_COLL_SCAN: return summed(c.rank + 1, 0, c.count);
    case UCG_COLL_EXSCAN:
        return c.rank > 0 ? summed(c.rank, 0, c.count) : std::vector<std::int64_t>();
    case UCG_COLL_ALLGATHER:
    case UCG_COLL_ALLGATHERV: return gathered(c.size, 0, c.count);
    case UCG_COLL_GATHER:
    case UCG_COLL_GATHERV: return root ? gathered(c.size, 0, c.count) : std::vector<std::int64_t>();
    case UCG_COLL_ALLTOALL:
    case UCG_COLL_ALLTOALLV: return gathered(c.size, c.rank, c.count);
    case UCG_COLL_SCATTER:
    case UCG_COLL_SCATTERV: {
        std::vector<std::int64_t> data;
        for (std::size_t i = 0; i < c.count; ++i) {
            data.push_back(value(c.root, c.rank, i));
        }
        return data;
    }
    case UCG_COLL_REDUCE_SCATTER:
    case UCG_COLL_REDUCE_SCATTER_BLOCK: return summed(c.size, c.rank, c.count);
    case UCG_COLL_NEIGHBOR_ALLTOALLV: return from_ring(c);
    default: return {};
    }
}

} // namespace

void fill(CollectiveCase& c, ucg_coll_type_t type) {
    base_params(c, type);
    const unsigned blocks = type == UCG_COLL_NEIGHBOR_ALLTOALLV ? 2
                            : sends_blocks(type)                ? c.size
                                                                : 1;
    c.send = blocks_from(c.rank, blocks, c.count);
    c.expected = expectation(c, type);
    c.receive.assign(std::max(c.expected.size(), c.count), -1);
    if (type == UCG_COLL_BCAST && c.rank == c.root) {
        c.receive = c.send;
    }
    const bool allowed = type == UCG_COLL_ALLREDUCE || type == UCG_COLL_SCAN ||
                         type == UCG_COLL_EXSCAN || type == UCG_COLL_ALLTOALL ||
                         type == UCG_COLL_ALLTOALLV || type == UCG_COLL_ALLGATHER ||
                         type == UCG_COLL_ALLGATHERV;
    if (c.in_place && allowed) {
        c.params.flags |= UCG_COLL_FLAG_IN_PLACE;
        if (type == UCG_COLL_ALLGATHER || type == UCG_COLL_ALLGATHERV) {
            std::copy(c.send.begin(), c.send.end(),
                      c.receive.begin() + static_cast<std::ptrdiff_t>(c.rank * c.count));
        } else {
            c.receive = c.send;
        }
    }
    c.params.send_buffer = c.send.data();
    c.params.recv_buffer = c.receive.data();
}

bool right(const CollectiveCase& c) {
    return std::equal(c.expected.begin(), c.expected.end(), c.receive.begin());
}

} // namespace ucg::test
