#include "ucg_coll/capi/machine_setting.hpp"

#include <cstddef>
#include <utility>

#include "ucg_coll/capi/read_file.hpp"

namespace ucg::capi {
namespace {

/// Longest file that is read: lstopo writes some KiB for each core.
constexpr std::size_t kMachineBytesMax = std::size_t{64} << 20;

bool is_synthetic(std::string_view setting) {
    return setting.find(':') != std::string_view::npos &&
           setting.find('/') == std::string_view::npos;
}

bool is_xml(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '<';
}

Result<topo::Machine> read_machine(const std::string& path) {
    int error = 0;
    const Result<std::string> text = read_file(path, "the machine", kMachineBytesMax, error);
    if (!text.ok()) {
        return text.status();
    }
    Result<topo::Machine> machine =
        is_xml(*text) ? topo::machine_from_xml(*text) : topo::parse_machine(*text);
    return machine.ok()
               ? machine
               : failure(machine.status().code(), "{}: {}", path, machine.status().message());
}

Result<topo::Machine> named_machine(const std::string& setting) {
    Result<topo::Machine> machine =
        is_synthetic(setting) ? topo::machine_from_synthetic(setting) : read_machine(setting);
    if (machine.ok() && machine->core_count() == 0) {
        return failure(Code::invalid_argument, "{}: the machine has no cores", setting);
    }
    return machine;
}

NamedMachine refused(std::string_view why) {
    return {{}, 0, fmt::format("UCG_MACHINE: {}", why)};
}

} // namespace

NamedMachine load_machine(std::string_view setting, std::optional<std::uint32_t> local_rank) {
    if (setting.empty()) {
        return {};
    }
    Result<topo::Machine> machine = named_machine(std::string(setting));
    if (!machine.ok()) {
        return refused(machine.status().message());
    }
    if (!local_rank) {
        return refused(
            "this program does not say which of its host's processes each one is "
            "(local_rank of ucg_context_params_t): it runs on the machine at hand alone");
    }
    const std::uint64_t hash = Hash().bytes(topo::to_text(*machine)).digest();
    return {std::move(*machine), hash, {}};
}

topo::Place place_of_process(const topo::Machine& machine, std::uint32_t local_rank) {
    return machine.place_of_core(local_rank % machine.core_count());
}

} // namespace ucg::capi
