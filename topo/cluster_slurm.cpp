#include "topo/cluster_slurm.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "topo/cluster_draft.hpp"
#include "topo/host_list.hpp"
#include "topo/rate_text.hpp"

namespace ucg::topo {

using Kind = ClusterNode::Kind;

namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

std::string_view trim_right(std::string_view text) {
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower;
}

/// A unit of rates, and what 1 of it is in bytes per second.
struct Unit {
    std::string_view name;
    std::uint64_t rate;
};

/// The units in which a file may have its rates; the writer takes the first that fits.
constexpr std::array<Unit, 3> kUnits = {Unit{"Mbit/s", 125'000}, Unit{"kbit/s", 125},
                                        Unit{"Gbit/s", 125'000'000}};

/// What a comment says before the unit of the file's bare numbers.
constexpr std::string_view kUnitComment = "# UCG: LinkSpeed is in ";

/// Returns the unit that a comment of the file names; 0 if none does.
std::uint64_t unit_of_file(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trim_right(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!line.starts_with(kUnitComment)) {
            continue;
        }
        for (const Unit& unit : kUnits) {
            if (line.substr(kUnitComment.size()) == unit.name) {
                return unit.rate;
            }
        }
    }
    return 0;
}

/// The lines of a text without their comments. Lines that are continued by a backslash are joined.
class LogicalLines {
  public:
    explicit LogicalLines(std::string_view text) : rest_(text) {}

    /// Goes to the next line that is not empty. Returns false at the end.
    bool next() {
        line_.clear();
        bool continued = false;
        while (!rest_.empty()) {
            std::string_view raw = trim_right(take_raw());
            first_ = continued ? first_ : count_;
            continued = !raw.empty() && raw.back() == '\\';
            raw.remove_suffix(continued ? 1 : 0);
            line_ += raw;
            if (!continued && line_.find_first_not_of(kBlanks) != std::string::npos) {
                return true;
            }
            if (!continued) {
                line_.clear();
            }
        }
        return line_.find_first_not_of(kBlanks) != std::string::npos;
    }
    std::string_view line() const { return line_; }
    /// Returns the number of the line's first physical line, from 1.
    std::uint64_t number() const { return first_; }

  private:
    std::string_view take_raw() {
        const std::size_t end = std::min(rest_.find('\n'), rest_.size());
        const std::string_view raw = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        ++count_;
        return raw.substr(0, raw.find('#'));
    }

    std::string_view rest_;
    std::string line_;
    std::uint64_t count_ = 0;
    std::uint64_t first_ = 0;
};

/// What one line says of a switch.
struct SwitchLine {
    std::string name;
    std::vector<std::string> machines;
    std::vector<std::string> switches;
    std::uint64_t rate = 0;
    std::uint64_t line = 0;
};

struct Assignment {
    std::string_view key;
    std::string_view value;
};

class LineParser {
  public:
    LineParser(std::string_view line, std::uint64_t number, std::uint64_t bare_unit)
        : rest_(line), bare_unit_(bare_unit) {
        found_.line = number;
    }

    Result<SwitchLine> run() {
        while (status_.ok()) {
            const std::optional<Assignment> assignment = next();
            if (!assignment) {
                break;
            }
            take(*assignment);
        }
        if (status_.ok() && found_.name.empty()) {
            refuse("SwitchName is missing");
        }
        if (!status_.ok()) {
            return status_;
        }
        return std::move(found_);
    }

  private:
    void refuse(std::string_view reason, Code code = Code::invalid_argument) {
        if (status_.ok()) {
            status_ = failure(code, "line {}: {}", found_.line, reason);
        }
    }

    void skip_blanks() {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
    }

    std::string_view take_until(std::string_view ends) {
        const std::string_view taken = rest_.substr(0, rest_.find_first_of(ends));
        rest_.remove_prefix(taken.size());
        return taken;
    }

    std::optional<Assignment> next() {
        skip_blanks();
        if (rest_.empty()) {
            return std::nullopt;
        }
        Assignment assignment;
        assignment.key = take_until(" \t\r\f\v=");
        skip_blanks();
        if (rest_.empty() || rest_.front() != '=') {
            refuse(lower_case(assignment.key) == "include"
                       ? "Slurm's 'Include' is not followed: put the lines of that file here"
                       : fmt::format("'{}' is not of the form Key=value",
                                     assignment.key.substr(0, 60)));
            return std::nullopt;
        }
        rest_.remove_prefix(1);
        skip_blanks();
        assignment.value = take_value();
        if (status_.ok() && assignment.value.empty()) {
            refuse(fmt::format("'{}' has no value", assignment.key.substr(0, 60)));
        }
        return assignment;
    }

