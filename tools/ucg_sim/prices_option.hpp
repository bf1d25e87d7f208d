// The options that set the prices of a simulation: a model and its parameters.
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
    profile, ///< LogGP of each level of the profile.
    network_minimum,
    network_median, ///< The profile's network: pipelining postal, from minima or medians.
    pipelining_postal,
    postal,
    logp,
    logfp,
    loggp,
};
std::string_view name(Model model);

class PricesOptions {
  public:
    /// Adds the options. This object must outlive the parsing.
    void add_options(CLI::App& app);

    /// Checks that the model has the parameters that were given, and that those that it needs were
    /// given. To be called when all options are parsed. Throws CLI::ParseError.
    void check() const;

    /// Sets the prices. Models that take their prices from the profile take it from `facts`, which
    /// must outlive `options`. The rest of `facts` matters only for the model `profile`.
    void apply(const plan::Facts& facts, sim::Options& options) const;

    /// Returns the model and its parameters, for example "pipelining-postal: alpha-p 400 ns,
    /// alpha-r 100 ns".
    std::string describe(const cost::Profile& profile) const;
    Model model() const { return model_; }

  private:
    double time_ns(std::string_view parameter) const; ///< 0 if the parameter was not given.

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
