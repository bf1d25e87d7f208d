#include "ucg_coll/sim/timeline.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

namespace ucg::sim {

namespace {

// Lengths in pixels. A row has the port above and the processor below. Rows and times count from
// the upper left corner of the plot.
constexpr double kMargin = 16;
constexpr double kPlotWidth = 1000;
constexpr double kRight = 40;
constexpr double kRowPitch = 34;
constexpr double kPortHeight = 7;
constexpr double kWorkHeight = 13;
constexpr double kAxisHeight = 46;
constexpr double kLineHeight = 19;
constexpr double kThin = 1; // The width of arrows.
constexpr double kThick = 2;
// The mean width of letters, which no usual sans-serif font exceeds: of 12 pixels, and of 16 bold.
constexpr double kLetter = 6.9;
constexpr double kTitleLetter = 9.9;

struct Look {
    std::string_view label;
    std::string_view colour;
};

constexpr Look kPort = {"message leaves", "#1f6fb4"};
constexpr Look kDone = {"rank is done", "#b03030"};

/// The colours of arrows, by sender: Okabe and Ito's, which differ for all eyes. There are seven,
/// so that ranks that send in the same step of an algorithm, often a power of two apart, differ.
constexpr std::array<std::string_view, 7> kSenders = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#333333", "#e69f00", "#56b4e9"};

std::size_t sender_look(Rank rank) {
    return static_cast<std::size_t>(rank) % kSenders.size();
}

Look look(Activity::Kind kind) {
    switch (kind) {
    case Activity::Kind::late: return {"not entered yet", "#a0a0a0"};
    case Activity::Kind::wait: return {"waits", "#dcdcdc"};
    case Activity::Kind::issue: return {"issues a message", "#6baed6"};
    case Activity::Kind::take: return {"takes a message in", "#74c476"};
    case Activity::Kind::poll: return {"takes flag slots in", "#8fd3c8"};
    case Activity::Kind::copy: return {"copies", "#c9a66b"};
    case Activity::Kind::reduce: return {"combines", "#f28e2b"};
    case Activity::Kind::publish: return {"publishes", "#e7cb94"};
    case Activity::Kind::share: return {"shares on its flag slot", "#2f8f83"};
    }
    return {"", ""};
}

std::string_view label(Transfer::Kind kind) {
    switch (kind) {
    case Transfer::Kind::message: return "message in flight";
    case Transfer::Kind::signal: return "signal in flight";
    case Transfer::Kind::flag_slot: return "flag slot read";
    }
    return "";
}

std::string_view dashes(Transfer::Kind kind) {
    switch (kind) {
    case Transfer::Kind::message: return "";
    case Transfer::Kind::signal: return " stroke-dasharray=\"5 3\"";
    case Transfer::Kind::flag_slot: return " stroke-dasharray=\"1.5 2.5\"";
    }
    return "";
}

constexpr std::array kKinds = {
    Activity::Kind::late,   Activity::Kind::wait,    Activity::Kind::issue,
    Activity::Kind::take,   Activity::Kind::poll,    Activity::Kind::copy,
    Activity::Kind::reduce, Activity::Kind::publish, Activity::Kind::share};
constexpr std::array kTransferKinds = {Transfer::Kind::message, Transfer::Kind::signal,
                                       Transfer::Kind::flag_slot};

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

/// The time axis: its unit, and the distance of its ticks, which is 1, 2 or 5 times a power of ten.
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
        return kPlotWidth * static_cast<double>(time) / static_cast<double>(end_);
    }

    std::string draw(double bottom) const {
        std::string text;
        for (Picoseconds tick = 0; tick <= end_; tick += step_) {
            text += fmt::format(
                "<line x1=\"{0:.2f}\" y1=\"-8\" x2=\"{0:.2f}\" y2=\"{1}\" stroke=\"#d8d8d8\"/>\n"
                "<text x=\"{0:.2f}\" y=\"{2}\" text-anchor=\"middle\">{3}</text>\n",
                x(tick), bottom + 4, bottom + 18,
                static_cast<double>(tick) / static_cast<double>(unit_));
        }
        return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time in {}"
                                  "</text>\n",
                                  kPlotWidth / 2, bottom + 36, unit_name_);
    }

  private:
    Picoseconds end_;
    Picoseconds step_ = 1;
    Picoseconds unit_ = 1;
    std::string_view unit_name_ = "ps";
};

double row(Rank rank) {
    return kRowPitch * rank;
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
    if (transfer.kind == Transfer::Kind::flag_slot) {
        return fmt::format(
            "flag slot of rank {}, of which rank {} reads {} bytes: shared {} .. {}, seen "
            "at {}, taken in at {}",
            transfer.from, transfer.to, transfer.bytes, time_text(transfer.begin),
            time_text(transfer.left), time_text(transfer.arrived), time_text(transfer.taken));
    }
    return fmt::format("{} from rank {} to rank {}, {} bytes: leaves {} .. {}, arrives at {}",
                       name(transfer.kind), transfer.from, transfer.to, transfer.bytes,
                       time_text(transfer.begin), time_text(transfer.left),
                       time_text(transfer.arrived));
}

