// ucg_plan verify: proves schedules, either the planner's or those in files.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/cli.hpp"
#include "tools/progress_line.hpp"
#include "tools/ucg_plan/commands.hpp"
#include "tools/ucg_plan/profile_option.hpp"
#include "tools/ucg_plan/schedule_files.hpp"
#include "tools/ucg_plan/sweep.hpp"
#include "tools/ucg_plan/topology_option.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool same_host(Rank a, Rank b, const void* placement) {
    return static_cast<const topo::Placement*>(placement)->same_host(a, b);
}

/// Where the ranks of a question are.
struct Site {
    topo::Placement placement;
    std::unique_ptr<const plan::Network> network; ///< The links between its hosts.
    std::string options;                          ///< Of `ucg_plan show`, which say so.
};

/// Proves the planner's schedules for all questions of a sweep.
class Campaign {
  public:
    /// `algorithm` is empty for all algorithms. All references are borrowed.
    Campaign(const ProfileOption& option, const cost::Profile& profile,
             const TopologyOption& topology, std::optional<topo::Cluster> cluster,
             std::string algorithm)
        : option_(option), profile_(profile), topology_(topology), cluster_(std::move(cluster)),
          algorithm_(std::move(algorithm)) {}

    /// Proves them for ranks on the hosts and sockets of the sweep.
    Status run(const Sweep& sweep) {
        return run(sweep, [&](const PlacedQuestion& placed) {
            return find_sites(sweep, placed.question.rank_count, placed.hosts);
        });
    }

    /// Proves them for ranks that are placed as the file `path` says.
    Status run(const Sweep& sweep, const topo::Placement& placement, const std::string& path) {
        if (Status status = add_site(placement, fmt::format("--placement {}", path));
            !status.ok()) {
            return status;
        }
        return run(sweep, [](const PlacedQuestion&) { return Status(); });
    }

    std::string summary(const Sweep& sweep) const {
        std::string text;
        for (const auto& [collective, name] : seen_) {
            text += fmt::format("{} {}\n", graph::name(collective), name);
        }
        if (const std::vector<std::string> names = never_eligible(sweep); !names.empty()) {
            text += fmt::format("never eligible: {}\n", fmt::join(names, ", "));
        }
        return text + fmt::format("proved {} plans, {} schedules, of {} algorithms in {:.1f} s\n",
                                  plans_, schedules_, seen_.size(), seconds_);
    }

    bool found_nothing() const { return plans_ == 0; }

  private:
    using Schedules = std::vector<graph::Schedule>;

