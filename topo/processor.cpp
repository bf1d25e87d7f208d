#include "topo/processor.hpp"

#include <array>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ucg::topo {

Processor processor_from_signature(std::string vendor, std::uint32_t signature) {
    constexpr std::uint32_t kFamilyIsExtended = 15;
    constexpr std::uint32_t kFamilyWithModels = 6; // Intel's, which has extended models, too.
    const std::uint32_t family = signature >> 8 & 15;
    const std::uint32_t model = signature >> 4 & 15;
    const bool extended = family == kFamilyIsExtended;
    return {std::move(vendor), extended ? family + (signature >> 20 & 255) : family,
            extended || family == kFamilyWithModels ? model | (signature >> 16 & 15) << 4 : model};
}

Processor this_processor() {
#if defined(__x86_64__)
    std::uint32_t eax = 0;
    std::array<std::uint32_t, 3> words = {}; // EBX, EDX, ECX, which spell the vendor's name.
    if (__get_cpuid(0, &eax, &words[0], &words[2], &words[1]) != 0) {
        std::string vendor(sizeof(words), '\0');
        std::memcpy(vendor.data(), words.data(), sizeof(words));
        std::uint32_t unused = 0;
        if (__get_cpuid(1, &eax, &unused, &unused, &unused) != 0) {
            return processor_from_signature(std::move(vendor), eax);
        }
    }
#endif
    return {};
}

} // namespace ucg::topo