/// Returns an arrow from the sender's port, or the share, to the top or the bottom of the
/// receiver's row, whichever faces it. Arrows between hosts are thicker.
std::string arrow(const Axis& axis, const Transfer& transfer, const topo::Placement& placement) {
    const bool down = transfer.to > transfer.from;
    const bool is_flag_slot = transfer.kind == Transfer::Kind::flag_slot;
    const double from_y = is_flag_slot ? work_row(transfer.from) + kWorkHeight / 2
                                       : row(transfer.from) + kPortHeight / 2;
    const double to_y = down ? row(transfer.to) : work_row(transfer.to) + kWorkHeight;
    const std::size_t look = sender_look(transfer.from);
    return fmt::format("<g><title>{}</title><line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" "
                       "y2=\"{:.2f}\" stroke=\"{}\" stroke-width=\"{}\"{} "
                       "marker-end=\"url(#head{})\"/></g>\n",
                       escaped(describe(transfer)), axis.x(transfer.left), from_y,
                       axis.x(transfer.arrived), to_y, kSenders[look],
                       placement.same_host(transfer.from, transfer.to) ? kThin : kThick,
                       dashes(transfer.kind), look);
}

/// What stands above the plot: lines of text, then rows of the legend, none wider than the picture.
class Heading {
  public:
    Heading(double width, double y) : width_(width), y_(y) {}

    /// Adds lines of text, broken behind blanks and commas.
    void add_text(std::string_view text, double letter, std::string_view attributes) {
        const auto most = static_cast<std::size_t>((width_ - 2 * kMargin) / letter);
        while (!text.empty()) {
            std::size_t length = text.size();
            if (length > most) {
                const std::size_t blank = text.find_last_of(" ,", most - 1);
                length = blank == std::string_view::npos ? most : blank + 1;
                while ((static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80) {
                    --length; // It is inside a letter of UTF-8.
                }
            }
            svg_ += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", kMargin, y_, attributes,
                                escaped(text.substr(0, length)));
            text.remove_prefix(length);
            y_ += kLineHeight;
        }
    }

    void add_box(const Look& look) {
        place(look.label, fmt::format("<rect width=\"{0}\" height=\"{0}\" y=\"-10\" fill=\"{1}\" "
                                      "stroke=\"#888888\" stroke-width=\"0.5\"/>",
                                      kBox, look.colour));
    }

    void add_line(std::string_view label, double width, std::string_view dashes) {
        place(label, fmt::format("<line x1=\"-2\" y1=\"-4\" x2=\"{}\" y2=\"-4\" stroke=\"#333333\" "
                                 "stroke-width=\"{}\"{}/>",
                                 kBox + 2, width, dashes));
    }

    const std::string& svg() const { return svg_; }
    /// Returns where the last line or row stands.
    double y() const { return y_; }

  private:
    static constexpr double kBox = 12;

    void place(std::string_view label, const std::string& sample) {
        const double needed = kBox + 5 + kLetter * static_cast<double>(label.size());
        if (x_ + needed > width_ - kMargin) {
            x_ = kMargin;
            y_ += kLineHeight;
        }
        svg_ +=
            fmt::format("<g transform=\"translate({:.1f} {})\">{}<text x=\"{}\">{}</text></g>\n",
                        x_, y_, sample, kBox + 5, label);
        x_ += needed + 12;
    }

    double width_;
    double x_ = kMargin;
    double y_;
    std::string svg_;
};

/// Adds what boxes and lines mean, as far as they occur.
void add_legend(Heading& heading, const Trace& trace, const topo::Placement& placement) {
    for (const Activity::Kind kind : kKinds) {
        if (std::any_of(trace.activities.begin(), trace.activities.end(),
                        [&](const Activity& activity) { return activity.kind == kind; })) {
            heading.add_box(look(kind));
        }
    }
    const auto travels = [&](const auto& is_meant) {
        return std::any_of(trace.transfers.begin(), trace.transfers.end(), is_meant);
    };
    if (travels([](const Transfer& t) { return t.kind != Transfer::Kind::flag_slot; })) {
        heading.add_box(kPort);
    }
    heading.add_box(kDone);
    for (const Transfer::Kind kind : kTransferKinds) {
        if (travels([&](const Transfer& t) { return t.kind == kind; })) {
            heading.add_line(label(kind), kThin, dashes(kind));
        }
    }
    if (travels([&](const Transfer& t) { return !placement.same_host(t.from, t.to); })) {
        heading.add_line("between hosts", kThick, "");
    }
    if (!trace.transfers.empty()) {
        heading.add_line("has the colour beside its sender", kThin, "");
    }
}

std::string head(double width, double height, const Caption& caption) {
    std::string text =
        fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                    "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<title>{2}</title>\n<defs>\n",
                    width, height, escaped(caption.title));
    for (std::size_t i = 0; i < kSenders.size(); ++i) {
        text += fmt::format("<marker id=\"head{}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" "
                            "markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\" "
                            "orient=\"auto\"><path d=\"M0 0.5 L8 4 L0 7.5 z\" fill=\"{}\"/>"
                            "</marker>\n",
                            i, kSenders[i]);
    }
    return text + fmt::format("</defs>\n<rect width=\"{}\" height=\"{}\" fill=\"white\"/>\n", width,
                              height);
}

