// Draws the curves of what_if.hpp as charts.
#include <algorithm>

#include <fmt/format.h>

#include "perf/perftest/breakdown/svg.hpp"
#include "perf/perftest/breakdown/what_if.hpp"

namespace ucg::perftest::breakdown {

namespace {

// In pixels.
constexpr double kLeft = 64;
constexpr double kTop = 70;
constexpr double kPlotWidth = 420;
constexpr double kPlotHeight = 220;
constexpr double kLegendWidth = 380;
constexpr double kLegendPitch = 18;
constexpr double kPitch = kPlotHeight + 84;

/// The chart of one subject: its curves in a frame.
class Chart {
  public:
    Chart(std::vector<Curve> curves, double top) : curves_(std::move(curves)), top_(top) {
        for (const Curve& curve : curves_) {
            for (std::size_t i = 0; i < curve.after_ns.size(); ++i) {
                most_ = std::max(most_, 100 * curve.improvement_at(i));
            }
        }
        most_ = most_ <= 50 ? 10 * (static_cast<int>(most_ / 10) + 1) : 100;
    }

    std::string draw() const {
        std::string text = frame();
        for (std::size_t i = 0; i < curves_.size(); ++i) {
            text += line(i) + legend(i);
        }
        return text;
    }

  private:
    double x(double per_cent) const { return kLeft + kPlotWidth * per_cent / 100; }
    double y(double per_cent) const { return top_ + kPlotHeight * (1 - per_cent / most_); }

    std::string frame() const {
        std::string text = fmt::format(
            "<text x=\"{0}\" y=\"{1:.1f}\" font-weight=\"bold\">{2}: {3:.1f} ns</text>\n"
            "<rect x=\"{0}\" y=\"{4:.1f}\" width=\"{5}\" height=\"{6}\" fill=\"none\" "
            "stroke=\"#888888\"/>\n",
            kLeft, top_ - 10, svg_escaped(curves_.front().subject), curves_.front().before_ns, top_,
            kPlotWidth, kPlotHeight);
        for (const double fraction : kReductions) {
            text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}"
                                "</text>\n",
                                x(100 * fraction), top_ + kPlotHeight + 16, 100 * fraction);
        }
        for (int tick = 0; tick <= 5; ++tick) {
            const double value = most_ * tick / 5;
            text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f}</text>"
                                "\n<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" "
                                "stroke=\"#e4e4e4\"/>\n",
                                kLeft - 6, y(value) + 4, value, kLeft, kLeft + kPlotWidth, y(value),
                                y(value));
        }
        return text +
               fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">component "
                           "reduced by, %</text>\n"
                           "<text transform=\"translate(16 {:.1f}) rotate(-90)\" "
                           "text-anchor=\"middle\">less time, %</text>\n",
                           kLeft + kPlotWidth / 2, top_ + kPlotHeight + 34, top_ + kPlotHeight / 2);
    }

    std::string line(std::size_t index) const {
        const Curve& curve = curves_[index];
        std::string points;
        std::string dots;
        for (std::size_t i = 0; i < curve.after_ns.size(); ++i) {
            const double at_x = x(100 * kReductions[i]);
            const double at_y = y(100 * curve.improvement_at(i));
            points += fmt::format("{:.1f},{:.1f} ", at_x, at_y);
            dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", at_x,
                                at_y, colour(index));
        }
        return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
                           "stroke-width=\"1.8\"/>\n",
                           points, colour(index)) +
               dots;
    }

    std::string legend(std::size_t index) const {
        const double left = kLeft + kPlotWidth + 20;
        const double at = top_ + 10 + kLegendPitch * static_cast<double>(index);
        return fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"16\" height=\"4\" fill=\"{}\"/>\n"
                           "<text x=\"{}\" y=\"{:.1f}\">{}</text>\n",
                           left, at - 2, colour(index), left + 22, at + 4,
                           svg_escaped(curves_[index].component));
    }

    static std::string_view colour(std::size_t index) { return kColours[index % kColours.size()]; }

    std::vector<Curve> curves_;
    double top_;
    double most_ = 1;
};

} // namespace

std::string curves_svg(const std::vector<Curve>& curves, const std::string& subtitle) {
    std::string text;
    double top = kTop + 20;
    for (auto at = curves.begin(); at != curves.end();) {
        const auto end = std::find_if(
            at, curves.end(), [&](const Curve& curve) { return curve.subject != at->subject; });
        text += Chart({at, end}, top).draw();
        top += kPitch;
        at = end;
    }
    return svg_head(kLeft + kPlotWidth + kLegendWidth, top, "What if a component took less time?",
                    subtitle) +
           text + "</svg>\n";
}

} // namespace ucg::perftest::breakdown
