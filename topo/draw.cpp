#include "topo/draw.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "topo/cpus.hpp"

namespace ucg::topo {

namespace {

using Items = std::vector<std::uint32_t>; // Cores or ranks.

// One level of nesting: which group of this level an item is in, or nothing if that is not known.
struct Level {
    std::string_view word;
    std::string remark; // Text after each group's number: " (16 MiB)".
    std::function<std::optional<std::uint32_t>(std::uint32_t item)> index;
};

struct Group {
    std::string label;
    Items items; // Items that no inner group holds.
    std::vector<Group> inner;
};

Group nest(std::string label, const Items& items, std::span<const Level> levels) {
    Group group{std::move(label), {}, {}};
    if (levels.empty()) {
        group.items = items;
        return group;
    }
    const Level& level = levels.front();
    std::unordered_map<std::uint32_t, std::size_t> position; // In `parts`, by group index.
    std::vector<std::pair<std::uint32_t, Items>> parts;
    for (const std::uint32_t item : items) {
        const std::optional<std::uint32_t> index = level.index(item);
        if (!index) {
            group.items.push_back(item);
            continue;
        }
        const auto [entry, added] = position.try_emplace(*index, parts.size());
        if (added) {
            parts.push_back({*index, {}});
        }
        parts[entry->second].second.push_back(item);
    }
    for (const auto& [index, part] : parts) {
        group.inner.push_back(
            nest(fmt::format("{} {}{}", level.word, index, level.remark), part, levels.subspan(1)));
    }
    return group;
}

using Describe = std::function<std::string(const Items&)>;

void print_outline(fmt::memory_buffer& text, const Group& group, const Describe& describe,
                   int depth) {
    fmt::format_to(std::back_inserter(text), "{:{}}{}{}{}\n", "", depth * 2, group.label,
                   group.items.empty() ? "" : ": ",
                   group.items.empty() ? "" : describe(group.items));
    for (const Group& inner : group.inner) {
        print_outline(text, inner, describe, depth + 1);
    }
}

// Writes groups as nested tables in the label of a single node, because Graphviz keeps the order of
// table cells but not that of clusters.
class DotWriter {
  public:
    explicit DotWriter(const Describe& describe) : describe_(describe) {}

    std::string write(std::string_view name, const Group& root) {
        line(0, fmt::format("digraph {} {{", name));
        line(1, "node [shape=plain, fontname=\"Helvetica\"];");
        line(1, fmt::format("{} [label=<", name));
        table(root, 2);
        line(1, ">];");
        line(0, "}");
        return fmt::to_string(text_);
    }

  private:
    // Writes a title over the group's own items and its inner groups, arranged in about a square.
    void table(const Group& group, int depth) {
        const std::size_t count = group.inner.size() + (group.items.empty() ? 0 : 1);
        const auto columns = static_cast<std::size_t>(std::ceil(std::sqrt(count)));
        line(depth, R"(<TABLE BORDER="1" CELLBORDER="0" STYLE="ROUNDED">)");
        line(depth, fmt::format("<TR><TD COLSPAN=\"{}\">{}</TD></TR>",
                                std::max<std::size_t>(columns, 1), group.label));
        for (std::size_t cell = 0; cell < count; ++cell) {
            line(depth, cell % columns == 0 ? "<TR><TD>" : "<TD>");
            content(group, cell, depth + 1);
            line(depth, (cell + 1) % columns == 0 || cell + 1 == count ? "</TD></TR>" : "</TD>");
        }
        line(depth, "</TABLE>");
    }

    // Writes one cell of the group: the inner groups come first, the items that none of them holds
    // last.
    void content(const Group& group, std::size_t cell, int depth) {
        if (cell == group.inner.size()) {
            line(depth, describe_(group.items));
        } else if (const Group& inner = group.inner[cell]; inner.inner.empty()) {
            line(depth,
                 fmt::format(R"(<TABLE BORDER="1" CELLBORDER="0"><TR><TD>{}<BR/>{}</TD></TR>)"
                             "</TABLE>",
                             inner.label, describe_(inner.items)));
        } else {
            table(inner, depth);
        }
    }

    void line(int depth, std::string_view content) {
        fmt::format_to(std::back_inserter(text_), "{:{}}{}\n", "", depth * 2, content);
    }

