#include "ucg_coll/sim/timeline.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

namespace ucg::sim {

namespace {

// Pixels. A row has the port above and the processor below.
constexpr double kLeft = 84;
constexpr double kPlotWidth = 1000;
constexpr double kRight = 40;
constexpr double kTop = 92;
constexpr double kRowPitch = 34;
constexpr double kPortHeight = 7;
constexpr double kWorkHeight = 13;
constexpr double kAxisHeight = 46;

struct Look {
    std::string_view label;
    std::string_view colour;
};

constexpr Look kPort = {"message leaves", "#1f6fb4"};
constexpr Look kFlight = {"message in flight", "#5b7f9d"};
constexpr Look kSignal = {"signal in flight", "#8e5aa8"};
constexpr Look kBoard = {"board read", "#2f8f83"};
constexpr Look kDone = {"rank is done", "#b03030"};

Look look(Activity::Kind kind) {
    switch (kind) {
    case Activity::Kind::late: return {"not entered yet", "#bdbdbd"};
    case Activity::Kind::wait: return {"waits", "#eeeeee"};
    case Activity::Kind::issue: return {"issues a message", "#6baed6"};
    case Activity::Kind::take: return {"takes a message in", "#74c476"};
    case Activity::Kind::look: return {"takes boards in", "#8fd3c8"};
    case Activity::Kind::copy: return {"copies", "#c9a66b"};
    case Activity::Kind::reduce: return {"combines", "#f28e2b"};
    case Activity::Kind::publish: return {"publishes", "#e7cb94"};
    case Activity::Kind::share: return {"shares on its board", "#2f8f83"};
    }
    return {"", ""};
}

/// What an arrow is.
const Look& look(Transfer::Kind kind) {
    switch (kind) {
    case Transfer::Kind::message: return kFlight;
    case Transfer::Kind::signal: return kSignal;
    case Transfer::Kind::board: return kBoard;
    }
    return kFlight;
}

constexpr std::array kKinds = {
    Activity::Kind::late,   Activity::Kind::wait,    Activity::Kind::issue,
    Activity::Kind::take,   Activity::Kind::look,    Activity::Kind::copy,
    Activity::Kind::reduce, Activity::Kind::publish, Activity::Kind::share};
constexpr std::array kTransferKinds = {Transfer::Kind::message, Transfer::Kind::signal,
                                       Transfer::Kind::board};

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
        case '&': result += "&amp;"; break;
        case '<': result += "&lt;"; break;
        case '>': result += "&gt;"; break;
        case '"': result += "&quot;"; break;
        default: result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return result;
}

std::string time_text(Picoseconds time) {
    return fmt::format("{} ns", to_ns(time));
}

/// The unit of the axis, and the distance of its ticks: 1, 2 or 5 times a power of ten.
class Axis {
  public:
    explicit Axis(Picoseconds end) : end_(std::max<Picoseconds>(end, 1)) {
        constexpr Picoseconds kTicksMax = 12;
        static constexpr std::array<Picoseconds, 3> kSteps = {1, 2, 5};
        Picoseconds power = 1;
        for (std::size_t i = 0; end_ / step_ > kTicksMax; i = (i + 1) % kSteps.size()) {
            power = i == 0 && step_ > 1 ? power * 10 : power;
            step_ = kSteps[i] * power;
        }
        static constexpr std::array<std::pair<Picoseconds, std::string_view>, 4> kUnits = {
            {{1, "ps"}, {1000, "ns"}, {1'000'000, "µs"}, {1'000'000'000, "ms"}}};
        for (const auto& [size, name] : kUnits) {
            if (end_ >= 10 * size) {
                unit_ = size;
                unit_name_ = name;
            }
        }
    }

    double x(Picoseconds time) const {
        return kLeft + kPlotWidth * static_cast<double>(time) / static_cast<double>(end_);
    }

    std::string draw(double bottom) const {
        std::string text;
        for (Picoseconds tick = 0; tick <= end_; tick += step_) {
            text += fmt::format(
                "<line x1=\"{0:.2f}\" y1=\"{1}\" x2=\"{0:.2f}\" y2=\"{2}\" stroke=\"#d8d8d8\"/>\n"
                "<text x=\"{0:.2f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
                x(tick), kTop - 8, bottom + 4, bottom + 18,
                static_cast<double>(tick) / static_cast<double>(unit_));
        }
        return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time in {}"
                                  "</text>\n",
                                  kLeft + kPlotWidth / 2, bottom + 36, unit_name_);
    }

  private:
    Picoseconds end_;
    Picoseconds step_ = 1;
    Picoseconds unit_ = 1;
    std::string_view unit_name_ = "ps";
};

double row(Rank rank) {
    return kTop + kRowPitch * rank;
}

double work_row(Rank rank) {
    return row(rank) + kPortHeight + 1;
}

std::string rectangle(const Axis& axis, Picoseconds start, Picoseconds end, double y, double height,
                      std::string_view colour, std::string_view tip) {
    return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\">"
                       "<title>{}</title></rect>\n",
                       axis.x(start), y, axis.x(end) - axis.x(start), height, colour, escaped(tip));
}

std::string describe(const Activity& activity) {
    return fmt::format("rank {} {}: {} .. {} (op {})", activity.rank, look(activity.kind).label,
                       time_text(activity.start), time_text(activity.end), activity.op);
}

std::string describe(const Transfer& transfer) {
    if (transfer.kind == Transfer::Kind::board) {
        return fmt::format(
            "board of rank {}, of which rank {} reads {} bytes: shared {} .. {}, seen "
            "at {}, taken in at {}",
            transfer.from, transfer.to, transfer.bytes, time_text(transfer.begin),
            time_text(transfer.left), time_text(transfer.arrived), time_text(transfer.taken));
    }
    return fmt::format("{} from rank {} to rank {}, {} bytes: leaves {} .. {}, arrives at {}",
                       name(transfer.kind), transfer.from, transfer.to, transfer.bytes,
                       time_text(transfer.begin), time_text(transfer.left),
                       time_text(transfer.arrived));
}

std::string_view dashes(Transfer::Kind kind) {
    switch (kind) {
    case Transfer::Kind::message: return "";
    case Transfer::Kind::signal: return " stroke-dasharray=\"4 3\"";
    case Transfer::Kind::board: return " stroke-dasharray=\"1 2\"";
    }
    return "";
}

/// From the sender's port, or the share, to the top or the bottom of the receiver's row, whichever
/// faces it.
std::string arrow(const Axis& axis, const Transfer& transfer) {
    const bool down = transfer.to > transfer.from;
    const bool is_board = transfer.kind == Transfer::Kind::board;
    const double from_y =
        is_board ? work_row(transfer.from) + kWorkHeight / 2 : row(transfer.from) + kPortHeight / 2;
    const double to_y = down ? row(transfer.to) : work_row(transfer.to) + kWorkHeight;
    return fmt::format("<g><title>{}</title><line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" "
                       "y2=\"{:.2f}\" stroke=\"{}\"{} marker-end=\"url(#head)\"/></g>\n",
                       escaped(describe(transfer)), axis.x(transfer.left), from_y,
                       axis.x(transfer.arrived), to_y, look(transfer.kind).colour,
                       dashes(transfer.kind));
}

/// Boxes and lines with what they mean, as far as they occur.
std::string legend(const Trace& trace) {
    std::vector<Look> entries;
    const auto occurs = [&](Activity::Kind kind) {
        return std::any_of(trace.activities.begin(), trace.activities.end(),
                           [&](const Activity& activity) { return activity.kind == kind; });
    };
    for (const Activity::Kind kind : kKinds) {
        if (occurs(kind)) {
            entries.push_back(look(kind));
        }
    }
    const auto travels = [&](Transfer::Kind kind) {
        return std::any_of(trace.transfers.begin(), trace.transfers.end(),
                           [&](const Transfer& transfer) { return transfer.kind == kind; });
    };
    if (travels(Transfer::Kind::message) || travels(Transfer::Kind::signal)) {
        entries.push_back(kPort);
    }
    for (const Transfer::Kind kind : kTransferKinds) {
        if (travels(kind)) {
            entries.push_back(look(kind));
        }
    }
    entries.push_back(kDone);
    std::string text;
    double x = kLeft;
    constexpr double kBox = 12;
    constexpr double kLetter = 6.4; // Of a sans-serif font of 12 pixels, on average.
    for (const auto& [label, colour] : entries) {
        text += fmt::format("<rect x=\"{:.1f}\" y=\"54\" width=\"{}\" height=\"{}\" fill=\"{}\" "
                            "stroke=\"#888888\" stroke-width=\"0.5\"/>\n"
                            "<text x=\"{:.1f}\" y=\"64\">{}</text>\n",
                            x, kBox, kBox, colour, x + kBox + 5, label);
        x += kBox + 21 + kLetter * static_cast<double>(label.size());
    }
    return text;
}

std::string head(double width, double height, const Caption& caption) {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<title>{2}</title>\n"
        "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0.5 L8 4 L0 7.5 z\" "
        "fill=\"#3f5f78\"/></marker></defs>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
        "<text x=\"{3}\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{2}</text>\n"
        "<text x=\"{3}\" y=\"43\" fill=\"#444444\">{4}</text>\n",
        width, height, escaped(caption.title), kLeft, escaped(caption.subtitle));
}

std::string rank_rows(const Axis& axis, const Outcome& outcome) {
    std::string text;
    for (Rank rank = 0; rank < static_cast<Rank>(outcome.finish.size()); ++rank) {
        const Picoseconds done = outcome.finish[static_cast<std::size_t>(rank)];
        text += fmt::format("<text x=\"{}\" y=\"{:.2f}\" text-anchor=\"end\">rank {}</text>\n",
                            kLeft - 10, work_row(rank) + kWorkHeight - 4, rank);
        text += fmt::format("<g><title>rank {0} is done at {1}</title><line x1=\"{2:.2f}\" "
                            "y1=\"{3:.2f}\" x2=\"{2:.2f}\" y2=\"{4:.2f}\" stroke=\"{5}\" "
                            "stroke-width=\"2\"/></g>\n",
                            rank, time_text(done), axis.x(done), row(rank) - 2,
                            work_row(rank) + kWorkHeight + 2, kDone.colour);
    }
    return text;
}

/// A line of timeline_text() with what it is sorted by.
struct Line {
    Rank rank = 0;
    Picoseconds start = 0;
    Picoseconds end = 0;
    std::string text;
};

/// Of a board, the reader's: who shares does not know them.
Line line_of(const Transfer& transfer) {
    if (transfer.kind == Transfer::Kind::board) {
        return {transfer.to, transfer.arrived, transfer.taken,
                fmt::format("board of {}, {} bytes, shared at {} (its op {})", transfer.from,
                            transfer.bytes, time_text(transfer.left), transfer.send_op)};
    }
    return {transfer.from, transfer.begin, transfer.left,
            fmt::format("{} to {}, {} bytes, arrives at {} (op {})",
                        transfer.kind == Transfer::Kind::signal ? "signal" : "send", transfer.to,
                        transfer.bytes, time_text(transfer.arrived), transfer.send_op)};
}

std::vector<Line> lines_of(const Trace& trace) {
    std::vector<Line> lines;
    for (const Activity& activity : trace.activities) {
        lines.push_back({activity.rank, activity.start, activity.end,
                         fmt::format("{} (op {})", name(activity.kind), activity.op)});
    }
    for (const Transfer& transfer : trace.transfers) {
        lines.push_back(line_of(transfer));
    }
    std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
        return std::tie(a.rank, a.start, a.end) < std::tie(b.rank, b.start, b.end);
    });
    return lines;
}

} // namespace