/// Returns the plot's distance from the left, which holds the labels of hosts, where there are
/// several, and of ranks.
double left_of(const topo::Placement& placement) {
    const std::size_t letters =
        fmt::formatted_size("rank {}", placement.rank_count()) +
        (placement.host_count() > 1 ? fmt::formatted_size("host {}  ", placement.host_count()) : 0);
    return kMargin + kLetter * static_cast<double>(letters) + 20;
}

/// Returns a band behind each run of ranks on the same host; neighbouring hosts differ in colour.
std::string host_bands(const topo::Placement& placement, double left) {
    std::string text;
    Rank end = 0;
    for (Rank begin = 0; placement.host_count() > 1 && begin < placement.rank_count();
         begin = end) {
        while (end < placement.rank_count() && placement.same_host(begin, end)) {
            ++end;
        }
        const std::uint32_t host = placement.host(begin);
        text += fmt::format("<rect class=\"host\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
                            "fill=\"{}\"/>\n<text x=\"{}\" y=\"{}\" font-weight=\"bold\">host {}"
                            "</text>\n",
                            -left, row(begin) - 6, left + kPlotWidth + kRight,
                            row(end) - row(begin), host % 2 == 0 ? "#edf3fa" : "#fcf8ec",
                            kMargin - left, work_row(begin) + kWorkHeight - 4, host);
    }
    return text;
}

std::string rank_rows(const Axis& axis, const Outcome& outcome) {
    std::string text;
    for (Rank rank = 0; rank < static_cast<Rank>(outcome.finish.size()); ++rank) {
        const Picoseconds done = outcome.finish[static_cast<std::size_t>(rank)];
        text +=
            fmt::format("<text x=\"-16\" y=\"{:.2f}\" text-anchor=\"end\">rank {}</text>\n"
                        "<rect x=\"-11\" y=\"{:.2f}\" width=\"6\" height=\"{}\" fill=\"{}\"/>\n",
                        work_row(rank) + kWorkHeight - 4, rank, work_row(rank), kWorkHeight,
                        kSenders[sender_look(rank)]);
        text += fmt::format("<g><title>rank {0} is done at {1}</title><line x1=\"{2:.2f}\" "
                            "y1=\"{3:.2f}\" x2=\"{2:.2f}\" y2=\"{4:.2f}\" stroke=\"{5}\" "
                            "stroke-width=\"2\"/></g>\n",
                            rank, time_text(done), axis.x(done), row(rank) - 2,
                            work_row(rank) + kWorkHeight + 2, kDone.colour);
    }
    return text;
}

/// A line of timeline_text(), and what lines are sorted by.
struct Line {
    Rank rank = 0;
    Picoseconds start = 0;
    Picoseconds end = 0;
    std::string text;
};

/// Returns the line of a transfer: for a flag slot that of its reader, as the rank that shares does
/// not know its readers; else that of the sender.
Line line_of(const Transfer& transfer) {
    if (transfer.kind == Transfer::Kind::flag_slot) {
        return {transfer.to, transfer.arrived, transfer.taken,
                fmt::format("flag slot of {}, {} bytes, shared at {} (its op {})", transfer.from,
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
    case Activity::Kind::poll: return "poll";
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
    case Transfer::Kind::flag_slot: return "flag_slot";
    }
    return "";
}

std::string timeline_svg(const Outcome& outcome, const Trace& trace,
                         const topo::Placement& placement, const Caption& caption) {
    const Axis axis(outcome.completion());
    const double left = left_of(placement);
    const double width = left + kPlotWidth + kRight;
    const double bottom = row(placement.rank_count()) - 6;
    Heading heading(width, 24);
    heading.add_text(caption.title, kTitleLetter, " font-size=\"16\" font-weight=\"bold\"");
    heading.add_text(caption.subtitle, kLetter, " fill=\"#444444\"");
    add_legend(heading, trace, placement);
    const double top = heading.y() + 28;
    std::string text = head(width, top + bottom + kAxisHeight, caption) + heading.svg();
    text += fmt::format("<g transform=\"translate({} {})\">\n", left, top);
    text += host_bands(placement, left) + axis.draw(bottom);
    for (const Activity& activity : trace.activities) {
        text += rectangle(axis, activity.start, activity.end, work_row(activity.rank), kWorkHeight,
                          look(activity.kind).colour, describe(activity));
    }
    for (const Transfer& transfer : trace.transfers) {
        if (transfer.kind != Transfer::Kind::flag_slot) { // A share passes no port.
            text += rectangle(axis, transfer.begin, transfer.left, row(transfer.from), kPortHeight,
                              kPort.colour, describe(transfer));
        }
    }
    for (const Transfer& transfer : trace.transfers) {
        text += arrow(axis, transfer, placement);
    }
    return text + rank_rows(axis, outcome) + "</g>\n</svg>\n";
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
