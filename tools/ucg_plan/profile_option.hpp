// The option --profile: the costs that the planner compares algorithms with.
#pragma once

#include <string>

#include "tools/cli.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

class ProfileOption {
  public:
    void add_option(CLI::App& app) {
        app.add_option("--profile", path_,
                       "Costs of the machine, TOML; \"-\": standard input (default: built in)")
            ->type_name("FILE");
    }

    Result<cost::Profile> load() const {
        if (path_.empty()) {
            return cost::default_profile();
        }
        const Result<std::string> text = read_input(path_);
        if (!text) {
            return text.status();
        }
        Result<cost::Profile> profile = cost::parse_toml(*text);
        return profile ? profile : in_file(path_, profile.status());
    }

  private:
    std::string path_;
};

} // namespace ucg::tools