    std::string_view take_value() {
        if (rest_.empty() || rest_.front() != '"') {
            return take_until(kBlanks);
        }
        rest_.remove_prefix(1);
        const std::string_view value = take_until("\"");
        if (rest_.empty()) {
            refuse("a quotation mark has no partner");
            return {};
        }
        rest_.remove_prefix(1);
        if (!rest_.empty() && kBlanks.find(rest_.front()) == std::string_view::npos) {
            refuse("a blank must follow a value in quotation marks");
        }
        return value;
    }

    void take(const Assignment& assignment) {
        static constexpr std::array<std::string_view, 4> kKeys = {"switchname", "nodes", "switches",
                                                                  "linkspeed"};
        const std::string key = lower_case(assignment.key);
        const auto known = std::find(kKeys.begin(), kKeys.end(), key);
        if (key == "blockname" || key == "blocksizes") {
            refuse(fmt::format("'{}' is of Slurm's plugin topology/block, whose files tell of no "
                               "switches",
                               assignment.key),
                   Code::unsupported);
            return;
        }
        if (known == kKeys.end()) {
            refuse(fmt::format("unknown key '{}' (SwitchName, Nodes, Switches and LinkSpeed are "
                               "known)",
                               assignment.key.substr(0, 60)));
            return;
        }
        const auto index = static_cast<std::size_t>(known - kKeys.begin());
        if (seen_[index]) {
            refuse(fmt::format("'{}' appears twice", assignment.key));
            return;
        }
        seen_[index] = true;
        switch (index) {
        case 0: found_.name = assignment.value; break;
        case 1: take_names(assignment.value, found_.machines); break;
        case 2: take_names(assignment.value, found_.switches); break;
        default: take_speed(assignment.value);
        }
    }

    void take_names(std::string_view value, std::vector<std::string>& names) {
        Result<std::vector<std::string>> expanded = expand_host_list(value);
        if (!expanded.ok()) {
            refuse(expanded.status().message());
            return;
        }
        names = std::move(*expanded);
    }

    void take_speed(std::string_view value) {
        std::uint64_t number = 0;
        const char* const end = value.data() + value.size();
        const auto [stop, error] = std::from_chars(value.data(), end, number);
        if (stop == end && error == std::errc()) {
            if (number > 0 && bare_unit_ > kRateMax / number) {
                refuse(fmt::format("LinkSpeed {}: more than 1000tbit is no limit; leave it out",
                                   number));
            } else if (number * bare_unit_ > 0 && number * bare_unit_ < kRateMin) {
                refuse(fmt::format("LinkSpeed {}: less than 8kbit moves nothing", number));
            }
            found_.rate = number * bare_unit_;
            return;
        }
        const Result<std::uint64_t> rate = parse_rate(value);
        if (!rate.ok()) {
            refuse(rate.status().message());
            return;
        }
        found_.rate = *rate;
    }

    std::string_view rest_;
    std::uint64_t bare_unit_;
    std::array<bool, 4> seen_ = {};
    SwitchLine found_;
    Status status_;
};

/// Finds which node hangs below which switch, from the lines of all switches: each names the
/// switches and machines below it.
class Claims {
  public:
    explicit Claims(const std::vector<SwitchLine>& lines) : lines_(lines) {}

    Result<std::vector<DraftNode>> drafts() {
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (const auto [first, is_new] = defined_.try_emplace(lines_[i].name, i); !is_new) {
                return refuse(lines_[i].line,
                              fmt::format("'{}' is a switch of line {} already", lines_[i].name,
                                          lines_[first->second].line));
            }
        }
        for (const SwitchLine& line : lines_) {
            for (const std::string& below : line.switches) {
                if (Status status = claim(line, below); !status.ok()) {
                    return status;
                }
            }
        }
        return all_drafts();
    }

  private:
    static Status refuse(std::uint64_t line, std::string_view reason) {
        return failure(Code::invalid_argument, "line {}: {}", line, reason);
    }

    Status claim(const SwitchLine& line, const std::string& below) {
        if (defined_.find(below) == defined_.end()) {
            return refuse(line.line,
                          fmt::format("switch '{}' is not defined", below.substr(0, 60)));
        }
        const auto [first, is_new] = above_.try_emplace(below, &line);
        if (!is_new) {
            return refuse(line.line, fmt::format("'{}' hangs below '{}' (line {}) already", below,
                                                 first->second->name, first->second->line));
        }
        return {};
    }

    /// Returns all nodes; switches other than roots are in the order in which the lines above name
    /// them.
    std::vector<DraftNode> all_drafts() const {
        std::vector<DraftNode> drafts;
        for (const SwitchLine& line : lines_) {
            if (above_.find(line.name) == above_.end()) {
                drafts.push_back({line.name, Kind::network_switch, {}, 0, line.line});
            }
        }
        for (const SwitchLine& line : lines_) {
            for (const std::string& below : line.switches) {
                drafts.push_back({below, Kind::network_switch, line.name, line.rate,
                                  lines_[defined_.at(below)].line});
            }
            for (const std::string& machine : line.machines) {
                drafts.push_back({machine, Kind::machine, line.name, line.rate, line.line});
            }
        }
        return drafts;
    }

