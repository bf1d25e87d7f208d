// The processor whose costs a profile has, as its TOML form says.
#pragma once

#include <string>
#include <string_view>

#include "topo/topo.hpp"

namespace ucg::cost {

/// Returns the kind of a processor as text, "AuthenticAMD family 25 model 17"; empty if it is not
/// known.
std::string processor_text(const topo::Processor& processor);

/// Returns the table [measured], to be appended to to_toml(); empty if `processor` is.
std::string origin_toml(std::string_view processor);

/// Returns the processor that the text of a profile names; empty if it names none or is malformed.
std::string measured_on(std::string_view text);

/// Returns whether the result of measured_on() is another kind of processor than this machine's;
/// false where either is unknown.
bool is_foreign(std::string_view measured_on);

} // namespace ucg::cost
