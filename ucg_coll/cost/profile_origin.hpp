// Which processor the figures of a profile are of, as its TOML form says.
#pragma once

#include <string>
#include <string_view>

#include "topo/topo.hpp"

namespace ucg::cost {

/// "AuthenticAMD family 25 model 17"; empty for one that is not known.
std::string processor_text(const topo::Processor& processor);

/// The table [measured], to follow what to_toml() gives; nothing where `processor` is empty.
std::string origin_toml(std::string_view processor);

/// The processor that the text of a profile names; empty if it names none or is malformed.
std::string measured_on(std::string_view text);

/// Is that, which measured_on() has found, another kind of processor than this machine's? Not where
/// either is unknown.
bool is_foreign(std::string_view measured_on);

} // namespace ucg::cost
