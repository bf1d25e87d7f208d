// One outcome for all processes of a run: what fails on one of them ends the step on all, with the
// sentence of the one that found it.
#pragma once

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// `mine` where every rank's is ok, else the failure of the lowest rank that has one, in the words
/// of that rank. Collective.
Status agree(Runtime& runtime, const Status& mine);

} // namespace ucg::perftest
