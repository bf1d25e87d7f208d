// The command ucg_tune import-ucx-perftest.
#pragma once

#include <string>
#include <vector>

#include "tools/cli.hpp"
#include "tools/ucg_tune/import_fit.hpp"
#include "tools/ucg_tune/output.hpp"

namespace ucg::tools {

class ImportCommand {
  public:
    explicit ImportCommand(CLI::App& parent);
    bool is_chosen() const { return app_.parsed(); }
    Status run();

  private:
    Result<std::vector<PerftestRow>> read() const;
    Status write(const Import& import, const ExistingProfile& base, const std::string& path) const;

    CLI::App& app_;
    std::vector<std::string> files_;
    Target target_;
    topo::Distance level_ = topo::Distance::network;
    Format format_ = Format::text;
};

} // namespace ucg::tools
