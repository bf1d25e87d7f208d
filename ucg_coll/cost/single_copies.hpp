// The length from which on messages on a host are copied once, by the kernel, given what its copies
// were seen to cost.
#pragma once

#include <array>
#include <cstdint>

#include "ucg_coll/cost/profile.hpp"

namespace ucg::cost {

/// The lengths that timing the kernel's copies may lead to. They are few and far apart, so that a
/// machine gets the same at each start: plans, and with them the bits of a sum, depend on it.
inline constexpr std::array<std::uint64_t, 4> kSingleCopyLengths = {16 << 10, 64 << 10, 4 << 20,
                                                                    kHardlyEverCopiedOnce};

/// Returns the length for copies by the kernel that cost `fixed_ns` and `per_byte_ns`:
/// CmaModel::bytes_min of the profile, or one of kSingleCopyLengths. That is a shorter one at which
/// such a copy takes less than two thirds of the time of an equally long message through a ring,
/// or a longer one if the copy takes more than two and a half times as long as the message, from
/// 4 MiB on four times. Between these factors the choice hardly matters, and it would differ from
/// start to start on a processor whose built-in costs are those of another, or beside other
/// processes that copy.
std::uint64_t single_copy_bytes_min(const Profile& profile, double fixed_ns, double per_byte_ns);

} // namespace ucg::cost
