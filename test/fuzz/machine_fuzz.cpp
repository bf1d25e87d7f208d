// Fuzzes what UCG_MACHINE may name: a machine as text, or as hwloc's synthetic description; the
// first byte selects which. XML is left out: only hwloc reads it, and XML that lstopo did not write
// can crash hwloc 2.9.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "topo/draw.hpp"
#include "topo/machine.hpp"

namespace ucg::topo {
namespace {

constexpr std::uint32_t kDrawnMost = 512; // A machine may have more cores; that only takes longer.
constexpr double kSyntheticMost = 4096;   // hwloc creates all of these objects.

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

/// The product of all numbers in the description: no level can have more objects.
double objects_at_most(std::string_view description) {
    double product = 1;
    for (std::size_t at = 0; at < description.size();) {
        char* end = nullptr;
        const std::string rest(description.substr(at));
        const double number = std::strtod(rest.c_str(), &end);
        if (end == rest.c_str()) {
            ++at;
            continue;
        }
        product *= number > 1 ? number : 1;
        at += static_cast<std::size_t>(end - rest.c_str());
    }
    return product;
}

void check(const Result<Machine>& machine) {
    if (!machine.ok()) {
        require(machine.status().code() == Code::invalid_argument);
        return;
    }
    const Result<Machine> again = parse_machine(to_text(*machine));
    require(again.ok() && *again == *machine);
    for (std::uint32_t core = 0; core < machine->core_count(); ++core) {
        const Core& there = machine->cores()[core];
        const Place place = machine->place_of_core(core);
        require(place.host == 0 && place.package == there.package);
        static_cast<void>(machine->place_of(there.threads));
    }
    if (machine->core_count() <= kDrawnMost) {
        static_cast<void>(to_outline(*machine));
        static_cast<void>(to_dot(*machine));
    }
}

void check(char form, const std::string& text) {
    switch (form) {
    case 't': check(parse_machine(text)); break;
    case 's':
        if (objects_at_most(text) <= kSyntheticMost) {
            check(machine_from_synthetic(text));
        }
        break;
    default: break;
    }
}

} // namespace
} // namespace ucg::topo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 0) {
        const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
        ucg::topo::check(static_cast<char>(data[0]), text);
    }
    return 0;
}
