#include "perf/perftest/collectives/collective_group.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "shm/host.hpp"

namespace ucg::perftest {

namespace {

struct ReleaseConfig {
    void operator()(ucg_config_h config) const { ucg_config_release(config); }
};
using Config = std::unique_ptr<ucg_config, ReleaseConfig>;

int exchange_for_group(void* arg, const void* send, void* receive, std::size_t bytes) {
    auto& runtime = *static_cast<Runtime*>(arg);
    const std::string_view mine(static_cast<const char*>(send), bytes);
    const Result<std::vector<std::string>> all = runtime.exchange(mine);
    if (!all.ok()) {
        return -1;
    }
    auto* to = static_cast<char*>(receive);
    for (const std::string& theirs : *all) {
        std::memcpy(to, theirs.data(), std::min(theirs.size(), bytes));
        to += bytes;
    }
    return 0;
}

/// The number of processes of the run that are where this one is, and its number among them.
struct Here {
    std::uint32_t processes = 0;
    std::uint32_t rank = 0;
};

Result<Here> here(Runtime& runtime, std::uint64_t identity) {
    const std::string mine = std::to_string(identity);
    const Result<std::vector<std::string>> all = runtime.exchange(mine);
    if (!all.ok()) {
        return all.status();
    }
    const auto before = all->begin() + runtime.rank();
    return Here{static_cast<std::uint32_t>(std::ranges::count(*all, mine)),
                static_cast<std::uint32_t>(std::count(all->begin(), before, mine))};
}

/// Returns the context's parameters. local_processes counts the processes under the same kernel,
/// since hosts may share its processors; local_rank is the number on the host.
Result<ucg_context_params_t> context_parameters(Runtime& runtime) {
    const Result<shm::HostFacts> facts = shm::read_host_facts();
    const Result<Here> by_kernel = here(runtime, facts ? shm::machine_identity(*facts) : 0);
    const Result<Here> by_host = here(runtime, facts ? shm::identity(*facts) : 0);
    if (!by_kernel.ok() || !by_host.ok()) {
        return by_kernel.ok() ? by_host.status() : by_kernel.status();
    }
    ucg_context_params_t parameters = {};
    parameters.field_mask = UCG_CONTEXT_PARAM_FIELD_NAME | UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES |
                            UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK;
    parameters.name = "ucg_perftest";
    parameters.local_processes = by_kernel->processes;
    parameters.local_rank = by_host->rank;
    return parameters;
}

Result<Config> configuration(const std::string& variable, const std::string& value) {
    ucg_config_h read = nullptr;
    if (Status status = status_of(ucg_config_read(&read), "a variable UCG_*"); !status.ok()) {
        return status;
    }
    Config config(read);
    if (!value.empty() &&
        ucg_config_modify(config.get(), variable.c_str(), value.c_str()) != UCG_OK) {
        return failure(Code::invalid_argument,
                       "--collective-algorithm {}: the value is not one of UCG_{} (ucg_info -f)",
                       value, variable);
    }
    return config;
}

/// Returns what ucg_group_explain() prints: a line about the call, then a line for each eligible
/// algorithm, the cheapest first, which begins with its name.
Result<std::string> explanation(ucg_group_h group, const ucg_coll_params_t& call) {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* stream = ::open_memstream(&text, &bytes);
    if (stream == nullptr) {
        return failure(Code::out_of_memory, "no memory for the names of algorithms");
    }
    const ucg_status_t status = ucg_group_explain(group, &call, stream);
    std::fclose(stream);
    std::string lines(text, bytes);
    std::free(text);
    if (Status failed = status_of(status, "cannot tell which algorithm serves"); !failed.ok()) {
        return failed;
    }
    return lines;
}

/// The eligible algorithms of a call, and the one that serves it: the cheapest, which comes first,
/// or the one that a variable asks for.
struct Serving {
    std::vector<std::string> names;
    std::string chosen;
};

/// Parses the explanation: the first word of each line but the first is a name.
Serving serving(std::string_view lines) {
    Serving found;
    for (std::size_t at = lines.find('\n'); at != std::string_view::npos && at + 1 < lines.size();
         at = lines.find('\n', at + 1)) {
        const std::string_view line = lines.substr(at + 1, lines.find('\n', at + 1) - at - 1);
        const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
        found.names.emplace_back(line.substr(first, line.find(' ', first) - first));
        if (line.ends_with("asked for") || found.chosen.empty()) {
            found.chosen = found.names.back();
        }
    }
    return found;
}

} // namespace

Status status_of(ucg_status_t status, std::string_view what) {
    const auto code = [status] {
        switch (status) {
        case UCG_ERR_INVALID_PARAM: return Code::invalid_argument;
        case UCG_ERR_UNSUPPORTED: return Code::unsupported;
        case UCG_ERR_UNREACHABLE: return Code::unreachable;
        case UCG_ERR_NO_MEMORY: return Code::out_of_memory;
        case UCG_ERR_TIMED_OUT: return Code::timed_out;
        case UCG_ERR_DISAGREEMENT: return Code::disagreement;
        default: return Code::io_error;
        }
    };
    return status == UCG_OK || status == UCG_INPROGRESS
               ? Status()
               : failure(code(), "{}: {}", what, ucg_status_string(status));
}

Result<std::unique_ptr<CollectiveGroup>>
CollectiveGroup::create(Runtime& runtime, const std::string& variable, const std::string& value) {
    const Result<Config> config = configuration(variable, value);
    const Result<ucg_context_params_t> context = context_parameters(runtime);
    if (!config.ok() || !context.ok()) {
        return config.ok() ? context.status() : config.status();
    }
    std::unique_ptr<CollectiveGroup> made(new CollectiveGroup);
    Status status = status_of(ucg_context_create(&*context, config->get(), &made->context_),
                              "cannot make a context of UCG");
    if (!status.ok()) {
        return status;
    }
    ucg_group_params_t group = {};
    group.rank = static_cast<std::uint32_t>(runtime.rank());
    group.size = static_cast<std::uint32_t>(runtime.size());
    group.oob_allgather = exchange_for_group;
    group.oob_arg = &runtime;
    status = status_of(ucg_group_create(made->context_, &group, &made->group_),
                       "cannot make a group of UCG");
    if (!status.ok()) {
        return status;
    }
    return made;
}

CollectiveGroup::~CollectiveGroup() {
    if (group_ != nullptr) {
        ucg_group_destroy(group_);
    }
    if (context_ != nullptr) {
        ucg_context_destroy(context_);
    }
}

Result<std::string> CollectiveGroup::algorithm_of(const ucg_coll_params_t& call,
                                                  std::string_view wanted) const {
    Result<std::string> lines = explanation(group_, call);
    if (!lines.ok()) {
        return lines;
    }
    const auto [names, chosen] = serving(*lines);
    if (names.empty()) {
        return failure(Code::unsupported, "no algorithm serves this call");
    }
    if (wanted.empty()) {
        return chosen;
    }
    if (std::ranges::find(names, wanted.substr(0, wanted.find(':'))) == names.end()) {
        return failure(Code::unsupported,
                       "--collective-algorithm {}: it cannot serve this call here; those that can: "
                       "{}",
                       wanted, fmt::join(names, ", "));
    }
    return std::string(wanted);
}

} // namespace ucg::perftest
