// What --help says beyond the options.
#pragma once

#include <string>

namespace ucg::perftest {

/// The tests, what the columns mean, and examples.
std::string help_footer();

} // namespace ucg::perftest
