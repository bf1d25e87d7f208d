#include "tools/ucg_tune/output.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

extern char** environ;

namespace ucg::tools {

void Target::add_options(CLI::App& app) {
    // The help names no folder of whoever runs it: manuals are made from it.
    CLI::Option* const output =
        app.add_option("-o,--output", output_,
                       "Profile to write; \"-\": standard output, and no report (default: where "
                       "UCG finds it, ucg/profile.toml in $XDG_CONFIG_HOME or $HOME/.config)")
            ->type_name("FILE");
    app.add_flag("--system", system_,
                 "Write the profile for all users of hosts with this kind of processor: "
                 "ucg/profiles/PROCESSOR.toml in the first folder of $XDG_CONFIG_DIRS or in "
                 "/etc/xdg. For root")
        ->excludes(output);
}

Result<std::string> Target::path() const {
    std::string path = !output_.empty() ? output_
                       : system_        ? capi::system_profile_path()
                                        : capi::default_profile_path();
    if (path.empty()) {
        return failure(Code::invalid_argument, "{}",
                       system_ ? "--system: XDG_CONFIG_DIRS names no absolute folder"
                               : "neither XDG_CONFIG_HOME nor HOME is set: name the profile by "
                                 "--output");
    }
    return path;
}

Status Target::prepare(const std::string& path) const {
    if (system_) {
        ::umask(022); // All users read the file, whatever root keeps to itself otherwise.
    }
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    Status status;
    if (output_.empty() && !std::filesystem::create_directories(folder, error) && error) {
        status = failure(Code::io_error, "{}: cannot make this folder: {}", folder.string(),
                         error.message());
    } else {
        status = check_output(path);
    }
    if (!status.ok() && system_) {
        return failure(status.code(),
                       "--system: {} (it is for root; without it the profile is "
                       "yours alone)",
                       status.message());
    }
    return status;
}

Result<ExistingProfile> existing_profile(const std::string& path) {
    std::error_code error;
    if (path == "-" || !std::filesystem::is_regular_file(path, error) ||
        std::filesystem::file_size(path, error) == 0) { // A shell may have made it.
        return ExistingProfile{capi::builtin_costs_here().profile, ""};
    }
    const Result<std::string> text = read_input(path);
    if (!text.ok()) {
        return text.status();
    }
    const Result<cost::Profile> profile =
        cost::parse_toml(*text, capi::builtin_costs_here().profile);
    if (!profile.ok()) {
        return in_file(path, profile.status());
    }
    return ExistingProfile{*profile, cost::measured_on(*text)};
}

cost::Profile profile_here(const ExistingProfile& existing) {
    if (!cost::is_foreign(existing.measured_on)) {
        return existing.profile;
    }
    constexpr auto kNetwork = static_cast<std::size_t>(topo::Distance::network);
    cost::Profile profile = capi::builtin_costs_here().profile;
    profile.levels[kNetwork] = existing.profile.levels[kNetwork];
    profile.levels_measured[kNetwork] = existing.profile.levels_measured[kNetwork];
    profile.network = existing.profile.network;
    profile.links = existing.profile.links;
    return profile;
}

Status refuse_foreign(const ExistingProfile& existing, const Target& target,
                      const std::string& path) {
    if (target.is_named() || !cost::is_foreign(existing.measured_on)) {
        return {};
    }
    return failure(Code::invalid_argument,
                   "{} was measured on {}, and this is {}: it stays, for hosts of that kind. Name "
                   "another file, `ucg_tune memory -o FILE`, and set UCG_PROFILE=FILE on hosts of "
                   "this kind; to replace it, name it itself: `ucg_tune memory -o {}`",
                   path, existing.measured_on, cost::processor_text(topo::this_processor()), path);
}

Status write_results(const std::string& path, const std::string& profile, const std::string& report,
                     bool silent) {
    Status written = path.empty() ? Status() : write_output(path, profile);
    if (path == "-") {
        return written;
    }
    const Status printed = write_output("-", report);
    if (written.ok() && printed.ok() && !path.empty() && !silent) {
        std::fprintf(stderr, "ucg_tune: wrote %s\n", path.c_str());
    }
    return written.ok() ? printed : written;
}

void tell_foreign(const ExistingProfile& existing, const std::string& path) {
    if (cost::is_foreign(existing.measured_on)) {
        std::fprintf(stderr,
                     "ucg_tune: %s was measured on %s before, and this is %s: UCG does not read it "
                     "here unless UCG_PROFILE names it. `ucg_tune memory -o %s` makes it this "
                     "machine's, and keeps the network\n",
                     path.c_str(), existing.measured_on.c_str(),
                     cost::processor_text(topo::this_processor()).c_str(), path.c_str());
    }
}

void check_outputs(const CLI::App& app, const std::string& output, Format format,
                   const std::string& plot) {
    if (output == "-" && app.count("--format") > 0 && format != Format::toml) {
        throw CLI::ValidationError("--format", fmt::format("with --output - the profile alone is "
                                                           "printed: expected toml, found {}",
                                                           name(format)));
    }
    if (plot.find_first_of("'\\\n") != std::string::npos) {
        throw CLI::ValidationError(
            "--plot",
            fmt::format("expected a name without quotes and backslashes, found {}", plot));
    }
}

Status draw(const std::string& program) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return failure(Code::io_error, "cannot make a pipe: {}", std::strerror(errno));
    }
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    const std::array<char*, 3> arguments = {const_cast<char*>("gnuplot"), const_cast<char*>("-"),
                                            nullptr};
    pid_t process = 0;
    const int error =
        ::posix_spawnp(&process, "gnuplot", &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[0]);
    if (error != 0) {
        ::close(ends[1]);
        return failure(Code::io_error, "--plot: cannot start gnuplot: {} (Debian: gnuplot-nox)",
                       std::strerror(error));
    }
    std::signal(SIGPIPE, SIG_IGN); // If it dies early, its exit status says so.
    for (std::size_t done = 0; done < program.size();) {
        const ssize_t count = ::write(ends[1], program.data() + done, program.size() - done);
        if (count < 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    ::close(ends[1]);
    int outcome = 0;
    ::waitpid(process, &outcome, 0);
    return outcome == 0 ? Status() : failure(Code::io_error, "--plot: gnuplot failed");
}

} // namespace ucg::tools
