// ucg_sim agreement: where the planner's price of a row differs from its simulated time.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/cli.hpp"
#include "tools/ucg_plan/profile_option.hpp"

namespace ucg::tools {

class AgreementCommand {
  public:
    explicit AgreementCommand(CLI::App& parent);

    bool is_chosen() const { return app_.parsed(); }
    Status run() const;

  private:
    CLI::App& app_;
    std::vector<std::uint64_t> bytes_ = {8,        256,       2 << 10, 16 << 10,
                                         64 << 10, 512 << 10, 4 << 20, 16 << 20};
    std::size_t at_most_ = 50;
    std::string placement_;
    ProfileOption profile_;
    Format format_ = Format::text;
};

} // namespace ucg::tools
