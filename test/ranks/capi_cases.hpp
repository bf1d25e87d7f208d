// Calls of every collective of the C API with data whose results are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ucg/ucg.h"

namespace ucg::test {

struct CollectiveCase {
    CollectiveCase(unsigned of_rank, unsigned of_size, unsigned of_root, std::size_t elements,
                   bool in_place_)
        : rank(of_rank), size(of_size), root(of_root), count(elements), in_place(in_place_) {}

    unsigned rank;
    unsigned size;
    unsigned root;
    std::size_t count; // The number of elements of a block or vector.
    bool in_place;
    ucg_coll_params_t params = {};
    std::vector<std::int64_t> send, receive, expected;
    std::vector<std::uint64_t> counts;
    std::vector<std::int64_t> displs;
    // On a ring they are down and up, and from above and from below.
    std::vector<int> destinations, sources;
    ucg_neighbors_t neighbors = {};
};

/// Turns the case into a call of that collective.
void fill(CollectiveCase& c, ucg_coll_type_t type);

/// Is the result what it should be?
bool right(const CollectiveCase& c);

} // namespace ucg::test
