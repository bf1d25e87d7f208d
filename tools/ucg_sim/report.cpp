#include "tools/ucg_sim/report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;
using sim::Picoseconds;
using sim::to_ns;

struct Statistics {
    double min_ns = 0;
    double median_ns = 0;
    double max_ns = 0;
};

Statistics statistics_of(std::vector<Picoseconds> times) {
    std::sort(times.begin(), times.end());
    const std::size_t middle = times.size() / 2;
    const double median_ns = times.size() % 2 == 1
                                 ? to_ns(times[middle])
                                 : (to_ns(times[middle - 1]) + to_ns(times[middle])) / 2;
    return {to_ns(times.front()), median_ns, to_ns(times.back())};
}

std::string rank_lines(const sim::Outcome& outcome) {
    std::string text = "\n  rank     entered ns      finish ns\n";
    for (std::size_t rank = 0; rank < outcome.finish.size(); ++rank) {
        text += fmt::format("  {:<4}  {:>13}  {:>13}\n", rank, to_ns(outcome.entered[rank]),
                            to_ns(outcome.finish[rank]));
    }
    return text;
}

Json activities_of(const sim::Trace& trace) {
    Json list = Json::array();
    for (const sim::Activity& activity : trace.activities) {
        list.push_back({{"rank", activity.rank},
                        {"kind", sim::name(activity.kind)},
                        {"op", activity.op},
                        {"iteration", activity.iteration},
                        {"start_ns", to_ns(activity.start)},
                        {"end_ns", to_ns(activity.end)}});
    }
    return list;
}

Json transfers_of(const sim::Trace& trace) {
    Json list = Json::array();
    for (const sim::Transfer& transfer : trace.transfers) {
        list.push_back({{"from", transfer.from},
                        {"to", transfer.to},
                        {"kind", sim::name(transfer.kind)},
                        {"bytes", transfer.bytes},
                        {"op", transfer.send_op},
                        {"begin_ns", to_ns(transfer.begin)},
                        {"left_ns", to_ns(transfer.left)},
                        {"arrived_ns", to_ns(transfer.arrived)},
                        {"taken_ns", to_ns(transfer.taken)}});
    }
    return list;
}

Json issues_of(const sim::Trace& trace) {
    Json list = Json::array();
    for (const sim::Issue& issue : trace.issues) {
        list.push_back({{"rank", issue.rank},
                        {"op", issue.op},
                        {"iteration", issue.iteration},
                        {"issued_ns", to_ns(issue.time)}});
    }
    return list;
}

} // namespace

std::string text_report(const Subject& subject, const Runs& runs) {
    const sim::Outcome& outcome = runs.first;
    const auto [first, last] = std::minmax_element(outcome.finish.begin(), outcome.finish.end());
    std::string text = fmt::format("{}\n  prices       {}\n  completion   {} ns\n", subject.title,
                                   subject.prices, to_ns(outcome.completion()));
    if (subject.in_a_row > 1) {
        text += fmt::format("  in a row     {} calls, {:.3f} ns each\n", subject.in_a_row,
                            to_ns(outcome.completion()) / subject.in_a_row);
    }
    text += fmt::format("  first done   rank {} at {} ns\n  last done    rank {} at {} ns\n",
                        first - outcome.finish.begin(), to_ns(*first),
                        last - outcome.finish.begin(), to_ns(*last));
    text += fmt::format("  messages     {}, {} bytes in all\n", outcome.message_count,
                        outcome.message_bytes);
    if (outcome.share_count > 0) {
        text += fmt::format("  flag slots   {} shared, {} read\n", outcome.share_count,
                            outcome.poll_count);
    }
    if (outcome.peer_bytes > 0) {
        text += fmt::format("  peer memory  {} bytes read\n", outcome.peer_bytes);
    }
    if (runs.completions.size() > 1) {
        const Statistics statistics = statistics_of(runs.completions);
        text += fmt::format("  {} repetitions: min {} ns, median {} ns, max {} ns\n",
                            runs.completions.size(), statistics.min_ns, statistics.median_ns,
                            statistics.max_ns);
    }
    constexpr std::size_t kLinesMax = 64; // More is for programs: --format json.
    return outcome.finish.size() <= kLinesMax ? text + rank_lines(outcome) : text;
}

std::string json_report(const Subject& subject, const Runs& runs, const sim::Trace* trace) {
    const sim::Outcome& outcome = runs.first;
    Json ranks = Json::array();
    for (std::size_t rank = 0; rank < outcome.finish.size(); ++rank) {
        ranks.push_back({{"rank", rank},
                         {"entered_ns", to_ns(outcome.entered[rank])},
                         {"finish_ns", to_ns(outcome.finish[rank])}});
    }
    const Statistics statistics = statistics_of(runs.completions);
    Json object = {{"completion_ns", to_ns(outcome.completion())},
                   {"ranks", std::move(ranks)},
                   {"collective", subject.collective},
                   {"algorithm", subject.algorithm},
                   {"prices", subject.prices},
                   {"in_a_row", subject.in_a_row},
                   {"seed", subject.seed},
                   {"messages", outcome.message_count},
                   {"message_bytes", outcome.message_bytes},
                   {"flag_slots_shared", outcome.share_count},
                   {"flag_slots_read", outcome.poll_count},
                   {"peer_memory_bytes", outcome.peer_bytes},
                   {"repetitions",
                    {{"count", runs.completions.size()},
                     {"min_ns", statistics.min_ns},
                     {"median_ns", statistics.median_ns},
                     {"max_ns", statistics.max_ns}}}};
    if (trace != nullptr) {
        object["activities"] = activities_of(*trace);
        object["transfers"] = transfers_of(*trace);
        object["ops"] = issues_of(*trace);
    }
    return object.dump() + "\n";
}

} // namespace ucg::tools
