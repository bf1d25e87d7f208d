// Which reductions combine a message where it arrives, in the transport's memory: the copy to
// scratch that nothing but the reduction would read is left out.
#pragma once

#include <cstdint>

#include "ucg_coll/engine/program.hpp"

namespace ucg::engine {

/// Makes reductions of `program` reduce_parts, where that changes nothing but who reads what when:
/// the reduction comes next after the receive has been posted and waits for nothing else, and
/// nobody else reads those bytes of scratch. Parts of a message are whole cache lines, so elements
/// that do not divide one are left alone.
void combine_where_it_arrives(Program& program, std::uint64_t element_bytes);

} // namespace ucg::engine
