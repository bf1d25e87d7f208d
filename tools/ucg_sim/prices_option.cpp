#include "tools/ucg_sim/prices_option.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "tools/cli.hpp"
#include "tools/ucg_sim/units.hpp"

namespace ucg::tools {

namespace {

constexpr std::array kModels = {Model::profile,        Model::network_minimum,
                                Model::network_median, Model::pipelining_postal,
                                Model::postal,         Model::logp,
                                Model::logfp,          Model::loggp};

struct Parameter {
    std::string_view name;
    std::string_view description;
};

constexpr std::array kParameters = {
    Parameter{"alpha-p", "Latency that a sender's later messages overlap"},
    Parameter{"alpha-r", "What each message costs its sender beyond its bytes"},
    Parameter{"alpha", "Latency, during which a sender is busy"},
    Parameter{"beta", "Per byte of a message"},
    Parameter{"gamma", "Combining two vectors, per byte of one"},
    Parameter{"compute", "Combining two vectors, whatever their length"},
    Parameter{"latency", "L: from the end of sending to the start of receiving"},
    Parameter{"overhead", "o: of the processor at each end of a message"},
    Parameter{"gap", "g: between two messages of a sender"},
    Parameter{"gap-per-byte", "G: per byte of a message after the first"},
    Parameter{"copy", "Copying, per byte"},
};

constexpr std::string_view kFree = "free";

/// The parameters of a model; the first `needed` of them must be given.
struct Signature {
    std::vector<std::string_view> parameters;
    std::size_t needed;
};

Signature signature_of(Model model) {
    switch (model) {
    case Model::profile:
    case Model::network_minimum:
    case Model::network_median: return {{}, 0};
    case Model::pipelining_postal:
        return {{"alpha-p", "alpha-r", "beta", "gamma", "compute", "copy"}, 2};
    case Model::postal: return {{"alpha", "beta", "gamma", "compute", "copy"}, 1};
    case Model::logp: return {{"latency", "overhead", "gap", "gamma", "compute", "copy"}, 3};
    case Model::logfp:
        return {{"latency", "overhead", "gap", kFree, "gamma", "compute", "copy"}, 4};
    case Model::loggp:
        return {{"latency", "overhead", "gap", "gap-per-byte", "gamma", "compute", "copy"}, 4};
    }
    return {{}, 0};
}

/// Returns the network of the profile that the model uses; null for other models.
const cost::NetworkPostal* network_of(Model model, const cost::Profile& profile) {
    switch (model) {
    case Model::network_minimum: return &profile.network.minimum;
    case Model::network_median: return &profile.network.median;
    case Model::profile:
    case Model::pipelining_postal:
    case Model::postal:
    case Model::logp:
    case Model::logfp:
    case Model::loggp: return nullptr;
    }
    return nullptr;
}

std::string flags(const std::vector<std::string_view>& parameters) {
    return parameters.empty() ? "none" : fmt::format("--{}", fmt::join(parameters, ", --"));
}

} // namespace

std::string_view name(Model model) {
    static constexpr std::array<std::string_view, 8> kNames = {
        "profile", "network.minimum", "network.median", "pipelining-postal", "postal",
        "logp",    "logfp",           "loggp"};
    return kNames[static_cast<std::size_t>(model)];
}

void PricesOptions::add_options(CLI::App& app) {
    CLI::App& group = *app.add_option_group("Prices", "Times have units: 400ns, 0.4ns, 1.5us");
    add_choice_option(group, "--model", model_, std::vector<Model>(kModels.begin(), kModels.end()),
                      "What messages cost: the levels of the profile, its network by either of the "
                      "regressions that ucg_tune network writes, or equal links by a model");
    for (const Parameter& parameter : kParameters) {
        std::string models;
        for (const Model model : kModels) {
            const std::vector<std::string_view> has = signature_of(model).parameters;
            if (std::find(has.begin(), has.end(), parameter.name) != has.end()) {
                models += fmt::format("{}{}", models.empty() ? "" : ", ", name(model));
            }
        }
        const std::string key(parameter.name);
        given_.emplace_back(
            key, add_parsed_option(group, "--" + key, times_ns_[key], parse_time_ns, "TIME",
                                   fmt::format("{} ({})", parameter.description, models)));
    }
    given_.emplace_back(kFree,
                        group
                            .add_option("--free", free_messages_,
                                        "f: messages of a burst that leave without a gap (logfp)")
                            ->transform(whole_number(1, std::numeric_limits<std::uint32_t>::max()))
                            ->type_name("COUNT"));
    link_per_byte_ = add_parsed_option(
        group, "--host-link", link_per_byte_ns_, parse_time_ns, "TIME",
        "The ranks of a host share its link, per byte (default: it is never in the way)");
    link_per_message_ =
        add_parsed_option(group, "--host-link-message", link_per_message_ns_, parse_time_ns, "TIME",
                          "The same, between one message and the next");
}

void PricesOptions::check() const {
    const Signature signature = signature_of(model_);
    const std::vector<std::string_view>& has = signature.parameters;
    for (const auto& [parameter, option] : given_) {
        const auto at = std::find(has.begin(), has.end(), parameter);
        if (option->count() > 0 && at == has.end()) {
            throw CLI::ValidationError("--" + parameter,
                                       fmt::format("the model {} has no such parameter; it has: {}",
                                                   name(model_), flags(has)));
        }
        if (option->count() == 0 && at != has.end() &&
            static_cast<std::size_t>(at - has.begin()) < signature.needed) {
            throw CLI::RequiredError(fmt::format("--{} (for --model {})", parameter, name(model_)));
        }
    }
}

double PricesOptions::time_ns(std::string_view parameter) const {
    const auto found = times_ns_.find(parameter);
    UCG_ASSERT(found != times_ns_.end());
    return found->second;
}

void PricesOptions::apply(const plan::Facts& facts, sim::Options& options) const {
    const cost::Profile& profile = facts.profile;
    options.compute = {.copy_ns_per_byte = time_ns("copy"),
                       .combine_ns = time_ns("compute"),
                       .combine_ns_per_byte = time_ns("gamma")};
    switch (model_) {
    case Model::profile:
        options.network = sim::PerLevel(profile, plan::surroundings(facts));
        options.compute = sim::compute_of(profile);
        break;
    case Model::network_minimum:
    case Model::network_median: {
        const auto model = cost::pipelining_postal(*network_of(model_, profile), profile);
        options.network = model;
        options.compute = sim::compute_of(model);
        options.compute.copy_ns_per_byte = profile.copy_per_byte_ns;
        break;
    }
    case Model::pipelining_postal:
        options.network = cost::PipeliningPostal{.alpha_p_ns = time_ns("alpha-p"),
                                                 .alpha_r_ns = time_ns("alpha-r"),
                                                 .beta_ns_per_byte = time_ns("beta")};
        break;
    case Model::postal:
        options.network =
            cost::Postal{.alpha_ns = time_ns("alpha"), .beta_ns_per_byte = time_ns("beta")};
        break;
    case Model::logp:
        options.network = cost::LogP{time_ns("latency"), time_ns("overhead"), time_ns("gap")};
        break;
    case Model::logfp:
        options.network =
            cost::LogfP{time_ns("latency"), time_ns("overhead"), time_ns("gap"), free_messages_};
        break;
    case Model::loggp:
        options.network = cost::LogGp{time_ns("latency"), time_ns("overhead"), time_ns("gap"),
                                      time_ns("gap-per-byte")};
        break;
    }
    if (link_per_byte_->count() + link_per_message_->count() > 0) {
        options.host_link = sim::HostLink{link_per_message_ns_, link_per_byte_ns_};
    }
}

std::string PricesOptions::describe(const cost::Profile& profile) const {
    std::string text(name(model_));
    std::string_view separator = ": ";
    if (const cost::NetworkPostal* network = network_of(model_, profile)) {
        text += fmt::format(": alpha-p {}, alpha-r {}, beta {}, {}", time_text(network->alpha_p_ns),
                            time_text(network->alpha_r_ns), time_text(network->beta_ns_per_byte),
                            network->measured ? "measured" : "not measured");
    }
    for (const auto& [parameter, option] : given_) {
        if (option->count() > 0) {
            text += separator;
            text += parameter == kFree
                        ? fmt::format("free {}", free_messages_)
                        : fmt::format("{} {}", parameter, time_text(time_ns(parameter)));
            separator = ", ";
        }
    }
    if (link_per_byte_->count() + link_per_message_->count() > 0) {
        text += fmt::format("; host link {} per byte, {} per message", time_text(link_per_byte_ns_),
                            time_text(link_per_message_ns_));
    }
    return text;
}

} // namespace ucg::tools
