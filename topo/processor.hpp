// The kind of processor, by which built-in costs are looked up in a table.
#pragma once

#include <cstdint>
#include <string>

namespace ucg::topo {

/// A kind of x86 processor, as the CPUID instruction names it; of other processors nothing is
/// known.
struct Processor {
    std::string vendor; ///< "AuthenticAMD", "GenuineIntel"; empty: not known.
    std::uint32_t family = 0;
    std::uint32_t model = 0;

    bool operator==(const Processor&) const = default;
};

/// Returns the processor that the calling thread runs on. Makes no system call and reads no file.
Processor this_processor();

/// Returns the processor whose family and model CPUID's leaf 1 gives in EAX as `signature`: the
/// extended fields count where the basic ones say so.
Processor processor_from_signature(std::string vendor, std::uint32_t signature);

} // namespace ucg::topo
