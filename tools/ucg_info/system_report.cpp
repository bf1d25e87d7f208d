#include "tools/ucg_info/system_report.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <fmt/format.h>

#include "ucg_coll/base/printable.hpp"

extern char** environ;

namespace ucg::tools {
namespace {

/// PRETTY_NAME of os-release(5), without its quotes; empty if it is not known.
std::string distribution() {
    constexpr std::string_view kName = "PRETTY_NAME=";
    std::ifstream file("/etc/os-release");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(kName)) {
            line.erase(0, kName.size());
            std::erase(line, '"');
            return line;
        }
    }
    return "";
}

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    return std::getline(file, line) ? line : "cannot be read";
}

std::string limit(decltype(RLIMIT_NOFILE) resource) {
    rlimit found = {};
    if (getrlimit(resource, &found) != 0) {
        return "not known";
    }
    return found.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(found.rlim_cur);
}

bool steers(std::string_view variable) {
    constexpr std::array<std::string_view, 4> kPrefixes = {"UCG_", "UCX_", "OMPI_MCA_",
                                                           "PMIX_MCA_"};
    return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                       [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

} // namespace

SystemReport::SystemReport() {
    utsname name = {};
    if (uname(&name) == 0) {
        system_.emplace_back("kernel", fmt::format("{} {} {}", name.sysname, name.release,
                                                   static_cast<const char*>(name.machine)));
    }
    system_.emplace_back("distribution", distribution());
    system_.emplace_back("ptrace_scope", first_line("/proc/sys/kernel/yama/ptrace_scope"));
    limits_ = {{"locked memory, bytes", limit(RLIMIT_MEMLOCK)},
               {"address space, bytes", limit(RLIMIT_AS)},
               {"file size, bytes", limit(RLIMIT_FSIZE)},
               {"stack, bytes", limit(RLIMIT_STACK)},
               {"open files", limit(RLIMIT_NOFILE)},
               {"processes", limit(RLIMIT_NPROC)}};
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const std::size_t equals = text.find('=');
        if (steers(text) && equals != std::string_view::npos) {
            variables_.emplace_back(text.substr(0, equals), text.substr(equals + 1));
        }
    }
    std::sort(variables_.begin(), variables_.end());
}

std::string SystemReport::text() const {
    std::string text = "System\n";
    for (const auto& [name, value] : system_) {
        text += fmt::format("  {:<22} {}\n", name, printable(value, LineBreaks::escape));
    }
    for (const auto& [name, value] : limits_) {
        text += fmt::format("  {:<22} {}\n", name, value);
    }
    text += "Environment\n";
    for (const auto& [name, value] : variables_) {
        text += fmt::format("  {}={}\n", printable(name, LineBreaks::escape),
                            printable(value, LineBreaks::escape));
    }
    return variables_.empty() ? text + "  nothing for UCG, UCX, Open MPI or PMIx\n" : text;
}

nlohmann::ordered_json SystemReport::json() const {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    const auto add = [](nlohmann::ordered_json& object, const Facts& facts) {
        object = nlohmann::ordered_json::object();
        for (const auto& [name, value] : facts) {
            object[printable(name)] = printable(value);
        }
    };
    add(json["system"], system_);
    add(json["limits"], limits_);
    add(json["environment"], variables_);
    return json;
}

} // namespace ucg::tools