    /// `find` sets the sites of a question.
    template <typename Find>
    Status run(const Sweep& sweep, Find find) {
        const Clock::time_point begin = Clock::now();
        const std::vector<PlacedQuestion> list = questions(sweep);
        ProgressLine progress;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const Question& question = list[i].question;
            progress.update([&] {
                return fmt::format("{} of {} requests: {} among {} ranks", i, list.size(),
                                   graph::name(question.collective), question.rank_count);
            });
            Status status = find(list[i]);
            if (status.ok()) {
                status = answer(question);
            }
            if (!status.ok()) {
                return status;
            }
        }
        seconds_ = seconds_since(begin);
        return {};
    }

    Status find_sites(const Sweep& sweep, Rank rank_count, Rank hosts) {
        if (std::exchange(placed_, {rank_count, hosts}) == std::pair(rank_count, hosts)) {
            return {};
        }
        sites_.clear();
        const topo::Placement placement = spread(rank_count, hosts);
        for (const Rank sockets : sweep.socket_counts) {
            if (sockets > 1 && sockets > placement.ranks_per_host_min()) {
                continue;
            }
            std::string options = fmt::format("--ranks {} --hosts {}", rank_count, hosts);
            options += sockets > 1 ? fmt::format(" --sockets {}", sockets) : "";
            if (Status status = add_site(on_sockets(placement, sockets), std::move(options));
                !status.ok()) {
                return status;
            }
        }
        return {};
    }

    Status add_site(topo::Placement placement, std::string options) {
        Result<std::unique_ptr<const plan::Network>> network =
            topology_.network(cluster_, placement);
        if (!network) {
            return network.status();
        }
        sites_.push_back({std::move(placement), std::move(*network), std::move(options)});
        return {};
    }

    Status answer(const Question& question) {
        std::vector<graph::Request> requests;
        requests.reserve(static_cast<std::size_t>(question.rank_count));
        for (Rank rank = 0; rank < question.rank_count; ++rank) {
            requests.push_back(request_of(question, rank));
        }
        const auto root = static_cast<std::size_t>(question.root);
        if (Status status = graph::validate(requests[root], question.root); !status.ok()) {
            return status;
        }
        std::map<std::string_view, Schedules> proved;
        for (const Site& site : sites_) {
            const plan::Facts facts = option_.facts(site.placement, profile_, site.network.get());
            for (const plan::Algorithm& row : plan::algorithms()) {
                if (row.collective != question.collective || !is_wanted(row) ||
                    !row.eligible(facts, requests[root])) {
                    continue;
                }
                const std::string name = algorithm_.empty() ? std::string(row.name) : algorithm_;
                if (Status status = prove(facts, requests, name, proved[row.name]); !status.ok()) {
                    return failure(status.code(),
                                   "{} by {} on {} hosts: {}; see: ucg_plan show {} {} "
                                   "--algorithm {}",
                                   describe(question), name, site.placement.host_count(),
                                   status.message(), to_options(question), site.options, name);
                }
                seen_.insert({row.collective, row.name});
            }
        }
        return {};
    }

    /// Returns the algorithms that were asked for, of which nothing was proved.
    std::vector<std::string> never_eligible(const Sweep& sweep) const {
        std::vector<std::string> names;
        for (const plan::Algorithm& row : plan::algorithms()) {
            const bool is_asked = std::find(sweep.collectives.begin(), sweep.collectives.end(),
                                            row.collective) != sweep.collectives.end();
            if (is_asked && is_wanted(row) && !seen_.contains({row.collective, row.name})) {
                names.push_back(fmt::format("{} {}", graph::name(row.collective), row.name));
            }
        }
        return names;
    }

    bool is_wanted(const plan::Algorithm& row) const {
        return algorithm_.empty() || row.name == plan::split_algorithm(algorithm_).name;
    }

    /// Plans all ranks by one algorithm and proves their schedules together, unless they are those
    /// in `proved`, which were proved for the same hosts and become these. Where the algorithm's
    /// row says how many messages share a link between hosts, proves that, too.
    Status prove(const plan::Facts& facts, const std::vector<graph::Request>& requests,
                 std::string_view algorithm, Schedules& proved) {
        Schedules schedules;
        for (std::size_t rank = 0; rank < requests.size(); ++rank) {
            Result<graph::Schedule> schedule =
                plan::plan(facts, requests[rank], static_cast<Rank>(rank), algorithm);
            if (!schedule) {
                return schedule.status();
            }
            schedules.push_back(std::move(*schedule));
        }
        if (schedules == proved) {
            return {};
        }
        const std::optional<graph::SwitchTree> links =
            plan::links_to_prove(facts, schedules.front().algorithm);
        Status status = graph::verify(schedules, requests, same_host, &facts.placement,
                                      links ? &*links : nullptr);
        ++plans_;
        schedules_ += schedules.size();
        proved = std::move(schedules);
        return status;
    }

    const ProfileOption& option_;
    const cost::Profile& profile_;
    const TopologyOption& topology_;
    std::optional<topo::Cluster> cluster_;
    std::string algorithm_;
    std::pair<Rank, Rank> placed_ = {0, 0}; ///< The ranks and hosts of sites_ in a sweep.
    std::vector<Site> sites_;               ///< On the same hosts, with other sockets.
    std::uint64_t plans_ = 0;
    std::uint64_t schedules_ = 0;
    std::set<std::pair<graph::Collective, std::string_view>> seen_;
    double seconds_ = 0;
};

class VerifyCommand final : public Command {
  public:
    explicit VerifyCommand(CLI::App& parent)
        : Command(*parent.add_subcommand("verify", "Prove schedules: deadlock-free, free of races, "
                                                   "every contribution exactly once where it "
                                                   "belongs")) {
        add_sweep_options();
        add_file_options();
        profile_.add_option(app_);
        topology_.add_option(app_);
        app_.parse_complete_callback([this] { check(); });
        app_.footer(
            "All ranks' schedules are executed symbolically, together. Where more than one value "
            "is given, all\ncombinations are tried. The first one that fails is reported, with "
            "the rank, the op and the reason.\n"
            "Examples:\n"
            "  ucg_plan verify --collective allreduce --ranks 2..64,128\n"
            "  ucg_plan verify --collective allreduce --ranks 32 --algorithm "
            "recursive_multiplying:a8,a4\n"
            "  ucg_plan verify --collective bcast --algorithm knomial --ranks 1..32 --roots all\n"
            "  ucg_plan verify --collective all --ranks 2..16 --hosts 1,2,3 --bytes 0,8,64k\n"
            "  ucg_plan show --collective scan --ranks 4 --bytes 8 > scan.txt\n"
            "  $EDITOR scan.txt; ucg_plan verify --file scan.txt\n"
            "  ucg_topo placement --hosts 3 --ranks-per-host 4 --map host > cyclic.txt\n"
            "  ucg_plan verify --collective all --placement cyclic.txt\n"
            "  ucg_plan show --collective allreduce --bytes 8 --placement cyclic.txt | \\\n"
            "    ucg_plan verify --file - --placement cyclic.txt");
    }

