// From which length on messages on a host are copied once, by the kernel, given what its copies
// were seen to cost.
#pragma once

#include <array>
#include <cstdint>

#include "ucg_coll/cost/profile.hpp"

namespace ucg::cost {

/// The lengths that a look at the kernel's copies may lead to. They are few and far apart, so that
/// a machine has the same at each start: plans, and with them the bits of a sum, depend on it.
inline constexpr std::array<std::uint64_t, 4> kSingleCopyLengths = {16 << 10, 64 << 10, 4 << 20,
                                                                    kHardlyEverCopiedOnce};

/// CmaModel::bytes_min of the profile, or that of kSingleCopyLengths to which copies of `fixed_ns`
/// and `per_byte_ns` lead: a shorter one where they take less than two thirds of what a message
/// through a ring takes that is as long, a longer one where they take more than two and a half
/// times that, or four times, from 4 MiB on: between them it hardly matters, and starts would
/// differ on a processor whose built-in costs are those of another, or beside others that copy.
std::uint64_t single_copy_bytes_min(const Profile& profile, double fixed_ns, double per_byte_ns);

} // namespace ucg::cost
