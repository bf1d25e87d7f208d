// The commands `ucg_perftest breakdown`, which shows where the time of short messages goes, and
// `ucg_perftest what-if`, which shows what would be gained if some of it were saved.
#pragma once

namespace ucg::perftest {

/// Runs `breakdown`; argv[0] is the word "breakdown". Returns an exit status: tools::ExitStatus.
int breakdown_main(int argc, const char* const* argv);

/// Runs `what-if`; argv[0] is the word "what-if". Returns an exit status: tools::ExitStatus.
int what_if_main(int argc, const char* const* argv);

} // namespace ucg::perftest
