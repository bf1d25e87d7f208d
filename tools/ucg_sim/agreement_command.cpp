#include "tools/ucg_sim/agreement_command.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "tools/ucg_plan/usual_placements.hpp"
#include "tools/ucg_sim/agreement.hpp"

namespace ucg::tools {
namespace {

using Json = nlohmann::ordered_json;

struct PlacedCells {
    std::string placement;
    std::vector<AgreementCell> cells;
};

struct PlacedCell {
    std::string_view placement;
    const AgreementCell* cell;
};

/// From about this number of ranks on an alltoall takes long to simulate.
constexpr Rank kManyRanks = 512;

/// Returns the first value, one in the middle and the last.
std::vector<std::uint64_t> few_of(const std::vector<std::uint64_t>& bytes) {
    if (bytes.size() <= 3) {
        return bytes;
    }
    return {bytes.front(), bytes[bytes.size() / 2], bytes.back()};
}

double per_cent(std::size_t part, std::size_t whole) {
    return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 100;
}

std::string text_of(const AgreementSummary& summary) {
    return fmt::format("{} cells: within 10 % {:.1f} %, within 25 % {:.1f} %; {} choices: within 3 "
                       "% of the best {:.1f} %\n",
                       summary.cells, per_cent(summary.within_10, summary.cells),
                       per_cent(summary.within_25, summary.cells), summary.choices,
                       per_cent(summary.choices_within_3, summary.choices));
}

std::string text_of(const std::vector<PlacedCells>& placed) {
    std::string text;
    AgreementSummary all;
    for (const auto& [placement, cells] : placed) {
        AgreementSummary summary;
        summary.add(cells);
        all.add(cells);
        text += fmt::format("{}: {}", placement, text_of(summary));
    }
    return text + fmt::format("all: {}", text_of(all));
}

std::string text(const std::vector<PlacedCells>& placed, const std::vector<PlacedCell>& worst) {
    std::string text;
    for (const auto& [placement, cell] : worst) {
        text += fmt::format("{:6.2f}  {}, {} {} of {} bytes: {:.3f} us, simulated {:.3f} us{}\n",
                            cell->ratio(), placement, graph::name(cell->row->collective),
                            cell->row->name, cell->bytes, cell->planned_ns / 1000,
                            cell->simulated_ns / 1000,
                            cell->regret > 0 ? fmt::format("; chosen, {:.0f} % more than {}",
                                                           100 * cell->regret, cell->best)
                            : cell->chosen   ? "; chosen"
                                             : "");
    }
    return text + text_of(placed);
}

std::vector<AgreementCell> in_order_of_rows(std::vector<AgreementCell> cells) {
    std::stable_sort(cells.begin(), cells.end(),
                     [](const AgreementCell& a, const AgreementCell& b) { return a.row < b.row; });
    return cells;
}

/// Returns a line for each row and placement with cells that deviate by more than 10 %.
std::string deviations(const std::vector<PlacedCells>& placed) {
    std::string text;
    for (const auto& [placement, cells] : placed) {
        const plan::Algorithm* row = nullptr;
        for (const AgreementCell& cell : in_order_of_rows(cells)) {
            if (cell.deviation() <= kClose) {
                continue;
            }
            if (cell.row != row) {
                row = cell.row;
                text += fmt::format("{}{}, {} {}:", text.empty() ? "" : "\n", placement,
                                    graph::name(row->collective), row->name);
            }
            text += fmt::format(" {}={:.2f}", size_text(cell.bytes), cell.ratio());
        }
    }
    return text + "\n" + text_of(placed);
}

/// Returns what is wrong with `text` as the beginning of a placement's name; empty if nothing is.
std::string begins_a_name(const std::string& text) {
    const Result<std::vector<NamedPlacement>> placements = usual_placements();
    if (!placements) {
        return std::string(placements.status().message());
    }
    std::string names;
    for (const auto& [name, placement] : *placements) {
        if (name.starts_with(text)) {
            return {};
        }
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    }
    return fmt::format("expected the beginning of one of {}; found '{}'", names, text);
}

std::string json(const std::vector<PlacedCells>& placed) {
    Json list = Json::array();
    for (const auto& [placement, cells] : placed) {
        for (const AgreementCell& cell : cells) {
            list.push_back({{"placement", placement},
                            {"collective", graph::name(cell.row->collective)},
                            {"algorithm", cell.row->name},
                            {"bytes", cell.bytes},
                            {"planned_ns", cell.planned_ns},
                            {"simulated_ns", cell.simulated_ns},
                            {"chosen", cell.chosen},
                            {"regret", cell.regret},
                            {"best", cell.best}});
        }
    }
    return list.dump() + "\n";
}

} // namespace

AgreementCommand::AgreementCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "agreement", "Hold the planner's price of every algorithm against the simulation of its "
                       "schedules")) {
    add_size_option(app_, "--bytes", bytes_,
                    "Lengths of vectors, of all blocks together where there are blocks (default: "
                    "8, 256, 2k, 16k, 64k, 512k, 4M, 16M; of 512 ranks and more the first, one in "
                    "the middle and the last)")
        ->delimiter(',');
    app_.add_option("--worst", at_most_, "How many cells to print, the worst first (default: 50)")
        ->transform(whole_number(0, std::numeric_limits<std::size_t>::max()))
        ->type_name("COUNT");
    app_.add_option("--placement", placement_,
                    "Those alone whose name begins so, such as \"1 host\" (default: all)")
        ->check(CLI::Validator(begins_a_name, ""))
        ->type_name("TEXT");
    app_.add_flag("--deviations", deviations_,
                  "The ratios that are off by more than 10 %, a line for each algorithm and "
                  "placement");
    profile_.add_option(app_);
    add_format_option(app_, format_, {Format::text, Format::json});
    app_.footer("Ratios are the planner's price by the simulated time.\n"
                "Examples:\n"
                "  ucg_sim agreement\n"
                "  ucg_sim agreement --placement '4 hosts' --worst 10 --bytes 8,64k");
}

Status AgreementCommand::run() const {
    const Result<cost::Profile> profile = profile_.load();
    if (!profile) {
        return profile.status();
    }
    const Result<std::vector<NamedPlacement>> placements = usual_placements();
    if (!placements) {
        return placements.status();
    }
    std::vector<std::uint64_t> bytes = bytes_;
    std::sort(bytes.begin(), bytes.end());
    std::vector<PlacedCells> placed;
    for (const auto& [name, placement] : *placements) {
        if (!name.starts_with(placement_)) {
            continue;
        }
        Result<std::vector<AgreementCell>> cells =
            agreement(profile_.facts(placement, *profile),
                      placement.rank_count() >= kManyRanks ? few_of(bytes) : bytes);
        if (!cells) {
            return cells.status();
        }
        placed.push_back({name, std::move(*cells)});
    }
    if (deviations_) {
        return write_output("-", deviations(placed));
    }
    if (format_ == Format::json) {
        return write_output("-", json(placed));
    }
    std::vector<PlacedCell> worst;
    for (const auto& [name, cells] : placed) {
        for (const AgreementCell& cell : cells) {
            worst.push_back({name, &cell});
        }
    }
    std::stable_sort(worst.begin(), worst.end(), [](const PlacedCell& a, const PlacedCell& b) {
        return a.cell->deviation() > b.cell->deviation();
    });
    worst.resize(std::min(worst.size(), at_most_));
    return write_output("-", text(placed, worst));
}

} // namespace ucg::tools
