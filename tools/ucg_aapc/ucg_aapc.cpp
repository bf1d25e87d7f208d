// ucg_aapc: the schedule of an alltoall without contention for a cluster's switches.
#include "tools/cli.hpp"
#include "tools/topology_file.hpp"
#include "tools/ucg_aapc/print.hpp"

namespace ucg::tools {
namespace {

/// The formats that --format offers.
enum class Form { text, json, dot, schedule };
std::string_view name(Form form) {
    switch (form) {
    case Form::text: return "text";
    case Form::json: return "json";
    case Form::dot: return "dot";
    case Form::schedule: return "schedule";
    }
    return "";
}

std::string print(const aapc::Plan& plan, Form form) {
    switch (form) {
    case Form::text: return aapc::to_table(plan);
    case Form::json: return aapc::to_json(plan);
    case Form::dot: return aapc::to_dot(plan);
    case Form::schedule: return aapc::to_schedule_file(plan);
    }
    return "";
}

Result<topo::Cluster> load(const std::string& path) {
    Result<topo::Cluster> cluster = read_topology(path);
    if (!cluster) {
        return cluster;
    }
    if (cluster->machine_count() < 2) {
        return failure(Code::invalid_argument,
                       "{}: there is nothing to schedule for {} machine{}, two are the least", path,
                       cluster->machine_count(), cluster->machine_count() == 1 ? "" : "s");
    }
    if (cluster->machine_count() > aapc::kListedMachinesMax) {
        return failure(Code::unsupported,
                       "{}: {} machines have more messages than a list should hold; {} are the "
                       "most",
                       path, cluster->machine_count(), aapc::kListedMachinesMax);
    }
    return cluster;
}

} // namespace
} // namespace ucg::tools

int main(int argc, char* argv[]) {
    using namespace ucg::tools;
    CLI::App app("Schedules an alltoall among the machines of a cluster in phases without "
                 "contention, and the synchronisations between them (Faraj, Yuan 2005).",
                 "ucg_aapc");
    std::string topology;
    std::string output = "-";
    Form form = Form::text;
    add_topology_option(app, topology)->required();
    add_choice_option(app, "--format", form, {Form::text, Form::json, Form::dot, Form::schedule},
                      "Output");
    app.add_option("-o,--output", output, "File to write; \"-\", the default: standard output")
        ->type_name("FILE");
    app.footer(
        "Each machine sends its messages one after another, in the order of the phases. A\n"
        "synchronisation says which other machine's message must have ended before one may begin;\n"
        "there are as few as can be.\n"
        "\n"
        "Examples:\n"
        "  ucg_aapc --topology /etc/slurm/topology.conf\n"
        "  ucg_aapc --topology cluster.json --format dot | dot -Tsvg > cluster.svg\n"
        "  ucg_aapc --topology topology.conf --format schedule -o cluster.aapc\n"
        "  mpirun -N 1 -x UCG_ALLTOALL=file:$PWD/cluster.aapc ./app\n"
        "\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage.");
    return run(app, argc, argv, [&]() -> ucg::Status {
        const ucg::Result<ucg::topo::Cluster> cluster = load(topology);
        if (!cluster) {
            return cluster.status();
        }
        return write_output(output, print(ucg::aapc::Plan(*cluster), form));
    });
}
