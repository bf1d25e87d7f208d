// What messages.cpp and rendezvous.cpp share: heads of messages, and what to say when ranks differ.
#pragma once

#include <ucs/type/status.h>

#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace ucg::transport::ucx {

/// Gives back the credits that are due.
Envelope envelope_of(const Link& link, const Message& message);

/// Failures of a message between this rank and the link's. They are logged, too: of the failure
/// itself, an MPI program gets to see a code only.
Status length_mismatch(const Link& link, const Message& message, std::uint64_t bytes);
Status plan_mismatch(const Link& link, std::uint32_t sequence);
Status sending_failed(const Link& to, ucs_status_t status);

/// Ends the receive that an arrival of another plan shows to be in vain, if there is one.
void end_contradicted(Link& from, const Envelope& envelope);

} // namespace ucg::transport::ucx