std::string_view name(Activity::Kind kind) {
    switch (kind) {
    case Activity::Kind::late: return "late";
    case Activity::Kind::wait: return "wait";
    case Activity::Kind::issue: return "issue";
    case Activity::Kind::take: return "take";
    case Activity::Kind::look: return "look";
    case Activity::Kind::copy: return "copy";
    case Activity::Kind::reduce: return "reduce";
    case Activity::Kind::publish: return "publish";
    case Activity::Kind::share: return "share";
    }
    return "";
}

std::string_view name(Transfer::Kind kind) {
    switch (kind) {
    case Transfer::Kind::message: return "message";
    case Transfer::Kind::signal: return "signal";
    case Transfer::Kind::board: return "board";
    }
    return "";
}

std::string timeline_svg(const Outcome& outcome, const Trace& trace, const Caption& caption) {
    const Axis axis(outcome.completion());
    const double bottom = row(static_cast<Rank>(outcome.finish.size())) - 6;
    std::string text = head(kLeft + kPlotWidth + kRight, bottom + kAxisHeight, caption);
    text += legend(trace);
    text += axis.draw(bottom);
    for (const Activity& activity : trace.activities) {
        text += rectangle(axis, activity.start, activity.end, work_row(activity.rank), kWorkHeight,
                          look(activity.kind).colour, describe(activity));
    }
    for (const Transfer& transfer : trace.transfers) {
        if (transfer.kind != Transfer::Kind::board) { // A share passes no port.
            text += rectangle(axis, transfer.begin, transfer.left, row(transfer.from), kPortHeight,
                              kPort.colour, describe(transfer));
        }
    }
    for (const Transfer& transfer : trace.transfers) {
        text += arrow(axis, transfer);
    }
    return text + rank_rows(axis, outcome) + "</svg>\n";
}

std::string timeline_text(const Outcome& outcome, const Trace& trace) {
    std::string text;
    const std::vector<Line> lines = lines_of(trace);
    auto line = lines.begin();
    for (Rank rank = 0; rank < static_cast<Rank>(outcome.finish.size()); ++rank) {
        for (; line != lines.end() && line->rank == rank; ++line) {
            text += fmt::format("rank {}  {} .. {} ns  {}\n", rank, to_ns(line->start),
                                to_ns(line->end), line->text);
        }
        text += fmt::format("rank {}  done at {}\n", rank,
                            time_text(outcome.finish[static_cast<std::size_t>(rank)]));
    }
    return text;
}

} // namespace ucg::sim
