// Which kind of processor this is: what a table of built-in costs is looked up by.
#pragma once

#include <cstdint>
#include <string>

namespace ucg::topo {

/// As the CPUID instruction names x86 processors; nothing is known of others.
struct Processor {
    std::string vendor; ///< "AuthenticAMD", "GenuineIntel"; empty: not known.
    std::uint32_t family = 0;
    std::uint32_t model = 0;

    bool operator==(const Processor&) const = default;
};

/// Of the CPU that the calling thread runs on. No system call, no file.
Processor this_processor();

/// The family and model that CPUID's leaf 1 gives in EAX: the extended ones count where the basic
/// ones say so.
Processor processor_from_signature(std::string vendor, std::uint32_t signature);

} // namespace ucg::topo
