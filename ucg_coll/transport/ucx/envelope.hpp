// What UcxMessages and LongMessages share: envelopes of messages, and failures where ranks differ.
#pragma once

#include <string_view>

#include <ucs/type/status.h>

#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace ucg::transport::ucx {

/// Returns the envelope of a message to the link's peer. It also gives back the credits that are
/// due.
Envelope envelope_of(const RankLink& link, const Message& message);

/// Statuses of a message between this rank and the link's that fails. The first two are logged as
/// well: of the failure itself, an MPI program gets to see a code only. `what` of the third is what
/// comes before "rank 1 of group 2".
Status length_mismatch(const RankLink& link, const Message& message, std::uint64_t bytes);
Status plan_mismatch(const RankLink& link, std::uint32_t sequence);
Status transfer_failed(const RankLink& link, std::string_view what, ucs_status_t status);

/// Fails a posted receive that belongs to the arrival's collective, but to another plan, if there
/// is one: it would wait for ever.
void end_contradicted(RankLink& from, const Envelope& envelope);

} // namespace ucg::transport::ucx
