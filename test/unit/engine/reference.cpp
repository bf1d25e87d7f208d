#include "test/unit/engine/reference.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "ucg_coll/base/base.hpp"

namespace ucg::test {
namespace {

using graph::Collective;
using graph::Request;

struct Affine {
    std::uint32_t factor = 1;
    std::uint32_t term = 0;
};
static_assert(sizeof(Affine) == kElementBytes);

Affine load(const std::byte* from) {
    Affine element;
    std::memcpy(&element, from, sizeof(element));
    return element;
}

std::size_t at(Rank rank) {
    return static_cast<std::size_t>(rank);
}

Bytes random_bytes(std::uint64_t bytes, const Request& request, std::mt19937_64& random) {
    Bytes data(bytes);
    for (std::size_t i = 0; i < data.size(); i += sizeof(std::uint64_t)) {
        const std::uint64_t drawn = random();
        std::memcpy(&data[i], &drawn, std::min(sizeof(drawn), data.size() - i));
    }
    for (std::size_t i = 0; graph::reduces(request.collective) && i < data.size(); i += 8) {
        Affine element = load(&data[i]);
        element.factor = request.commutative ? 1 : element.factor;
        std::memcpy(&data[i], &element, sizeof(element));
    }
    return data;
}

/// Computes the results from the buffers as they are before the collective.
class Meaning {
  public:
    Meaning(const std::vector<Request>& requests, Reference& reference)
        : requests_(requests), reference_(reference), first_(requests.front()) {}

    void run() {
        reference_.results = reference_.outputs;
        for (Rank rank = 0; rank < first_.rank_count; ++rank) {
            if (graph::reduces(first_.collective)) {
                reduce(rank);
            } else {
                gather(rank);
            }
        }
    }

  private:
    using View = std::span<const std::byte>;

    const Request& request(Rank rank) const { return requests_[at(rank)]; }

    /// The buffer that a rank's contribution lies in.
    const Bytes& source(Rank rank) const {
        return (request(rank).in_place ? reference_.outputs : reference_.inputs)[at(rank)];
    }

    void put(Rank rank, std::uint64_t offset, View data) {
        std::copy(data.begin(), data.end(),
                  reference_.results[at(rank)].begin() + static_cast<std::ptrdiff_t>(offset));
    }

    /// An empty block may have any offset, so the offset is not used.
    static View block_of(View data, const graph::Blocks& blocks, std::size_t index) {
        const std::uint64_t bytes = blocks.bytes[index];
        return bytes == 0 ? View() : data.subspan(blocks.offsets[index], bytes);
    }

    /// What `from` gives to `to` in collectives that only move data.
    View block(Rank from, Rank to) const {
        const Request& r = request(from);
        const View data = source(from);
        const std::uint64_t even = at(from) * r.bytes;
        switch (r.collective) {
        case Collective::bcast: return data.first(r.bytes);
        case Collective::gather:
        case Collective::allgather: return data.subspan(r.in_place ? even : 0, r.bytes);
        case Collective::gatherv:
            return r.in_place ? block_of(data, r.receive, at(from)) : data.first(r.bytes);
        case Collective::allgatherv:
            return r.in_place ? block_of(data, r.receive, at(from))
                              : data.first(r.receive.bytes[at(from)]);
        case Collective::alltoall: return data.subspan(at(to) * r.bytes, r.bytes);
        case Collective::alltoallv: return block_of(data, r.in_place ? r.receive : r.send, at(to));
        case Collective::scatter:
            return View(reference_.inputs[at(from)]).subspan(at(to) * r.bytes, r.bytes);
        case Collective::scatterv:
            return block_of(View(reference_.inputs[at(from)]), r.send, at(to));
        default: return {};
        }
    }

