#include "ucg_coll/capi/config.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include "ucg_coll/base/ascii.hpp"
#include "ucg_coll/base/similar.hpp"

namespace ucg::capi {
namespace {

struct Variable {
    std::string name;
    std::string fallback;
    std::string help;
    Status (*check)(std::string_view value);
};

Status expected(std::string_view what, std::string_view value) {
    return failure(Code::invalid_argument, "expected {}, found '{}'", what, value);
}

Status check_log_level(std::string_view value) {
    return parse_log_level(value).status();
}

Status check_bool(std::string_view value) {
    return value == "y" || value == "n" ? Status() : expected("y or n", value);
}

Status check_reproducible(std::string_view value) {
    return value == "placement" || value == "n" ? Status() : expected("n or placement", value);
}

Status check_help(std::string_view value) {
    return value == "auto" || value == "always" || value == "never"
               ? Status()
               : expected("auto, always or never", value);
}

Status check_size(std::string_view value) {
    return parse_size(value).status();
}

Status check_cma(std::string_view value) {
    return value == "y" || value == "n" || (parse_size(value).ok() && *parse_size(value) > 0)
               ? Status()
               : expected("y, n or a length in bytes", value);
}

Result<std::uint32_t> parse_seconds(std::string_view value) {
    std::uint32_t seconds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (error != std::errc() || end != value.data() + value.size() || seconds == 0) {
        return expected("a number of seconds above 0", value);
    }
    return seconds;
}

Status check_seconds(std::string_view value) {
    return parse_seconds(value).status();
}

/// Returns an empty time if the wait decides.
Result<std::optional<std::chrono::nanoseconds>> parse_sleep_after(std::string_view value) {
    if (value == "auto") {
        return std::optional<std::chrono::nanoseconds>();
    }
    if (value == "never") {
        return std::optional(std::chrono::nanoseconds::max());
    }
    std::uint32_t microseconds = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), microseconds);
    if (error != std::errc() || end != value.data() + value.size()) {
        return expected("a number of microseconds, auto or never", value);
    }
    return std::optional<std::chrono::nanoseconds>(std::chrono::microseconds(microseconds));
}

Status check_sleep_after(std::string_view value) {
    return parse_sleep_after(value).status();
}

/// Returns nothing for "never".
Result<std::optional<std::chrono::seconds>> parse_stall_after(std::string_view value) {
    if (value == "never") {
        return std::optional<std::chrono::seconds>();
    }
    const Result<std::uint32_t> seconds = parse_seconds(value);
    if (!seconds.ok()) {
        return expected("a number of seconds above 0, or never", value);
    }
    return std::optional(std::chrono::seconds(*seconds));
}

Status check_stall_after(std::string_view value) {
    return parse_stall_after(value).status();
}

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> items;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        items.push_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return items;
}

Status check_transports(std::string_view value) {
    const auto known = [](std::string_view item) { return item == "shm" || item == "ucx"; };
    const std::vector<std::string_view> items = split(value);
    return !items.empty() && std::all_of(items.begin(), items.end(), known)
               ? Status()
               : expected("a list of shm and ucx", value);
}

Status check_any(std::string_view) {
    return {};
}

/// The syntax is that of plan::parse_algorithms_by_size.
std::string algorithm_help(graph::Collective collective) {
    std::string help = fmt::format("Algorithm of {}; empty: the planner chooses. One of:",
                                   graph::name(collective));
    for (const plan::Algorithm& algorithm : plan::algorithms()) {
        if (algorithm.collective == collective) {
            help += fmt::format(" {}", algorithm.name);
            if (!algorithm.argument.empty()) {
                help += fmt::format(" (or {}:ARGUMENT, {})", algorithm.name, algorithm.argument);
            }
        }
    }
    if (plan::sizes_are_uniform(collective)) {
        help += ". By size: 0-4k:ALGORITHM;4k-inf:ALGORITHM, each range without its end";
    }
    return help + '.';
}

