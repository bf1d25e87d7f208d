// The commands `ucg_perftest breakdown`, where the time of short messages goes, and `ucg_perftest
// what-if`, what would be gained if some of it were saved.
#pragma once

namespace ucg::perftest {

/// argv[0] is the word "breakdown". Returns an exit status: tools::ExitStatus.
int breakdown_main(int argc, const char* const* argv);

/// The same of "what-if".
int what_if_main(int argc, const char* const* argv);

} // namespace ucg::perftest
