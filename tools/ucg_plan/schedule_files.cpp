#include "tools/ucg_plan/schedule_files.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/cli.hpp"
#include "tools/ucg_plan/question.hpp"

namespace ucg::tools {

using graph::Collective;
using graph::Schedule;

namespace {

using Schedules = std::vector<Schedule>;

bool begins_schedule(std::string_view line) {
    const std::size_t word = line.find_first_not_of(" \t");
    return word != std::string_view::npos && line.substr(word, 9) == "schedule ";
}

/// Parses schedules that follow one another; each begins with its header line.
Result<Schedules> parse_texts(std::string_view text) {
    Schedules schedules;
    std::string part; // Empty lines replace earlier parts, to keep line numbers right.
    std::size_t lines = 0;
    bool has_header = false;
    const auto finish_part = [&]() -> Status {
        Result<Schedule> schedule = graph::parse_text(part);
        if (schedule) {
            schedules.push_back(std::move(*schedule));
        }
        return schedule.status();
    };
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (begins_schedule(line)) {
            if (has_header) {
                if (Status status = finish_part(); !status.ok()) {
                    return status;
                }
                part.assign(lines, '\n');
            }
            has_header = true;
        }
        part.append(line).append("\n");
        ++lines;
    }
    if (Status status = finish_part(); !status.ok()) {
        return status;
    }
    return schedules;
}

Result<Schedules> parse_jsons(const std::string& text) {
    Schedules schedules;
    try {
        nlohmann::ordered_json json = nlohmann::ordered_json::parse(text);
        if (!json.is_array()) {
            json = nlohmann::ordered_json::array({std::move(json)});
        }
        for (std::size_t i = 0; i < json.size(); ++i) {
            Result<Schedule> schedule = graph::parse_json(json[i].dump());
            if (!schedule) {
                return failure(schedule.status().code(), "schedule {}: {}", i,
                               schedule.status().message());
            }
            schedules.push_back(std::move(*schedule));
        }
    } catch (const nlohmann::json::exception& error) {
        return failure(Code::invalid_argument, "{}", error.what());
    }
    return schedules;
}

Result<Schedules> read_file(const std::string& path) {
    const Result<std::string> text = read_input(path);
    if (!text) {
        return text.status();
    }
    const std::size_t first = text->find_first_not_of(" \t\r\n");
    const bool is_json =
        first != std::string::npos && ((*text)[first] == '{' || (*text)[first] == '[');
    Result<Schedules> schedules = is_json ? parse_jsons(*text) : parse_texts(*text);
    return schedules ? std::move(schedules) : in_file(path, schedules.status());
}

Status check_ranks(const Schedules& schedules) {
    const Schedule& first = schedules.front();
    Rank expected = 0;
    for (const Schedule& schedule : schedules) {
        if (schedule.rank_count != first.rank_count || schedule.collective != first.collective) {
            return failure(Code::invalid_argument,
                           "rank {} has a schedule for {} among {} ranks, rank {} for {} among {}",
                           first.rank, graph::name(first.collective), first.rank_count,
                           schedule.rank, graph::name(schedule.collective), schedule.rank_count);
        }
        if (schedule.rank != expected) {
            return failure(Code::invalid_argument, "rank {} has {}",
                           std::min(schedule.rank, expected),
                           schedule.rank < expected ? "two schedules" : "no schedule");
        }
        ++expected;
    }
    if (expected != first.rank_count) {
        return failure(Code::invalid_argument, "rank {} has no schedule", expected);
    }
    return {};
}

/// Infers the question that the ranks must have been asked.
class Inference {
  public:
    Inference(const Schedules& schedules, const Hints& hints)
        : schedules_(schedules), hints_(hints) {
        question_.collective = schedules.front().collective;
        question_.rank_count = schedules.front().rank_count;
        question_.element_bytes = schedules.front().element_bytes;
        question_.commutative = hints.commutative;
    }

    Result<Question> run() {
        if (graph::rooted(question_.collective)) {
            question_.root = hints_.root.value_or(find_root());
            if (question_.root >= question_.rank_count) {
                return failure(Code::invalid_argument, "--root: {} is not in 0 .. {}",
                               question_.root, question_.rank_count - 1);
            }
        }
        question_.in_place = at_root().in_place;
        if (graph::has_block_vectors(question_.collective)) {
            question_.blocks = hints_.blocks.empty() ? find_blocks() : hints_.blocks;
            if (question_.blocks.size() != schedules_.size()) {
                return failure(Code::invalid_argument,
                               "--blocks: {}{} needs the lengths of {} blocks, found {}",
                               graph::name(question_.collective),
                               question_.in_place ? " in place" : "", schedules_.size(),
                               question_.blocks.size());
            }
        } else {
            question_.bytes = find_bytes();
        }
        return question_;
    }

