// ucg_plan: shows, explains, proves and searches what the planner makes of a collective call.
#include <vector>

#include "tools/cli.hpp"
#include "tools/ucg_plan/commands.hpp"

int main(int argc, char* argv[]) {
    using namespace ucg::tools;
    CLI::App app("Shows, explains, proves and searches the schedules that UCG's planner makes.",
                 "ucg_plan");
    app.require_subcommand(1);
    app.footer("A schedule is what one rank does for one collective call; it is executed exactly "
               "as it is shown.\n"
               "Exit status: 0 done, 1 failed (a proof too), 2 wrong usage. \"ucg_plan COMMAND "
               "--help\" has examples.");
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(make_list_command(app));
    commands.push_back(make_show_command(app));
    commands.push_back(make_verify_command(app));
    commands.push_back(make_explain_command(app));
    commands.push_back(make_search_command(app));
    commands.push_back(make_guidelines_command(app));
    return run(app, argc, argv, [&]() -> ucg::Status {
        for (const auto& command : commands) {
            if (command->is_chosen()) {
                return command->run();
            }
        }
        return {};
    });
}