void add_algorithms(std::vector<Variable>& rows) {
    for (const graph::Collective collective : graph::kCollectives) {
        rows.push_back(
            {ascii_upper(graph::name(collective)), "", algorithm_help(collective), check_any});
    }
}

/// Returns the variables that say how long something may take.
std::vector<Variable> time_variables() {
    return {
        {"TIMEOUT", "60",
         "Seconds that setting up shared memory waits for a peer, and that a connection by "
         "network which cannot be made is tried again.",
         check_seconds},
        {"SLEEP_AFTER", "auto",
         "Microseconds that a blocking call polls in vain before it sleeps, or never. A rank "
         "that sleeps leaves its processor to others and takes some 20 us longer to notice. "
         "auto: 1000 where ranks outnumber processors or others are felt to want them, at once "
         "where these compute for whole slices of the scheduler, else never: a rank that waits "
         "then uses all of its processor, and yields it. A number is kept to in all cases.",
         check_sleep_after},
        {"STALL_AFTER", "600",
         "Seconds after which a rank tells that a collective does not go on, for whom it waits, "
         "and which ranks of its host have not called it; or never.",
         check_stall_after},
    };
}

/// Returns all variables but those of the algorithms and of times.
std::vector<Variable> general_variables() {
    return {
        {"LOG_LEVEL", "warn", "What to say: error, warn, info, debug or trace.", check_log_level},
        {"TLS", "shm,ucx", "Transports to use: shm (shared memory on a host), ucx.",
         check_transports},
        {"SHORT_LANE", "y", "Send short messages through UCT directly where it is possible.",
         check_bool},
        {"HEAP_SIZE", "1G",
         "Address space of the memory that this process shares with the others of its host. "
         "Pages are taken only as they are needed.",
         check_size},
        {"STAGING", "1M",
         "Memory of each rank that the other ranks of its host read: intermediate results, and "
         "copies of buffers that they cannot read in place. At most 16 groups of a process have "
         "it at a time; a group is a communicator, or a persistent request. 0: ranks do not read "
         "one another's memory.",
         check_size},
        {"CMA", "y",
         "Copy long messages on a host once, by the kernel (process_vm_readv), where it "
         "permits that: y (from the length on that pays on this processor, as the costs have "
         "it), n, or the length.",
         check_cma},
        {"HELP_PEERS", "auto",
         "Do ranks that wait in a nonblocking collective also do the part of ranks of their host "
         "that are still computing? auto: only where this costs hardly more when no rank "
         "computes; always, for programs that compute long; or never.",
         check_help},
        {"VERIFY", "n",
         "Prove every plan before it is used (all ranks' plans; takes long for many ranks).",
         check_bool},
        {"REPRODUCIBLE", "n",
         "placement: reductions of the same ranks, length and operator give the same bits "
         "wherever the ranks are, at some cost: they use neither shared staging memory nor the "
         "hosts' boundaries. n: the same bits on all ranks and in each run of one placement.",
         check_reproducible},
        {"PROFILE", "",
         "File with the costs of this machine, as ucg_tune writes it; the same on all ranks. "
         "Empty: ucg/profile.toml in $XDG_CONFIG_HOME or $HOME/.config, else, in the folders of "
         "$XDG_CONFIG_DIRS (/etc/xdg), ucg/profiles/PROCESSOR.toml or ucg/profile.toml; "
         "ucg_info -c prints the paths. builtin: no file.",
         check_any},
        {"TOPOLOGY", "",
         "File with the tree of switches between the hosts, the same on all ranks: Slurm's "
         "topology.conf, or JSON (ucg_topo cluster). Empty: topology.conf in the folder of "
         "$SLURM_CONF, else in /etc/slurm or /run/slurm/conf, if it is there and no "
         "topology.yaml is. none: no file.",
         check_any},
        {"MACHINE", "",
         "Machine that the processes of each host are taken to be on, the n-th on the n-th "
         "core, for tests: hwloc's synthetic description (package:2 l3:2 core:2 pu:1), or a "
         "file as lstopo exports XML; the same on all ranks. Empty: the machine at hand.",
         check_any},
        {"WARN_UNUSED_ENV_VARS", "y",
         "Tell once, on rank 0, of variables UCG_* in the environment that are none of these.",
         check_bool},
    };
}

