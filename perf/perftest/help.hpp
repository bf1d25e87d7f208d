// The part of --help that follows the options.
#pragma once

#include <string>

namespace ucg::perftest {

/// Returns the tests, the meaning of the columns, and examples.
std::string help_footer();

} // namespace ucg::perftest
