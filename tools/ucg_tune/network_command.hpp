// The command ucg_tune network.
#pragma once

#include <string>

#include "tools/cli.hpp"
#include "tools/ucg_tune/network_probe.hpp"
#include "tools/ucg_tune/output.hpp"

namespace ucg::tools {

class NetworkCommand {
  public:
    explicit NetworkCommand(CLI::App& parent);
    bool is_chosen() const { return app_.parsed(); }
    Status run();

  private:
    void check() const; ///< Throws CLI::ParseError.
    Status connect(TcpStar& bootstrap) const;
    Status write(const NetworkResult& result, const ExistingProfile& base,
                 const std::string& path) const;
    std::string command() const;

    CLI::App& app_;
    Target target_;
    std::string plot_;
    std::string bootstrap_;
    Rank processes_ = 0; ///< 0: a launcher starts the processes.
    Format format_ = Format::text;
    bool silent_ = false;
    NetworkOptions options_;
};

} // namespace ucg::tools
