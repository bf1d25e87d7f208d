// From which length on a process would have the kernel copy messages on its host, and how it knows.
#pragma once

#include <cstdint>
#include <string>

#include "ucg_coll/capi/profile_file.hpp"

namespace ucg::capi {

struct SingleCopies {
    std::uint64_t bytes_min = 0; ///< Where each rank has a processor of its own.
    std::string origin;          ///< How it is known, for people.
};

/// Takes over the length, in bytes, from which on the kernel was seen to serve processes best. A
/// kernel that copies more slowly than the costs say does so between cores that share no cache,
/// too.
void take_seen(cost::MemoryModel& memory, std::uint64_t bytes_min);

/// Returns what the costs say, if they were measured. Otherwise it looks at the kernel's copies,
/// which takes some 20 us, and up to two more times where they seem slow.
SingleCopies single_copies(const LoadedProfile& profile);

} // namespace ucg::capi
