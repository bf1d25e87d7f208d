// The commands of ucg_plan, each in the file named after it.
#pragma once

#include <memory>

#include <CLI/CLI.hpp>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

class Command {
  public:
    virtual ~Command() = default;
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    bool is_chosen() const { return app_.parsed(); }
    virtual Status run() const = 0;

  protected:
    explicit Command(CLI::App& app) : app_(app) {}
    CLI::App& app_;
};

/// Each of these adds a subcommand to `parent`, which must outlive the command that is returned.
std::unique_ptr<Command> make_list_command(CLI::App& parent);
std::unique_ptr<Command> make_show_command(CLI::App& parent);
std::unique_ptr<Command> make_verify_command(CLI::App& parent);
std::unique_ptr<Command> make_explain_command(CLI::App& parent);
std::unique_ptr<Command> make_search_command(CLI::App& parent);
std::unique_ptr<Command> make_guidelines_command(CLI::App& parent);

} // namespace ucg::tools
