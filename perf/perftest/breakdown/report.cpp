#include "perf/perftest/breakdown/report.hpp"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "perf/perftest/breakdown/bars.hpp"

namespace ucg::perftest::breakdown {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kCategories = {Category::llp, Category::hlp, Category::misc, Category::io,
                                    Category::network};

std::string component_line(const Component& component) {
    std::string line = fmt::format("  {:<52} {:>10.2f} {:>9.2f} {:>9}", component.name,
                                   component.ns, component.deviation_ns, component.samples);
    return component.note.empty() ? line + '\n' : line + "  " + component.note + '\n';
}

std::string times_text(double times) {
    return times == 1 ? std::string() : fmt::format(" ({:.4g} times)", times);
}

std::string comparison_text(const Comparison& comparison) {
    const TimeModel& model = comparison.model;
    const double total = model.total_ns();
    std::string text = fmt::format("  {}\n", model.name);
    for (const Term& term : model.terms) {
        text += fmt::format("    {:<50} {:>10.2f} ns {:>6.1f} %\n",
                            term.component.name + times_text(term.times), term.ns(),
                            100 * term.ns() / total);
    }
    text += fmt::format("    {:<50} {:>10.2f} ns\n    {:<50} {:>10.2f} ns  +- {:.2f}\n"
                        "    {:<50} {:>+10.1f} %\n",
                        "modelled", total, "observed", comparison.observed.ns,
                        comparison.observed.deviation_ns, "error", 100 * comparison.error());
    for (const Term& term : comparison.missing) {
        text += fmt::format("    {:<50} {:>10.2f} ns  {}\n", "missing: " + term.component.name,
                            term.ns(), term.component.note);
    }
    if (!comparison.missing.empty()) {
        text += fmt::format("    {:<50} {:>+10.1f} %\n", "error with what was missing",
                            100 * comparison.error_with_missing());
    }
    return text;
}

Json to_json(const Component& component) {
    return {{"name", component.name},       {"category", name(component.category)},
            {"ns", component.ns},           {"deviation_ns", component.deviation_ns},
            {"samples", component.samples}, {"note", component.note}};
}

Json to_json(const std::vector<Term>& terms) {
    Json list = Json::array();
    for (const Term& term : terms) {
        Json object = to_json(term.component);
        object["times"] = term.times;
        list.push_back(std::move(object));
    }
    return list;
}

Json to_json(const Comparison& comparison) {
    return {{"name", comparison.model.name},
            {"terms", to_json(comparison.model.terms)},
            {"modelled_ns", comparison.model.total_ns()},
            {"observed", to_json(comparison.observed)},
            {"error", comparison.error()},
            {"missing", to_json(comparison.missing)},
            {"error_with_missing", comparison.error_with_missing()}};
}

Category category_of(const std::string& text) {
    for (const Category category : kCategories) {
        if (name(category) == text) {
            return category;
        }
    }
    throw std::invalid_argument("unknown category " + text);
}

Component component_of(const Json& json) {
    return {.name = json.at("name").get<std::string>(),
            .category = category_of(json.at("category").get<std::string>()),
            .ns = json.at("ns").get<double>(),
            .deviation_ns = json.at("deviation_ns").get<double>(),
            .samples = json.at("samples").get<std::uint64_t>(),
            .note = json.at("note").get<std::string>()};
}

std::vector<Term> terms_of(const Json& json) {
    std::vector<Term> terms;
    for (const Json& term : json) {
        terms.push_back({component_of(term), term.at("times").get<double>()});
    }
    return terms;
}

Section section_of(const Json& json) {
    Section section{.title = json.at("title").get<std::string>(), .components = {}};
    for (const Json& component : json.at("components")) {
        section.components.push_back(component_of(component));
    }
    for (const Json& model : json.at("models")) {
        section.comparisons.push_back(
            {{model.at("name").get<std::string>(), terms_of(model.at("terms"))},
             component_of(model.at("observed")),
             terms_of(model.at("missing"))});
    }
    section.notes = json.at("notes").get<std::vector<std::string>>();
    return section;
}

} // namespace

std::string text_report(const Findings& findings) {
    std::string text;
    for (const auto& [key, value] : findings.facts) {
        text += fmt::format("# {:<22} {}\n", key, value);
    }
    for (const Section& section : findings.sections) {
        text += fmt::format("\n{}\n  {:<52} {:>10} {:>9} {:>9}\n", section.title, "component", "ns",
                            "+- ns", "samples");
        for (const Component& component : section.components) {
            text += component_line(component);
        }
        for (const Comparison& comparison : section.comparisons) {
            text += '\n' + comparison_text(comparison);
        }
        for (const std::string& note : section.notes) {
            text += fmt::format("  note: {}\n", note);
        }
    }
    return text;
}

std::string json_report(const Findings& findings) {
    Json facts = Json::object();
    for (const auto& [key, value] : findings.facts) {
        facts[key] = value;
    }
    Json sections = Json::array();
    for (const Section& section : findings.sections) {
        Json components = Json::array();
        for (const Component& component : section.components) {
            components.push_back(to_json(component));
        }
        Json models = Json::array();
        for (const Comparison& comparison : section.comparisons) {
            models.push_back(to_json(comparison));
        }
        sections.push_back({{"title", section.title},
                            {"components", std::move(components)},
                            {"models", std::move(models)},
                            {"notes", section.notes}});
    }
    const Json all = {{"facts", std::move(facts)}, {"sections", std::move(sections)}};
    return all.dump(2) + '\n';
}

ucg::Result<Findings> parse_findings(std::string_view json) {
    try {
        const Json all = Json::parse(json);
        Findings findings;
        for (const auto& [key, value] : all.at("facts").items()) {
            findings.facts.emplace_back(key, value.get<std::string>());
        }
        for (const Json& section : all.at("sections")) {
            findings.sections.push_back(section_of(section));
        }
        return findings;
    } catch (const std::exception& error) { // From the JSON library, or for an unknown category.
        return failure(Code::invalid_argument, "not a breakdown as --json writes it: {}",
                       error.what());
    }
}

std::string svg_report(const Findings& findings) {
    std::vector<Bar> bars;
    std::string subtitle;
    for (const Section& section : findings.sections) {
        for (const Comparison& comparison : section.comparisons) {
            for (Bar& bar : bars_of(comparison)) {
                bar.title = section.title + ", " + bar.title;
                bars.push_back(std::move(bar));
            }
        }
    }
    for (const auto& [key, value] : findings.facts) {
        if (key == "processor" || key == "transport") {
            subtitle += (subtitle.empty() ? "" : "; ") + value;
        }
    }
    return bars_svg(bars, "Breakdown of short messages", subtitle);
}

} // namespace ucg::perftest::breakdown
