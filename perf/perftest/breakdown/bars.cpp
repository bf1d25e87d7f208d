#include "perf/perftest/breakdown/bars.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "perf/perftest/breakdown/svg.hpp"

namespace ucg::perftest::breakdown {

namespace {

// In pixels. Each bar has its title above and its legend below.
constexpr double kLeft = 20;
constexpr double kWidth = 860;
constexpr double kTop = 66;
constexpr double kTitleHeight = 20;
constexpr double kBarHeight = 30;
constexpr double kLegendPitch = 18;
constexpr double kGap = 24;
constexpr double kEntryGap = 22;
constexpr double kBox = 11;

std::string_view colour(std::size_t index) {
    return kColours[index % kColours.size()];
}

/// The parts of a bar that are drawn.
struct Segments {
    std::vector<Term> terms;
    double total_ns = 0;
};

Segments segments_of(const Bar& bar) {
    Segments segments;
    for (const Term& term : bar.terms) {
        if (term.ns() > 0) {
            segments.terms.push_back(term);
            segments.total_ns += term.ns();
        }
    }
    return segments;
}

std::string label_of(const Term& term, double total_ns) {
    return fmt::format("{} {:.1f} ns, {:.1f} %", term.component.name, term.ns(),
                       100 * term.ns() / total_ns);
}

/// A legend. It puts as many entries into a line as fit.
class Legend {
  public:
    explicit Legend(double y) : y_(y) {}

    void add(std::size_t index, const std::string& label) {
        const double width = kBox + 5 + kLetterWidth * static_cast<double>(label.size());
        if (x_ > kLeft && x_ + width > kLeft + kWidth) {
            x_ = kLeft;
            y_ += kLegendPitch;
        }
        text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" "
                             "fill=\"{}\"/>\n<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                             x_, y_, kBox, kBox, colour(index), x_ + kBox + 5, y_ + kBox - 1,
                             svg_escaped(label));
        x_ += width + kEntryGap;
    }

    const std::string& text() const { return text_; }
    double bottom() const { return y_ + kLegendPitch; }

  private:
    std::string text_;
    double x_ = kLeft;
    double y_;
};

std::string segment(std::size_t index, const Term& term, double x, double y, double width,
                    double total_ns) {
    const std::string percent = fmt::format("{:.1f}", 100 * term.ns() / total_ns);
    std::string text =
        fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" "
                    "fill=\"{}\" stroke=\"white\" stroke-width=\"0.7\"><title>{}"
                    "</title></rect>\n",
                    x, y, width, kBarHeight, colour(index), svg_escaped(label_of(term, total_ns)));
    if (width > kLetterWidth * static_cast<double>(percent.size() + 1)) {
        text += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
                            "fill=\"white\">{}</text>\n",
                            x + width / 2, y + kBarHeight / 2 + 4, percent);
    }
    return text;
}

/// Draws the bar with its title and legend from `y` on, which becomes its lower end.
std::string draw(const Bar& bar, double& y) {
    const Segments segments = segments_of(bar);
    std::string text = fmt::format("<text x=\"{}\" y=\"{:.1f}\" font-weight=\"bold\">{}: {:.1f} ns"
                                   "</text>\n",
                                   kLeft, y + 13, svg_escaped(bar.title), segments.total_ns);
    Legend legend(y + kTitleHeight + kBarHeight + 6);
    double x = kLeft;
    for (std::size_t i = 0; i < segments.terms.size(); ++i) {
        const Term& term = segments.terms[i];
        const double width = kWidth * term.ns() / segments.total_ns;
        text += segment(i, term, x, y + kTitleHeight, width, segments.total_ns);
        legend.add(i, label_of(term, segments.total_ns));
        x += width;
    }
    y = legend.bottom() + kGap;
    return text + legend.text();
}

} // namespace

std::vector<Bar> bars_of(const Comparison& comparison) {
    const TimeModel& model = comparison.model;
    std::vector<Bar> bars = {{model.name, model.terms}};
    Bar categories = {model.name + ", by category", {}};
    for (const Category category :
         {Category::llp, Category::hlp, Category::misc, Category::io, Category::network}) {
        const double ns = model.total_ns(category);
        if (ns > 0) {
            categories.terms.push_back(
                {{.name = std::string(name(category)), .category = category, .ns = ns}});
        }
    }
    if (categories.terms.size() > 1) {
        bars.push_back(std::move(categories));
    }
    return bars;
}

std::string bars_svg(std::span<const Bar> bars, const std::string& title,
                     const std::string& subtitle) {
    double y = kTop;
    std::string text;
    for (const Bar& bar : bars) {
        text += draw(bar, y);
    }
    return svg_head(kWidth + 2 * kLeft, y, title, subtitle) + text + "</svg>\n";
}

} // namespace ucg::perftest::breakdown