const std::vector<Variable>& variables() {
    static const std::vector<Variable> table = [] {
        std::vector<Variable> rows = general_variables();
        const std::vector<Variable> times = time_variables();
        rows.insert(rows.end(), times.begin(), times.end());
        add_algorithms(rows);
        return rows;
    }();
    return table;
}

/// Returns the collective whose algorithm that variable names.
std::optional<graph::Collective> collective_of(std::string_view variable) {
    for (const graph::Collective collective : graph::kCollectives) {
        if (ascii_upper(graph::name(collective)) == variable) {
            return collective;
        }
    }
    return std::nullopt;
}

const Variable* find_variable(std::string_view name) {
    for (const Variable& variable : variables()) {
        if (variable.name == name) {
            return &variable;
        }
    }
    return nullptr;
}

constexpr std::string_view kPrefix = "UCG_";

/// Is it a variable of this project that others read: tools/packages, or the tests?
bool is_read_elsewhere(std::string_view name) {
    return name == "NO_PACKAGES" || name.substr(0, 5) == "TEST_";
}

/// Returns the variable that was perhaps meant; empty where none is similar.
std::string_view similar_variable(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Variable& variable : variables()) {
        names.push_back(variable.name);
    }
    return most_similar(name, names);
}

} // namespace

Result<Config> Config::from_environment() {
    Config config;
    for (const Variable& variable : variables()) {
        const char* value = std::getenv(("UCG_" + variable.name).c_str());
        if (value != nullptr) {
            if (Status status = config.set(variable.name, value); !status.ok()) {
                return status;
            }
        }
    }
    return config;
}

std::string Config::unused_variables(const char* const* environment) const {
    std::string list;
    if (value("WARN_UNUSED_ENV_VARS") == "n") {
        return list;
    }
    for (; *environment != nullptr; ++environment) {
        std::string_view name = *environment;
        if (name.substr(0, kPrefix.size()) != kPrefix) {
            continue;
        }
        name = name.substr(kPrefix.size(), name.find('=') - kPrefix.size());
        if (find_variable(name) != nullptr || is_read_elsewhere(name)) {
            continue;
        }
        list += fmt::format("{}{}{}", list.empty() ? "" : ", ", kPrefix, name);
        if (const std::string_view similar = similar_variable(name); !similar.empty()) {
            list += fmt::format(" (maybe {}{}?)", kPrefix, similar);
        }
    }
    return list;
}

void Config::warn_of_unused_variables() const {
    if (const std::string list = unused_variables(environ); !list.empty()) {
        log(LogLevel::warn,
            "variables in the environment that UCG does not know: {}. \"ucg_info --config\" lists "
            "those that it knows; UCG_WARN_UNUSED_ENV_VARS=n silences this",
            list);
    }
}

Status Config::set(std::string_view name, std::string_view value) {
    const Variable* variable = find_variable(name);
    if (variable == nullptr) {
        return failure(Code::invalid_argument, "there is no variable UCG_{}", name);
    }
    if (Status status = variable->check(value); !status.ok()) {
        return failure(Code::invalid_argument, "UCG_{}: {}", name, status.message());
    }
    if (const auto collective = collective_of(name)) {
        Result<plan::AlgorithmsBySize> algorithms =
            plan::parse_algorithms_by_size(*collective, value);
        if (!algorithms.ok()) {
            return failure(Code::invalid_argument, "UCG_{}: {}", name,
                           algorithms.status().message());
        }
        algorithms_.insert_or_assign(*collective, std::move(*algorithms));
    }
    values_.insert_or_assign(std::string(name), std::string(value));
    return {};
}

std::string_view Config::value(std::string_view name) const {
    if (const auto found = values_.find(name); found != values_.end()) {
        return found->second;
    }
    const Variable* variable = find_variable(name);
    UCG_ASSERT(variable != nullptr);
    return variable->fallback;
}