    const Describe& describe_;
    fmt::memory_buffer text_;
};

Items count_up(std::size_t count) {
    Items items(count);
    std::iota(items.begin(), items.end(), 0U);
    return items;
}

std::string counted(std::uint64_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string ranges(std::string_view one, const Items& numbers) {
    return fmt::format("{}{} {}", one, numbers.size() == 1 ? "" : "s", format_ranges(numbers));
}

Items cpus_of(const Machine& machine, const Items& cores) {
    Items cpus;
    for (const std::uint32_t core : cores) {
        const Items& threads = machine.cores()[core].threads;
        cpus.insert(cpus.end(), threads.begin(), threads.end());
    }
    std::sort(cpus.begin(), cpus.end());
    return cpus;
}

std::string machine_label(const Machine& machine) {
    const Items cpus = cpus_of(machine, count_up(machine.core_count()));
    std::string label =
        fmt::format("Machine: {}, {}, {}, {}, {}", counted(machine.package_count(), "package"),
                    counted(machine.numa_count(), "NUMA domain"),
                    counted(machine.l3_count(), "last-level cache"),
                    counted(machine.core_count(), "core"), counted(cpus.size(), "CPU"));
    if (machine.memory_bytes() > 0) {
        label += fmt::format(", {} memory on NUMA nodes", format_bytes(machine.memory_bytes()));
    }
    return label;
}

std::string size_remark(std::uint64_t bytes) {
    return bytes > 0 ? fmt::format(" ({})", format_bytes(bytes)) : std::string();
}

// Returns the levels of nesting of a machine, down to the innermost cache that several cores share.
std::vector<Level> machine_levels(const Machine& machine) {
    const std::vector<Core>& cores = machine.cores();
    std::vector<Level> levels = {
        {"Package", "", [&](std::uint32_t i) { return cores[i].package; }},
        {"NUMA", "", [&](std::uint32_t i) { return cores[i].numa; }},
        {"Cache", size_remark(machine.l3_bytes()), [&](std::uint32_t i) { return cores[i].l3; }},
    };
    if (machine.l2_count() > machine.l3_count() && machine.l2_count() < machine.core_count()) {
        levels.push_back(
            {"L2", size_remark(machine.l2_bytes()), [&](std::uint32_t i) { return cores[i].l2; }});
    }
    return levels;
}

std::vector<Level> placement_levels(const Placement& placement) {
    const auto level = [&](std::string_view word, std::uint32_t Place::*index, Distance distance) {
        return Level{word, "", [&placement, index, distance](std::uint32_t rank) {
                         const Place place = placement.place(static_cast<Rank>(rank));
                         return place.known <= distance ? std::optional(place.*index)
                                                        : std::nullopt;
                     }};
    };
    return {level("Host", &Place::host, Distance::host),
            level("Package", &Place::package, Distance::package),
            level("NUMA", &Place::numa, Distance::numa),
            level("Cache", &Place::cache, Distance::cache),
            level("Core", &Place::core, Distance::core)};
}

Group nest(const Placement& placement) {
    const std::string label = fmt::format(
        "Placement: {} on {}", counted(static_cast<std::uint64_t>(placement.rank_count()), "rank"),
        counted(placement.host_count(), "host"));
    return nest(label, count_up(static_cast<std::size_t>(placement.rank_count())),
                placement_levels(placement));
}

std::string describe_ranks(const Items& items) {
    return ranges("rank", items);
}

// Returns how many ranks are at each distance from the next rank: "10 cache, 1 host".
std::string neighbour_distances(const Placement& placement) {
    std::array<std::uint64_t, kDistanceCount> counts = {};
    for (Rank rank = 0; rank + 1 < placement.rank_count(); ++rank) {
        ++counts[static_cast<std::size_t>(placement.distance(rank, rank + 1))];
    }
    std::string text;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i],
                                name(static_cast<Distance>(i)));
        }
    }
    return text;
}

} // namespace

std::string format_bytes(std::uint64_t bytes) {
    static constexpr std::array<std::string_view, 6> kUnits = {"B",   "KiB", "MiB",
                                                               "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    const bool whole = value == std::floor(value);
    return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kUnits[unit]);
}

std::string to_outline(const Machine& machine) {
    const Group root =
        nest(machine_label(machine), count_up(machine.core_count()), machine_levels(machine));
    fmt::memory_buffer text;
    print_outline(
        text, root,
        [&](const Items& cores) {
            const Items cpus = cpus_of(machine, cores);
            return ranges("core", cores) + (cpus.empty() ? "" : ", " + ranges("CPU", cpus));
        },
        0);
    return fmt::to_string(text);
}

std::string to_outline(const Placement& placement) {
    fmt::memory_buffer text;
    const std::string distances = neighbour_distances(placement);
    if (!distances.empty()) {
        fmt::format_to(std::back_inserter(text), "From each rank to the next: {}\n", distances);
    }
    print_outline(text, nest(placement), describe_ranks, 0);
    return fmt::to_string(text);
}

std::string to_dot(const Machine& machine) {
    std::vector<Level> levels = machine_levels(machine);
    levels.push_back({"Core", "", [](std::uint32_t core) { return core; }});
    const Group root = nest(machine_label(machine), count_up(machine.core_count()), levels);
    const Describe describe = [&](const Items& cores) {
        return ranges("CPU", cpus_of(machine, cores));
    };
    return DotWriter(describe).write("machine", root);
}

std::string to_dot(const Placement& placement) {
    const Describe describe = describe_ranks;
    return DotWriter(describe).write("placement", nest(placement));
}

} // namespace ucg::topo
