// The options that say what a simulation charges for: a model and its parameters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::tools {

enum class Model {
    profile, ///< The profile's levels.
    network_minimum,
    network_median, ///< The profile's network, pipelining postal, by either regression.
    pipelining_postal,
    postal,
    logp,
    logfp,
    loggp,
};
std::string_view name(Model model);

class PricesOptions {
  public:
    /// This object must outlive the parsing.
    void add_options(CLI::App& app);

    /// To be called when all options are parsed: has the model the parameters that were given, and
    /// were those given that it cannot do without? Throws CLI::ParseError.
    void check() const;

    /// Sets the prices. Models that take theirs from the profile take it from `facts`; it must
    /// outlive the options. What else `facts` say counts by the profile's levels alone.
    void apply(const plan::Facts& facts, sim::Options& options) const;

    /// "pipelining-postal: alpha-p 400 ns, alpha-r 100 ns".
    std::string describe(const cost::Profile& profile) const;
    Model model() const { return model_; }

  private:
    double time_ns(std::string_view parameter) const; ///< 0 if it was not given.

    Model model_ = Model::profile;
    std::map<std::string, double, std::less<>> times_ns_; ///< By the parameter's name.
    std::vector<std::pair<std::string, const CLI::Option*>> given_;
    std::uint32_t free_messages_ = 1;
    double link_per_byte_ns_ = 0;
    double link_per_message_ns_ = 0;
    const CLI::Option* link_per_byte_ = nullptr;
    const CLI::Option* link_per_message_ = nullptr;
};

} // namespace ucg::tools
