#include "tools/ucg_tune/network_command.hpp"

#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "tools/ucg_tune/network_report.hpp"
#include "tools/ucg_tune/output.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::tools {

namespace {

/// The time for processes to meet. Launchers start the processes of a job within seconds.
constexpr std::chrono::seconds kBootstrapTimeout(60);

constexpr const char* kNetworkDescription =
    "Rank 0 sends 1 to K messages at once, to as many ranks, each of which answers with 8 bytes;\n"
    "messages travel over UCX as those of collectives do, and UCX_TLS, UCX_NET_DEVICES and the\n"
    "like hold. Nonblocking: all are started, then all answers awaited. Blocking: each is "
    "answered\n"
    "before the next is started. From the nonblocking ones of the shortest length, by a linear\n"
    "regression over the number of messages b, once on the minima and once on the medians:\n"
    "  one way(b) = alpha_p + b (alpha_r + n beta)\n"
    "  alpha_p   what messages overlap: the wire, and what else need not wait for the last one\n"
    "  alpha_r   what each message costs the processors of sender and receiver\n"
    "  beta      per byte, from how the slopes grow with the length n\n"
    "  best b    where recursive multiplying is fastest: factors of b + 1\n"
    "One way is the round trip less half of that of a single message; for blocking sends, half of\n"
    "the sum. (Ruefenacht, Bull and Booth, 2017, section 5.1 and figure 8, which --plot draws.)\n"
    "Links that are shaped let some bytes pass at once, all of a multicast for example; so rank 0\n"
    "also streams to rank 1, for a fifth of the time. That gives G of LogGP, the gap per byte.\n"
    "With three processes or more all exchange messages for another fifth, a pairwise alltoall:\n"
    "how many times as long it takes as a stream where messages of several meet on a link. Hosts\n"
    "should be on one switch for it, so that their own links limit. Alltoall is chosen by it "
    "where\n"
    "the switches are known (UCG_TOPOLOGY).\n"
    "\n"
    "Start it by mpirun, mpiexec or srun with one process on each host, K + 1 of them at best, "
    "and\n"
    "name a host and port where they meet: --bootstrap HOST:PORT, with the host of rank 0. Rank 0\n"
    "prints, and writes the profile: [network.minimum], [network.median], [network.links], and "
    "the\n"
    "level network, LogGP with the same times as the median, but for G. What the profile says of\n"
    "other costs stays, gamma among them: \"ucg_tune memory\" measures it.\n"
    "\n"
    "--processes N needs no launcher: it starts them on this host, to see that it works. The\n"
    "profile is then written only with --output or --system.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n"
    "\n"
    "Examples:\n"
    "  mpirun -N 1 ucg_tune network --bootstrap node0:7177\n"
    "  srun -N 9 --ntasks-per-node 1 ucg_tune network --bootstrap node0:7177 --plot multicast.svg\n"
    "  mpirun -N 1 ucg_tune network --bootstrap node0:7177 --messages 16 --bytes 8,512,8k --time "
    "60\n"
    "  ucg_vcluster run --hosts 9 --latency 500us -- mpirun -N 1 ucg_tune network --bootstrap "
    "n0:7177 "
    "-o -\n"
    "  ucg_tune network --processes 3 --time 1";

} // namespace

NetworkCommand::NetworkCommand(CLI::App& parent)
    : app_(*parent.add_subcommand("network",
                                  "Measure what messages between hosts take, alone and several at "
                                  "once, and write it to the profile")) {
    app_.add_option("--bootstrap", bootstrap_,
                    "Where the processes of a launcher find one another: the host of rank 0")
        ->type_name("HOST:PORT");
    app_.add_option("--processes", processes_, "Start so many on this host instead, 2 to 256")
        ->type_name("COUNT")
        ->transform(whole_number(2, 256));
    app_.add_option("-k,--messages", options_.messages_max,
                    "Multicasts of 1 to so many messages, 2 to 1024 (default: 8)")
        ->type_name("COUNT")
        ->transform(whole_number(2, 1024));
    app_.add_option("--bytes", options_.bytes,
                    "Lengths of messages, 1 to 256M, two at least (default: 8,1k,8k)")
        ->type_name("BYTES,...")
        ->delimiter(',')
        ->transform(size_in_bytes(1, 256 << 20));
    app_.add_option("--time", options_.seconds,
                    "About how long to measure, 0.1 to 3600 (default: 10)")
        ->type_name("SECONDS")
        ->transform(real_number(0.1, 3600));
    target_.add_options(app_);
    add_format_option(app_, format_, {Format::text, Format::json, Format::toml});
    app_.add_option("--plot", plot_, "Draw the distributions of the shortest messages (gnuplot)")
        ->type_name("FILE.svg");
    app_.add_flag("-q,--no-progress", silent_, "Say nothing on standard error meanwhile");
    app_.parse_complete_callback([this] { check(); });
    app_.footer(kNetworkDescription);
}

