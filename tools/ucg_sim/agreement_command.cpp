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

std::string text_of(const AgreementSummary& summary) {
    return fmt::format(
        "{} cells: within 10 % {:.1f} %, within 25 % {:.1f} %, rivals within {:.0f} %; {} choices: "
        "within 3 % of the best {:.1f} %, at worst {:.1f} % more, {:.2f} % in the geometric mean\n",
        summary.cells, 100 * summary.within_10_part(), 100 * summary.within_25_part(),
        100 * summary.worst_rival, summary.choices, 100 * summary.good_choices_part(),
        100 * summary.worst_regret, 100 * summary.mean_regret());
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

Json json_of(const std::string& placement, const AgreementSummary& summary) {
    return {{"placement", placement},
            {"cells", summary.cells},
            {"within_10", summary.within_10_part()},
            {"within_25", summary.within_25_part()},
            {"worst_rival", summary.worst_rival},
            {"choices", summary.choices},
            {"good_choices", summary.good_choices_part()},
            {"worst_regret", summary.worst_regret},
            {"mean_regret", summary.mean_regret()}};
}

Json json_of(const std::string& placement, const AgreementCell& cell) {
    return {{"placement", placement},
            {"collective", graph::name(cell.row->collective)},
            {"algorithm", cell.row->name},
            {"bytes", cell.bytes},
            {"planned_ns", cell.planned_ns},
            {"simulated_ns", cell.simulated_ns},
            {"deviation", cell.deviation()},
            {"chosen", cell.chosen},
            {"rival", cell.rival},
            {"regret", cell.regret},
            {"best", cell.best}};
}

std::string json(const std::vector<PlacedCells>& placed) {
    Json summaries = Json::array();
    Json list = Json::array();
    for (const auto& [placement, cells] : placed) {
        AgreementSummary summary;
        summary.add(cells);
        summaries.push_back(json_of(placement, summary));
        for (const AgreementCell& cell : cells) {
            list.push_back(json_of(placement, cell));
        }
    }
    return Json{{"placements", summaries}, {"cells", list}}.dump() + "\n";
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
    profile_.add_option(app_);
    add_format_option(app_, format_, {Format::text, Format::json});
    app_.footer(
        "Ratios are the planner's price by the simulated time. A cell is one algorithm at one\n"
        "length. Rivals are the chosen algorithm and those with at most 1.5 times its\n"
        "simulated time or price: a wrong price of theirs can change the choice.\n"
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