bool Config::lists(std::string_view name, std::string_view item) const {
    const std::vector<std::string_view> items = split(value(name));
    return std::find(items.begin(), items.end(), item) != items.end();
}

std::string Config::to_text() const {
    std::string text;
    for (const Variable& variable : variables()) {
        text += fmt::format("#\n# {}\n#\nUCG_{}={}\n\n", variable.help, variable.name,
                            value(variable.name));
    }
    return text;
}

// The checks of set() hold for whatever value() returns.
LogLevel Config::log_level() const {
    return parse_log_level(value("LOG_LEVEL")).value();
}
std::uint64_t Config::heap_bytes() const {
    return parse_size(value("HEAP_SIZE")).value();
}

std::uint64_t Config::staging_bytes() const {
    return parse_size(value("STAGING")).value();
}

std::uint64_t Config::cma_bytes_min() const {
    const std::string_view setting = value("CMA");
    return setting == "y" ? 0 : setting == "n" ? ~std::uint64_t{0} : parse_size(setting).value();
}

std::uint32_t Config::timeout_seconds() const {
    return parse_seconds(value("TIMEOUT")).value();
}

std::optional<std::chrono::nanoseconds> Config::sleep_after() const {
    return parse_sleep_after(value("SLEEP_AFTER")).value();
}

std::optional<std::chrono::seconds> Config::stall_after() const {
    return parse_stall_after(value("STALL_AFTER")).value();
}

std::vector<std::string> Config::phases_files() const {
    constexpr std::string_view kFile = "file:";
    std::vector<std::string> paths;
    const auto add = [&](std::string_view algorithm) {
        if (algorithm.starts_with(kFile)) {
            std::string path(algorithm.substr(kFile.size()));
            if (std::find(paths.begin(), paths.end(), path) == paths.end()) {
                paths.push_back(std::move(path));
            }
        }
    };
    for (const auto collective : {graph::Collective::alltoall, graph::Collective::alltoallv}) {
        if (const auto found = algorithms_.find(collective); found != algorithms_.end()) {
            for (const plan::AlgorithmsBySize::Range& range : found->second.ranges()) {
                add(range.algorithm);
            }
            add(found->second.otherwise());
        }
    }
    return paths;
}

std::string_view Config::algorithm(graph::Collective collective, std::uint64_t bytes) const {
    const auto found = algorithms_.find(collective);
    return found == algorithms_.end() ? std::string_view() : found->second.algorithm(bytes);
}

namespace {

/// Returns the name without its prefix of a setting that ranks must have alike.
std::string common_variable(std::size_t index) {
    constexpr std::array<std::string_view, 2> kOthers = {"REPRODUCIBLE", "HELP_PEERS"};
    constexpr std::size_t kAlgorithms = std::size(graph::kCollectives);
    static_assert(kAlgorithms + kOthers.size() == Config::kCommonCount);
    return index < kAlgorithms ? ascii_upper(graph::name(graph::kCollectives[index]))
                               : std::string(kOthers[index - kAlgorithms]);
}

void add_to(Hash& hash, const plan::AlgorithmsBySize& algorithms) {
    for (const plan::AlgorithmsBySize::Range& range : algorithms.all_sizes()) {
        hash.value(range.begin).bytes(range.algorithm).bytes("\n");
    }
}

} // namespace

std::string Config::common_name(std::size_t index) {
    return fmt::format("{}{}", kPrefix, common_variable(index));
}

std::string_view Config::common_value(std::size_t index) const {
    return value(common_variable(index));
}

Config::CommonDigests Config::common_digests() const {
    CommonDigests digests = {};
    for (std::size_t i = 0; i < kCommonCount; ++i) {
        Hash hash;
        if (i < std::size(graph::kCollectives)) {
            const auto found = algorithms_.find(graph::kCollectives[i]);
            add_to(hash, found == algorithms_.end() ? plan::AlgorithmsBySize() : found->second);
        } else {
            hash.bytes(common_value(i));
        }
        digests[i] = static_cast<std::uint32_t>(hash.digest() ^ hash.digest() >> 32U);
    }
    return digests;
}

} // namespace ucg::capi
