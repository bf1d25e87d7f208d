// The command `ucg_perftest breakdown`: where the time of short messages goes.
#pragma once

namespace ucg::perftest {

/// argv[0] is the word "breakdown". Returns an exit status: tools::ExitStatus.
int breakdown_main(int argc, const char* const* argv);

} // namespace ucg::perftest