    /// The k-th block that a rank sends to this one is the k-th that this one receives from that
    /// rank.
    void take_from_neighbors(Rank rank) {
        const graph::Blocks& taken = request(rank).receive;
        // For each rank, the place from which to look on.
        std::vector<std::size_t> next(requests_.size(), 0);
        for (std::size_t i = 0; i < taken.peers.size(); ++i) {
            const Rank from = taken.peers[i];
            const graph::Blocks& sent = request(from).send;
            std::size_t& place = next[at(from)];
            while (sent.peers[place] != rank) {
                ++place;
            }
            put(rank, taken.offsets[i], block_of(source(from), sent, place));
            ++place;
        }
    }

    void gather(Rank rank) {
        const Request& r = request(rank);
        if (r.collective == Collective::neighbor_alltoallv) {
            take_from_neighbors(rank);
            return;
        }
        const bool scatters =
            r.collective == Collective::scatter || r.collective == Collective::scatterv;
        if (r.collective == Collective::barrier || (scatters && r.in_place) ||
            (r.collective == Collective::bcast && rank == r.root)) {
            return;
        }
        if (scatters || r.collective == Collective::bcast) {
            put(rank, 0, block(r.root, rank));
        } else if (!graph::rooted(r.collective) || rank == r.root) {
            for (Rank from = 0; from < r.rank_count; ++from) {
                const std::uint64_t offset = graph::has_block_vectors(r.collective)
                                                 ? r.receive.offsets[at(from)]
                                                 : at(from) * r.bytes;
                put(rank, offset, block(from, rank));
            }
        }
    }

    /// Bytes [offset, offset + bytes) of the contributions of ranks 0 .. count - 1, combined in
    /// rank order.
    Bytes combined(Rank count, std::uint64_t offset, std::uint64_t bytes) const {
        Bytes total(bytes);
        std::vector<const std::byte*> operands;
        for (Rank rank = 0; rank < count; ++rank) {
            operands.push_back(source(rank).data() + offset);
        }
        compose(nullptr, operands.data(), operands.size(), total.data(), bytes);
        return total;
    }

    void reduce(Rank rank) {
        const Request& r = request(rank);
        const Rank all = r.rank_count;
        switch (r.collective) {
        case Collective::reduce:
            if (rank == r.root) {
                put(rank, 0, combined(all, 0, r.bytes));
            }
            return;
        case Collective::allreduce: put(rank, 0, combined(all, 0, r.bytes)); return;
        case Collective::scan: put(rank, 0, combined(rank + 1, 0, r.bytes)); return;
        case Collective::exscan:
            if (rank > 0) {
                put(rank, 0, combined(rank, 0, r.bytes));
            }
            return;
        case Collective::reduce_scatter_block:
            put(rank, 0, combined(all, at(rank) * r.bytes, r.bytes));
            return;
        case Collective::reduce_scatter: {
            std::uint64_t offset = 0;
            for (Rank before = 0; before < rank; ++before) {
                offset += r.receive.bytes[at(before)];
            }
            put(rank, 0, combined(all, offset, r.receive.bytes[at(rank)]));
            return;
        }
        default: return;
        }
    }

    const std::vector<Request>& requests_;
    Reference& reference_;
    const Request& first_;
};

} // namespace

void compose(void* /*context*/, const std::byte* const* operands, std::size_t operand_count,
             std::byte* target, std::size_t bytes) {
    UCG_ASSERT(bytes % kElementBytes == 0);
    for (std::size_t i = 0; i < bytes; i += kElementBytes) {
        Affine total;
        for (std::size_t k = 0; k < operand_count; ++k) {
            const Affine next = load(operands[k] + i);
            total = {total.factor * next.factor, total.factor * next.term + total.term};
        }
        std::memcpy(target + i, &total, sizeof(total));
    }
}

Reference make_reference(const std::vector<Request>& requests, std::mt19937_64& random) {
    Reference reference;
    for (const Request& request : requests) {
        const auto rank = static_cast<Rank>(reference.inputs.size());
        const graph::BufferSizes sizes = graph::buffer_sizes(request, rank);
        reference.inputs.push_back(random_bytes(sizes.input, request, random));
        reference.outputs.push_back(random_bytes(sizes.output, request, random));
    }
    Meaning(requests, reference).run();
    return reference;
}

} // namespace ucg::test
