// From which length on a process would have the kernel copy messages on its host, and how it knows.
#pragma once

#include <cstdint>
#include <string>

#include "ucg_coll/capi/profile_file.hpp"

namespace ucg::capi {

struct SingleCopies {
    std::uint64_t bytes_min = 0; ///< Where each rank has a processor.
    std::string origin;          ///< For people.
};

/// Takes over from which length on processes were seen to be served by the kernel. One that copies
/// more slowly than the costs say does so between cores that share no cache, too.
void take_seen(cost::MemoryModel& memory, std::uint64_t bytes_min);

/// As the costs have it, if they were measured; else by a look at the kernel's copies, some 20 us,
/// and up to two more where they seem slow.
SingleCopies single_copies(const LoadedProfile& profile);

} // namespace ucg::capi