    Status run() const override { return files_.empty() ? verify_plans() : verify_files(); }

  private:
    void add_sweep_options() {
        std::vector<std::string> names = {"all"};
        for (const graph::Collective collective : graph::kCollectives) {
            names.emplace_back(graph::name(collective));
        }
        app_.add_option("--collective", collectives_,
                        "all, or one or more of: " +
                            fmt::format("{}", fmt::join(names.begin() + 1, names.end(), ", ")))
            ->check(CLI::IsMember(names).description("").name(kChoice))
            ->delimiter(',')
            ->type_name("LIST");
        app_.add_option(
                "--algorithm", algorithm_,
                "all, or a name of \"ucg_plan list\", maybe with an argument (default: all)")
            ->type_name("NAME");
        app_.add_option("--ranks", ranks_, "How many ranks, for example 2..64,128 (default: 2..16)")
            ->type_name("RANGES");
        app_.add_option("--hosts", hosts_,
                        "How many hosts the ranks are spread over, for example 1..4 (default: "
                        "1,2,3; with --file: 1)")
            ->type_name("RANGES");
        app_.add_option("--sockets", sockets_,
                        "How many sockets the ranks of a host are spread over, where each has as "
                        "many ranks; 1: all ranks of a host are equally far apart (default: 1,2)")
            ->type_name("RANGES");
        app_.add_option("--placement", placement_path_,
                        "File as \"ucg_topo placement\" prints; \"-\": standard input. Where the "
                        "ranks are, instead of --ranks, --hosts and --sockets")
            ->type_name("FILE")
            ->excludes("--ranks")
            ->excludes("--hosts")
            ->excludes("--sockets");
        add_size_option(app_, "--bytes", sweep_.bytes,
                        "Lengths, for example 0,8,64k (default: 0,8,4k)")
            ->delimiter(',');
        app_.add_option("--roots", sweep_.roots,
                        "all, or some of first, mid, last (default: first,mid,last)")
            ->check(CLI::IsMember({"all", "first", "mid", "last"}).description(""))
            ->delimiter(',')
            ->type_name("LIST");
        app_.add_option("--element-bytes", sweep_.element_bytes,
                        "Bytes of an element: reductions cut vectors at multiples of it "
                        "(default: 8)")
            ->transform(size_in_bytes(1, kBytesMax))
            ->type_name("SIZE");
        const std::vector<Which> choices = {Which::both, Which::yes, Which::no};
        add_choice_option(app_, "--in-place", sweep_.in_place, choices, "MPI_IN_PLACE");
        add_choice_option(app_, "--commutative", sweep_.commutative, choices,
                          "Operators that commute; those that do not see operands in rank order");
    }

    void add_file_options() {
        CLI::Option_group& group =
            *app_.add_option_group("Files", "Prove what was printed, and perhaps changed by hand");
        group
            .add_option("--file", files_,
                        "Schedules of all ranks, text or JSON as \"ucg_plan show\" prints them, in "
                        "one or several files; \"-\": standard input. Proved for operators that "
                        "commute unless --commutative no")
            ->type_name("FILE");
        group.add_option("--root", root_, "The root (default: as the buffers show)")
            ->transform(whole_number(0, kRanksMax - 1))
            ->type_name("RANK");
        add_size_option(group, "--blocks", blocks_,
                        "Lengths of the ranks' blocks (default: as the buffers show)")
            ->delimiter(',');
    }

    // Checks what CLI11's own checks cannot see. A part of parsing, so that it counts as wrong
    // usage.
    void check() {
        sweep_.rank_counts = numbers("--ranks", ranks_);
        sweep_.host_counts = numbers("--hosts", hosts_);
        sweep_.socket_counts = numbers("--sockets", sockets_);
        if (files_.empty() && collectives_.empty()) {
            throw CLI::RequiredError("--collective or --file");
        }
        if (!files_.empty() && !collectives_.empty()) {
            throw CLI::ExcludesError("--file", "--collective");
        }
        for (const graph::Collective collective : graph::kCollectives) {
            const auto is = [&](const std::string& name) {
                return name == "all" || name == graph::name(collective);
            };
            if (std::any_of(collectives_.begin(), collectives_.end(), is)) {
                sweep_.collectives.push_back(collective);
            }
        }
        check_algorithm();
    }