  private:
    const Schedule& at_root() const { return schedules_[static_cast<std::size_t>(question_.root)]; }

    /// Returns the rank that has the buffer which only a root has. If no rank has any bytes any
    /// root will do.
    Rank find_root() const {
        const auto sends = [](const Schedule& schedule) { return schedule.input_bytes > 0; };
        const auto receives = [](const Schedule& schedule) { return schedule.output_bytes > 0; };
        const bool root_sends = question_.collective == Collective::bcast ||
                                question_.collective == Collective::scatter ||
                                question_.collective == Collective::scatterv;
        const auto found = root_sends
                               ? std::find_if(schedules_.begin(), schedules_.end(), sends)
                               : std::find_if(schedules_.begin(), schedules_.end(), receives);
        return found == schedules_.end() ? 0 : static_cast<Rank>(found - schedules_.begin());
    }

    std::uint64_t find_bytes() const {
        const Schedule& root = at_root();
        const auto ranks = static_cast<std::uint64_t>(question_.rank_count);
        switch (question_.collective) {
        case Collective::bcast: return root.input_bytes;
        case Collective::scatter: return root.input_bytes / ranks;
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan:
        case Collective::exscan: return root.output_bytes;
        case Collective::reduce_scatter_block:
            return root.in_place ? root.output_bytes / ranks : root.output_bytes;
        case Collective::allgather:
        case Collective::alltoall:
        case Collective::gather: return root.output_bytes / ranks;
        default: return 0;
        }
    }

    /// Returns the length of each rank's own block; empty where the schedules do not show it.
    std::vector<std::uint64_t> find_blocks() const {
        switch (question_.collective) {
        case Collective::allgatherv:
            return question_.in_place ? std::vector<std::uint64_t>()
                                      : blocks_of(&Schedule::input_bytes);
        case Collective::reduce_scatter:
            return question_.in_place ? std::vector<std::uint64_t>()
                                      : blocks_of(&Schedule::output_bytes);
        case Collective::gatherv:
            return with_root(blocks_of(&Schedule::input_bytes), at_root().output_bytes);
        case Collective::neighbor_alltoallv: return halves(blocks_of(&Schedule::input_bytes));
        case Collective::scatterv:
            return with_root(blocks_of(&Schedule::output_bytes), at_root().input_bytes);
        default: return {};
        }
    }

    std::vector<std::uint64_t> blocks_of(std::uint64_t Schedule::*bytes) const {
        std::vector<std::uint64_t> blocks;
        for (const Schedule& schedule : schedules_) {
            blocks.push_back(schedule.*bytes);
        }
        return blocks;
    }

    /// Returns the lengths of single blocks, where a rank sends two blocks of equal length.
    static std::vector<std::uint64_t> halves(std::vector<std::uint64_t> bytes) {
        for (std::uint64_t& both : bytes) {
            both /= 2;
        }
        return bytes;
    }

    /// Returns the blocks with that of the root. In place the root has no buffer for its own block
    /// alone: its length is the rest of `total`.
    std::vector<std::uint64_t> with_root(std::vector<std::uint64_t> blocks,
                                         std::uint64_t total) const {
        if (question_.in_place) {
            std::uint64_t& own = blocks[static_cast<std::size_t>(question_.root)];
            own = 0;
            const std::uint64_t others =
                std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0});
            own = total > others ? total - others : 0;
        }
        return blocks;
    }

    const Schedules& schedules_;
    const Hints& hints_;
    Question question_;
};

} // namespace

Result<Schedules> read_schedules(const std::vector<std::string>& paths) {
    Schedules all;
    for (const std::string& path : paths) {
        Result<Schedules> some = read_file(path);
        if (!some) {
            return some.status();
        }
        std::move(some->begin(), some->end(), std::back_inserter(all));
    }
    if (all.empty()) {
        return failure(Code::invalid_argument, "no schedules in {}", fmt::join(paths, ", "));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Schedule& a, const Schedule& b) { return a.rank < b.rank; });
    if (Status status = check_ranks(all); !status.ok()) {
        return status;
    }
    return all;
}

Result<std::vector<graph::Request>> infer_requests(const Schedules& schedules, const Hints& hints) {
    const Result<Question> question = Inference(schedules, hints).run();
    if (!question) {
        return question.status();
    }
    std::vector<graph::Request> requests;
    for (const Schedule& schedule : schedules) {
        requests.push_back(request_of(*question, schedule.rank));
    }
    return requests;
}

} // namespace ucg::tools