void NetworkCommand::check() const {
    if (std::set(options_.bytes.begin(), options_.bytes.end()).size() < 2) {
        throw CLI::ValidationError("--bytes", "expected two different lengths at least, for beta "
                                              "lies in their difference");
    }
    if (processes_ > 0 && !bootstrap_.empty()) {
        throw CLI::ValidationError("--bootstrap and --processes", "expected one of the two");
    }
    check_outputs(app_, target_.output(), format_, plot_);
}

Status NetworkCommand::connect(TcpStar& bootstrap) const {
    if (processes_ > 0) {
        return bootstrap.fork(processes_, kBootstrapTimeout);
    }
    const Result<RankInJob> place = launched_place();
    if (!place.ok()) {
        return place.status();
    }
    if (place->count < 2) {
        return failure(Code::invalid_argument,
                       "found no launcher with two processes or more: start it by mpirun, mpiexec "
                       "or srun, or on this host alone with --processes");
    }
    if (bootstrap_.empty()) {
        return failure(
            Code::invalid_argument,
            "--bootstrap HOST:PORT is missing: the host of rank 0, as the others reach it, "
            "and a port that is free there");
    }
    return bootstrap.join(*place, bootstrap_, kBootstrapTimeout);
}

Status NetworkCommand::run() {
    TcpStar bootstrap;
    if (Status status = connect(bootstrap); !status.ok()) {
        return status;
    }
    const bool writes = bootstrap.place().rank == 0;
    std::string path;
    ExistingProfile base = {capi::builtin_costs_here().profile, ""};
    if (writes && (processes_ == 0 || target_.is_named())) {
        const Result<std::string> named = target_.path();
        if (!named.ok()) {
            return named.status();
        }
        const Result<ExistingProfile> existing = existing_profile(*named);
        const Status status = target_.prepare(*named);
        if (!existing.ok() || !status.ok()) {
            return existing.ok() ? status : existing.status();
        }
        path = *named;
        base = *existing;
    }
    if (Status status = writes ? check_output(plot_) : Status(); !status.ok()) {
        return status;
    }
    if (!silent_) {
        options_.progress = [](const std::string& what) {
            std::fprintf(stderr, "ucg_tune: measuring %s\n", what.c_str());
        };
    }
    const Result<NetworkResult> result = probe_network(bootstrap, options_);
    if (!result.ok() || !writes) {
        return result.status();
    }
    if (Status status = bootstrap.reap(); !status.ok()) {
        return status;
    }
    return write(*result, base, path);
}

std::string NetworkCommand::command() const {
    return fmt::format("ucg_tune network --messages {} --bytes {} --time {}", options_.messages_max,
                       fmt::join(options_.bytes, ","), options_.seconds);
}

Status NetworkCommand::write(const NetworkResult& result, const ExistingProfile& base,
                             const std::string& path) const {
    const std::string toml =
        to_profile_toml(result, base.profile, command()) + cost::origin_toml(base.measured_on);
    const std::string report = format_ == Format::json   ? to_json(result)
                               : format_ == Format::toml ? toml
                                                         : to_text(result);
    if (Status status = write_results(path, toml, report, silent_); !status.ok()) {
        return status;
    }
    if (!silent_ && !path.empty() && path != "-") {
        tell_foreign(base, path);
    }
    return plot_.empty() ? Status() : draw(to_gnuplot(result, plot_));
}

} // namespace ucg::tools