    const std::vector<SwitchLine>& lines_;
    std::unordered_map<std::string_view, std::size_t> defined_;
    std::unordered_map<std::string_view, const SwitchLine*> above_;
};

/// Returns the rate that the links below a switch to its `children` have in common; nothing if they
/// differ.
std::optional<std::uint64_t> common_rate(const Cluster& cluster,
                                         const std::vector<std::uint32_t>& children) {
    for (const std::uint32_t child : children) {
        if (cluster.node(child).rate != cluster.node(children.front()).rate) {
            return std::nullopt;
        }
    }
    return children.empty() ? 0 : cluster.node(children.front()).rate;
}

/// Returns the unit in which all rates are whole numbers that Slurm can read, which has 32 bits for
/// them; nothing if there is none.
std::optional<Unit> common_unit(const Cluster& cluster) {
    const std::vector<ClusterNode>& nodes = cluster.nodes();
    const auto fits_all = [&](const Unit& unit) {
        return std::all_of(nodes.begin(), nodes.end(), [&](const ClusterNode& node) {
            return node.rate % unit.rate == 0 && node.rate / unit.rate <= UINT32_MAX;
        });
    };
    const auto found = std::find_if(kUnits.begin(), kUnits.end(), fits_all);
    return found == kUnits.end() ? std::nullopt : std::optional(*found);
}

/// Writes the line of a switch. Fails with unsupported where Slurm has no words for it.
Result<std::string> switch_line(const Cluster& cluster, std::uint32_t node, const Unit& unit) {
    const std::vector<std::uint32_t> children = cluster.children(node);
    const std::string& name = cluster.node(node).name;
    const std::optional<std::uint64_t> rate = common_rate(cluster, children);
    if (!rate) {
        return failure(Code::unsupported,
                       "the links below switch '{}' differ in their rates, for which "
                       "topology.conf has no words; write JSON",
                       name);
    }
    std::vector<std::string_view> machines;
    std::vector<std::string_view> switches;
    for (const std::uint32_t child : children) {
        (cluster.is_machine(child) ? machines : switches).push_back(cluster.node(child).name);
    }
    if (machines.empty() == switches.empty()) {
        return failure(Code::unsupported, "switch '{}' has {}, which Slurm refuses; write JSON",
                       name, machines.empty() ? "nothing below it" : "both machines and switches");
    }
    return fmt::format("SwitchName={} {}={}{}\n", name, machines.empty() ? "Switches" : "Nodes",
                       host_list(machines.empty() ? switches : machines),
                       *rate == 0 ? "" : fmt::format(" LinkSpeed={}", *rate / unit.rate));
}

} // namespace

Result<Cluster> parse_slurm_topology(std::string_view text, std::uint64_t bare_unit, Trees trees) {
    const std::uint64_t own_unit = unit_of_file(text);
    const std::uint64_t unit = own_unit != 0 ? own_unit : bare_unit;
    std::vector<SwitchLine> lines;
    std::size_t nodes = 0;
    for (LogicalLines source(text); source.next();) {
        Result<SwitchLine> line = LineParser(source.line(), source.number(), unit).run();
        if (!line.ok()) {
            return line.status();
        }
        nodes += 1 + line->machines.size();
        if (nodes > kClusterNodesMax) {
            return failure(Code::invalid_argument, "line {}: more than {} switches and machines",
                           source.number(), kClusterNodesMax);
        }
        lines.push_back(std::move(*line));
    }
    if (lines.empty()) {
        return Status(Code::invalid_argument, "line 1: there is no switch");
    }
    Result<std::vector<DraftNode>> drafts = Claims(lines).drafts();
    return drafts.ok() ? build_cluster(std::move(*drafts), trees) : drafts.status();
}

Result<std::string> to_slurm_topology(const Cluster& cluster) {
    UCG_ASSERT(!cluster.is_forest());
    const std::optional<Unit> unit = common_unit(cluster);
    if (!unit) {
        return Status(Code::unsupported,
                      "Slurm reads rates as whole numbers of 32 bits, and in no one unit those of "
                      "this cluster are such; write JSON");
    }
    const std::vector<ClusterNode>& nodes = cluster.nodes();
    const bool has_rates = std::any_of(nodes.begin(), nodes.end(),
                                       [](const ClusterNode& node) { return node.rate != 0; });
    std::string text = has_rates ? fmt::format("{}{}\n", kUnitComment, unit->name) : "";
    for (std::uint32_t node = 0; node < cluster.node_count(); ++node) {
        if (cluster.is_machine(node)) {
            continue;
        }
        const Result<std::string> line = switch_line(cluster, node, *unit);
        if (!line.ok()) {
            return line.status();
        }
        text += *line;
    }
    return text;
}

} // namespace ucg::topo