    static std::vector<Rank> numbers(const char* flag, const std::string& text) {
        Result<std::vector<Rank>> list = parse_ranks(text);
        if (!list) {
            throw CLI::ValidationError(flag, std::string(list.status().message()));
        }
        return std::move(*list);
    }

    void check_algorithm() const {
        std::string names;
        for (const plan::Algorithm& row : plan::algorithms()) {
            if (std::find(sweep_.collectives.begin(), sweep_.collectives.end(), row.collective) ==
                sweep_.collectives.end()) {
                continue;
            }
            if (algorithm_ == "all" || plan::split_algorithm(algorithm_).name == row.name) {
                return;
            }
            names += fmt::format("{}{} {}", names.empty() ? "" : ", ", graph::name(row.collective),
                                 row.name);
        }
        if (files_.empty()) {
            throw CLI::ValidationError(
                "--algorithm",
                fmt::format("no such algorithm: {}; there are {}", algorithm_, names));
        }
    }

    Status verify_plans() const {
        const Result<cost::Profile> profile = profile_.load();
        if (!profile) {
            return profile.status();
        }
        Result<std::optional<topo::Cluster>> cluster = topology_.load();
        if (!cluster) {
            return cluster.status();
        }
        Campaign campaign(profile_, *profile, topology_, std::move(*cluster),
                          algorithm_ == "all" ? "" : algorithm_);
        if (Status status = run(campaign); !status.ok()) {
            return status;
        }
        if (campaign.found_nothing()) {
            return Status(Code::unsupported, "no algorithm is eligible for any of the requests: "
                                             "nothing was proved");
        }
        return write_output("-", campaign.summary(sweep_));
    }

    Status run(Campaign& campaign) const {
        if (placement_path_.empty()) {
            return campaign.run(sweep_);
        }
        const Result<topo::Placement> placement = read_placement(placement_path_);
        if (!placement) {
            return placement.status();
        }
        Sweep sweep = sweep_;
        sweep.rank_counts = {placement->rank_count()};
        sweep.host_counts = {1};
        return campaign.run(sweep, *placement, placement_path_);
    }

    Status verify_files() const {
        const Result<std::vector<graph::Schedule>> schedules = read_schedules(files_);
        if (!schedules) {
            return schedules.status();
        }
        const Hints hints{sweep_.commutative != Which::no, root_, blocks_};
        const Result<std::vector<graph::Request>> requests = infer_requests(*schedules, hints);
        if (!requests) {
            return requests.status();
        }
        const auto ranks = static_cast<Rank>(schedules->size());
        const Result<topo::Placement> found = placement_of(ranks);
        if (!found) {
            return found.status();
        }
        const topo::Placement& placement = *found;
        if (Status status = graph::verify(*schedules, *requests, same_host, &placement);
            !status.ok()) {
            return status;
        }
        const graph::Schedule& first = schedules->front();
        return write_output("-",
                            fmt::format("proved {} {}, {} ranks\n", graph::name(first.collective),
                                        first.algorithm, ranks));
    }

    /// Returns where the ranks of schedules in files are.
    Result<topo::Placement> placement_of(Rank ranks) const {
        if (placement_path_.empty()) {
            const bool hosts_given = app_.get_option("--hosts")->count() > 0;
            return spread(ranks, std::min(hosts_given ? sweep_.host_counts.front() : 1, ranks));
        }
        Result<topo::Placement> placement = read_placement(placement_path_);
        if (placement && placement->rank_count() != ranks) {
            return in_file(placement_path_,
                           failure(Code::invalid_argument, "{} ranks, but the schedules are of {}",
                                   placement->rank_count(), ranks));
        }
        return placement;
    }

    Sweep sweep_{.collectives = {},
                 .rank_counts = {},
                 .host_counts = {},
                 .socket_counts = {},
                 .bytes = {0, 8, 4096},
                 .roots = {"first", "mid", "last"}};
    std::vector<std::string> collectives_;
    std::string algorithm_ = "all";
    std::string ranks_ = "2..16";
    std::string hosts_ = "1,2,3";
    std::string sockets_ = "1,2";
    std::string placement_path_;
    std::vector<std::string> files_;
    std::optional<Rank> root_;
    std::vector<std::uint64_t> blocks_;
    ProfileOption profile_;
    TopologyOption topology_;
};

} // namespace

std::unique_ptr<Command> make_verify_command(CLI::App& parent) {
    return std::make_unique<VerifyCommand>(parent);
}

} // namespace ucg::tools
