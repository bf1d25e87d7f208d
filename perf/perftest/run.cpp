#include "perf/perftest/run.hpp"

#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "perf/perftest/measure.hpp"
#include "perf/perftest/report.hpp"
#include "perf/perftest/report_json.hpp"
#include "tools/files.hpp"
#include "ucg_coll/base/printable.hpp"

namespace ucg::perftest {

namespace {

constexpr double kReportSeconds = 1; ///< Between rows of a run, as in ucx_perftest.

/// On a terminal: a line, rewritten in place, that shows how much of a long run is done. It is
/// erased at the end.
class Progress {
  public:
    Progress(const Recorder& recorder, std::string what)
        : recorder_(recorder), what_(std::move(what)) {}
    ~Progress() {
        if (shown_) {
            std::fputs("\r\033[K", stderr);
        }
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show() {
        const double part =
            static_cast<double>(recorder_.iterations()) / static_cast<double>(recorder_.wanted());
        std::fprintf(stderr, "\r\033[K%s: %.0f %%, %.0f s", what_.c_str(), 100 * part,
                     nanoseconds(recorder_.elapsed()) * 1e-9);
        shown_ = true;
    }

  private:
    const Recorder& recorder_;
    std::string what_;
    bool shown_ = false;
};

class Runner {
  public:
    Runner(Runtime& runtime, const Session& session)
        : runtime_(runtime), session_(session), output_(session.options.output) {}

    RunOutcome run() {
        Result<std::unique_ptr<Board>> board = Board::create(runtime_);
        if (!board.ok()) {
            return {board.status(), false};
        }
        yardsticks_.board = std::move(*board);
        Status first;
        for (const Job& job : session_.jobs) {
            bool amid = false;
            const Status status = run_job(job, amid);
            if (status.ok()) {
                continue;
            }
            if (amid || status.code() == Code::unreachable) {
                return {status, false};
            }
            if (session_.jobs.size() > 1 && runtime_.rank() == 0) {
                const std::string line = printable(status.message(), LineBreaks::escape);
                std::fprintf(stderr, "ucg_perftest: %s%s\n", prefix_of(job).c_str(), line.c_str());
            }
            first = first.ok() ? status : first;
        }
        const Status last = write_json(first);
        return {last.ok() ? tools::check_printed() : last, !first.ok()};
    }

  private:
    static std::string prefix_of(const Job& job) {
        return job.names.empty() ? "" : fmt::format("{}: ", fmt::join(job.names, "/"));
    }

    /// Returns the rank that prints: the client of a server; else the sender of a primitive test,
    /// or rank 0.
    Rank printer(Layer layer) const {
        const Rank last = runtime_.size() - 1;
        const bool second = session_.launcher == Launcher::socket || layer != Layer::collective;
        return std::min<Rank>(second ? 1 : 0, last);
    }
    bool prints(Layer layer) const { return runtime_.rank() == printer(layer); }

    /// JSON has standard output to itself.
    void print(const std::string& text) const {
        std::FILE* const where = output_.json == "-" ? stderr : stdout;
        std::fputs(printable(text).c_str(), where);
        std::fflush(where);
    }

    /// `amid` becomes true once the test is open, so that ranks may not agree about a failure.
    Status run_job(const Job& job, bool& amid) {
        const TestInfo& info = *find_test(job.parameters.test);
        const Layer layer = layer_of(info);
        if (Status status = check_size(info, job.parameters); !status.ok()) {
            return status;
        }
        const Result<std::unique_ptr<Test>> test = info.open(runtime_, job.parameters);
        if (!test.ok()) {
            return test.status();
        }
        amid = true;
        print_head(info, job);
        const Result<double> once = warm_up(runtime_, **test, job.parameters);
        if (!once.ok()) {
            return once.status();
        }
        const Result<std::uint64_t> iterations =
            iterations_for(runtime_, **test, job.parameters, *once);
        if (!iterations.ok()) {
            return iterations.status();
        }
        return layer == Layer::collective ? run_collective(job, **test, *iterations)
                                          : run_primitive(info, job, **test, *iterations);
    }

    Status check_size(const TestInfo& info, const Parameters& parameters) const {
        const Rank wanted = parameters.loopback ? 1 : 2;
        if (layer_of(info) != Layer::collective && runtime_.size() != wanted) {
            return failure(Code::unsupported, "{}{} runs on {} process{}, here are {}", info.name,
                           parameters.loopback ? " -l" : "", wanted, wanted == 1 ? "" : "es",
                           runtime_.size());
        }
        return {};
    }

