// Makes the outcome of a step common to all processes of a run: a failure of one of them ends the
// step on all, with the sentence of the process that found it.
#pragma once

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// Returns ok if every rank's `mine` is ok, else the failure of the lowest rank that has one, in
/// the words of that rank. Collective.
Status agree(Runtime& runtime, const Status& mine);

} // namespace ucg::perftest
