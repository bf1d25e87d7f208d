// Options for what the planner knows besides the question and the placement: --profile names the
// costs by which it compares algorithms; --staging, --flag-slots and --shared-heap say which memory
// of one another the ranks of a host can read.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/cli.hpp"
#include "tools/times.hpp"
#include "tools/ucg_plan/question.hpp"
#include "tools/ucg_plan/this_machine.hpp"
#include "ucg_coll/base/printable.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

class ProfileOption {
  public:
    /// `question` says whether this machine's costs are the default; null: they are not, and the
    /// command has no --this-machine. It must outlive this object.
    void add_option(CLI::App& app, const QuestionOptions* question = nullptr) {
        question_ = question;
        app.add_option("--profile", path_,
                       "Costs of the machine, TOML; \"-\": standard input; \"builtin\": what the "
                       "library has built in for this processor (default: generic costs, the "
                       "same on all machines" +
                           std::string(question != nullptr
                                           ? "; --this-machine has your own profile)"
                                           : ")"))
            ->type_name("FILE");
        app.add_option("--network", network_,
                       "What carries messages between hosts, where the profile has not measured "
                       "it: unknown, tcp, or one_kernel, which is TCP between containers or "
                       "virtual hosts of one machine (default: unknown)")
            ->check(CLI::IsMember(names()))
            ->type_name("NAME");
        add_parsed_option(app, "--network-latency", message_ns_, parse_time_ns, "TIME",
                          "What a short message takes there one way, such as 1ms, where the "
                          "profile has not measured it; groups find out whether it is far longer "
                          "than usual, as a power of ten (default: as is usual there)");
        add_size_option(app, "--staging", staging_bytes_,
                        "Memory of each rank that others of its host read, as UCG_STAGING "
                        "(default: 1M); 0: algorithms that read peers' memory do not serve");
        add_size_option(app, "--flag-slots", flag_slot_bytes_,
                        "The longest vector that a rank writes to its flag slots, which all ranks "
                        "of its host read (default: 8K); 0: algorithms by flag slots do not serve");
        app.add_flag("--no-kernel-copies", no_kernel_copies_,
                     "Ranks of a host do not reach one another's memory by the kernel, as with "
                     "UCG_CMA=n: algorithms whose ranks help one another do not serve");
        app.add_flag("--shared-heap", buffers_mapped_,
                     "Price buffers as lying in the shared heap, as under libucg_heap.so");
        app.add_option("--ranks-per-cpu", ranks_per_cpu_,
                       "Price waits and work as where so many ranks take turns on each CPU "
                       "(default: 1)")
            ->transform(real_number(1, 1e6))
            ->type_name("NUMBER");
    }

    /// Returns the planner's facts. Both references and `network`, which is null where links are
    /// not known, must outlive the result.
    plan::Facts facts(const topo::Placement& placement, const cost::Profile& profile,
                      const plan::Network* network = nullptr) const {
        return {placement,
                profile,
                plan::shared_memory(placement, profile, staging_bytes_, buffers_mapped_,
                                    flag_slot_bytes_, !no_kernel_copies_),
                ranks_per_cpu_ > 0 ? ranks_per_cpu_
                : is_here()        ? ranks_per_cpu_here(placement.ranks_per_host_max())
                                   : 1,
                nullptr,
                network};
    }

    Result<cost::Profile> load() const {
        if (path_.empty() && is_here()) {
            const Result<cost::Profile> profile = costs_here();
            return profile ? with_network(*profile) : profile;
        }
        if (path_.empty()) {
            return with_network(cost::default_profile());
        }
        if (path_ == "builtin") {
            return with_network(cost::builtin_costs(topo::this_processor()).profile);
        }
        const Result<std::string> text = read_input(path_);
        if (!text) {
            return text.status();
        }
        Result<cost::Profile> profile = cost::parse_toml(*text);
        if (!profile) {
            return in_file(path_, profile.status());
        }
        return with_network(*profile);
    }

    /// Returns a line about the costs that load() gives.
    std::string description() const {
        if (path_ == "builtin") {
            return "built in for this processor";
        }
        if (!path_.empty()) {
            return "of the profile " + printable(path_, LineBreaks::escape);
        }
        if (is_here()) {
            return "of this machine";
        }
        std::string text = "generic, the same on all machines";
        text += question_ != nullptr ? " (--this-machine: of this one)" : "";
        text += std::getenv("UCG_PROFILE") != nullptr ? "; UCG_PROFILE is not used" : "";
        return text;
    }

  private:
    static std::vector<std::string> names() {
        std::vector<std::string> all(cost::kNetworks.size());
        std::transform(cost::kNetworks.begin(), cost::kNetworks.end(), all.begin(),
                       [](cost::NetworkKind network) { return std::string(cost::name(network)); });
        return all;
    }
    cost::NetworkKind network() const {
        return *std::find_if(
            cost::kNetworks.begin(), cost::kNetworks.end(),
            [&](cost::NetworkKind network) { return cost::name(network) == network_; });
    }

    cost::Profile with_network(const cost::Profile& profile) const {
        return cost::with_network(profile, network(), message_ns_);
    }

    bool is_here() const { return question_ != nullptr && question_->on_this_machine(); }

    const QuestionOptions* question_ = nullptr;
    std::string path_;
    std::string network_ = std::string(cost::name(cost::NetworkKind::unknown));
    double message_ns_ = 0; ///< 0: the option was not given.
    std::uint64_t staging_bytes_ = 1 << 20;
    std::uint64_t flag_slot_bytes_ = 8 << 10;
    bool no_kernel_copies_ = false;
    bool buffers_mapped_ = false;
    double ranks_per_cpu_ = 0; ///< 0: the option was not given.
};

} // namespace ucg::tools