    /// The server prints what is run, the client the results, as in ucx_perftest. Of the processes
    /// of one launcher, one prints both.
    void print_head(const TestInfo& info, const Job& job) {
        const Layer layer = layer_of(info);
        const bool same =
            last_layer_ == layer && last_test_ == job.parameters.test && job.names.empty();
        const bool describes = session_.options.batch_files.empty() && !same;
        const bool by_socket = session_.launcher == Launcher::socket;
        if (describes && (by_socket ? runtime_.rank() == 0 : prints(layer)) && !output_.csv) {
            print(test_box(info, job.parameters, runtime_.size(), prints(layer)));
        }
        if (prints(layer)) {
            if (last_layer_ != layer || describes) {
                const bool various = !session_.options.batch_files.empty();
                print(table_head(layer, various ? nullptr : &info, job.parameters, output_,
                                 session_.options.batch_files));
            }
            print(names_line(layer, job.names, output_));
        }
        last_layer_ = layer;
        last_test_ = job.parameters.test;
    }

    Status run_primitive(const TestInfo& info, const Job& job, Test& test,
                         std::uint64_t iterations) {
        Recorder recorder(iterations);
        Counted before;
        const auto row = [&] {
            const PrimitiveRow made =
                primitive_row(recorder, before, info.kind, job.parameters.percentile);
            before = counted(recorder);
            return made;
        };
        if (prints(layer_of(info)) && !output_.final_only) {
            recorder.report_each(ticks_of(kReportSeconds), [&] {
                print(primitive_line(row(), job, output_, false, test.details()));
            });
        }
        if (Status status = measure(runtime_, test, recorder); !status.ok()) {
            return status;
        }
        const PrimitiveRow final_row = row();
        std::string details = test.details();
        if (yardsticks_.board != nullptr && runtime_.size() > 1) {
            details += details.empty() ? "" : ", ";
            details += limit_details(info, job.parameters, final_row);
        }
        if (prints(layer_of(info))) {
            print(primitive_line(final_row, job, output_, true, details));
        }
        return keep(json_of(job, final_row, details), printer(layer_of(info)));
    }

    /// Compares a row with what the two ranks' processors can do by themselves. Collective.
    std::string limit_details(const TestInfo& info, const Parameters& parameters,
                              const PrimitiveRow& row) {
        const double round_trip = yardsticks_.board->round_trip();
        const double rate = yardsticks_.board->copy_rate(parameters.bytes());
        const double latency = row.percentile * (info.kind == TestKind::ping_pong ? 2 : 1);
        return fmt::format("{:.2f} cache-line round trips, {:.1f} % of the rate of a copy",
                           latency / round_trip, 100 * row.overall_bandwidth / rate);
    }

    /// Opens the links between hosts once, where the ranks share no memory. Primitive tests do not
    /// need them.
    Status open_links() {
        if (yardsticks_.board != nullptr || yardsticks_.links != nullptr) {
            return {};
        }
        Result<std::unique_ptr<HostConnections>> links = HostConnections::create(runtime_);
        if (links.ok()) {
            yardsticks_.links = std::move(*links);
        }
        return links.status();
    }

    Status run_collective(const Job& job, Test& test, std::uint64_t iterations) {
        Recorder recorder(iterations);
        const bool shows = prints(Layer::collective) && ::isatty(STDERR_FILENO) == 1;
        Status status = open_links();
        const Result<double> round_trip = status.ok() ? yardsticks_.round_trip() : status;
        if (!round_trip.ok()) {
            return round_trip.status();
        }
        {
            Progress progress(recorder,
                              fmt::format("{} {} B", job.parameters.test, job.parameters.bytes()));
            if (shows) {
                recorder.report_each(ticks_of(kReportSeconds), [&] { progress.show(); });
            }
            status = measure(runtime_, test, recorder);
        }
        if (!status.ok()) {
            return status;
        }
        const Result<CollectiveRow> row =
            collective_row(runtime_, yardsticks_, *round_trip, job.parameters, recorder);
        if (!row.ok()) {
            return row.status();
        }
        if (prints(Layer::collective)) {
            print(collective_line(*row, job, output_, test.details()));
        }
        return keep(json_of(job, *row, test.details()), printer(Layer::collective));
    }

    static Ticks ticks_of(double seconds) {
        return static_cast<Ticks>(seconds * ticks_per_second());
    }

    /// Keeps the result of rank `from`, which prints it, on all ranks: one of them writes all
    /// results.
    Status keep(const std::string& mine, Rank from) {
        const Result<std::vector<std::string>> all =
            runtime_.exchange(runtime_.rank() == from ? mine : "");
        if (!all.ok()) {
            return all.status();
        }
        results_.push_back((*all)[static_cast<std::size_t>(from)]);
        return {};
    }

    Status write_json(const Status& status) const {
        if (output_.json.empty() || !prints(Layer::collective)) {
            return status;
        }
        const Status written =
            tools::write_output(output_.json, json_document(runtime_, session_, results_));
        return status.ok() ? written : status;
    }

    Runtime& runtime_;
    const Session& session_;
    const OutputOptions& output_;
    Yardsticks yardsticks_; ///< Without links before the first collective.
    std::vector<std::string> results_;
    std::optional<Layer> last_layer_;
    std::string last_test_;
};

} // namespace

RunOutcome run_jobs(Runtime& runtime, const Session& session) {
    return Runner(runtime, session).run();
}

} // namespace ucg::perftest
