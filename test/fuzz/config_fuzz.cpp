// Fuzzes the configuration: lines NAME=VALUE, each set as the environment or a parameter of the
// component would set it. A value that is accepted is read by every getter and printed, and the
// printed text makes an equal configuration. A value that is refused changes nothing, and the
// failure names the variable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/capi/config.hpp"

namespace ucg::capi {
namespace {

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

/// What the getters return, so that a comparison of configurations covers every getter.
std::string answers(const Config& config) {
    std::string text = fmt::format(
        "{} {} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(config.log_level()),
        config.shm_enabled(), config.ucx_enabled(), config.short_lane(), config.cma_bytes_min(),
        config.verify_plans(), config.always_helps(), config.never_helps(), config.reproducible(),
        config.heap_bytes(), config.staging_bytes(), config.timeout_seconds(),
        config.sleep_after() ? config.sleep_after()->count() : -1,
        config.stall_after() ? config.stall_after()->count() : -1);
    for (const std::uint32_t digest : config.common_digests()) {
        text += fmt::format(" {}", digest);
    }
    for (const std::string_view each : {config.profile(), config.topology(), config.machine()}) {
        text.append(1, '\n').append(each);
    }
    for (const std::string& path : config.phases_files()) {
        text.append(1, '\n').append(path);
    }
    for (const graph::Collective collective : graph::kCollectives) {
        for (const unsigned bits : {0U, 3U, 12U, 20U, 40U}) {
            text.append(1, '\n').append(config.algorithm(collective, std::uint64_t{1} << bits));
        }
    }
    return text;
}

template <typename Each>
void each_line(std::string_view text, const Each& each) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        each(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

void set(Config& config, std::string_view line) {
    const std::size_t equals = line.find('=');
    const std::string_view name = line.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : line.substr(equals + 1);
    const std::string before = answers(config);
    if (const Status status = config.set(name, value); !status.ok()) {
        require(status.code() == Code::invalid_argument);
        require(status.message().find("UCG_") != std::string::npos);
        require(answers(config) == before);
    }
}

void check_unused(const Config& config, std::string_view text) {
    std::vector<std::string> variables;
    each_line(text, [&](std::string_view line) {
        variables.push_back("UCG_" + std::string(line.substr(0, line.find('\0'))));
    });
    std::vector<const char*> environment;
    for (const std::string& variable : variables) {
        environment.push_back(variable.c_str());
    }
    environment.push_back(nullptr);
    static_cast<void>(config.unused_variables(environment.data()));
}

void check(std::string_view text) {
    Config config;
    each_line(text, [&](std::string_view line) { set(config, line); });
    Config again;
    each_line(config.to_text(), [&](std::string_view line) {
        if (line.starts_with("UCG_")) {
            const std::size_t equals = line.find('=');
            require(again.set(line.substr(4, equals - 4), line.substr(equals + 1)).ok());
        }
    });
    require(answers(again) == answers(config));
    require(again.to_text() == config.to_text());
    check_unused(config, text);
}

} // namespace
} // namespace ucg::capi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ucg::capi::check({reinterpret_cast<const char*>(data), size});
    return 0;
}
