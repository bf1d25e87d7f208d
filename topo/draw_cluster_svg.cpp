// The SVG drawing of a cluster: a tree of boxes, drawn from the root down.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "topo/cluster_load.hpp"
#include "topo/draw_cluster.hpp"
#include "topo/draw_cluster_text.hpp"

namespace ucg::topo {

namespace {

// Lengths are in pixels.
constexpr double kMargin = 24;
constexpr double kGap = 28;  // Between boxes side by side.
constexpr double kDrop = 64; // Between rows: room for links and their labels.
constexpr double kSwitchHeight = 30;
constexpr double kLetter = 7.2; // Mean width of a letter at font size 12.
constexpr double kCellHeight = 20;
constexpr double kCellWidthMin = 30;
constexpr double kCellLetter = 6; // Mean width of a letter at font size 10.
constexpr double kLine = 18;
constexpr std::size_t kCellNameMax = 14;
constexpr double kLabelGap = 7; // Between a link and its label.
constexpr double kLinkMin = 1.2;
constexpr double kLinkMore = 5; // Width that the largest load adds.

constexpr std::string_view kBusy = "#c0392b";
constexpr std::string_view kPlain = "#6b7f94";

/// One box of the drawing: a switch, or all machines right below one switch.
struct Box {
    std::uint32_t node = 0;  ///< The switch, or the first of the machines.
    std::uint32_t count = 0; ///< Number of machines; 0: the box is a switch.
    std::size_t parent = 0;  ///< Index of the box above; its own index for the root.
    std::size_t row = 0;
    double width = 0; ///< Width of the box itself.
    double height = 0;
    double span = 0;  ///< Width of all that hangs below the box, at least its own width.
    double below = 0; ///< Width of the boxes right below, with the gaps between them.
    double x = 0;     ///< Horizontal middle of the box.
    double y = 0;     ///< Top of the box.
};

class Layout {
  public:
    Layout(const Cluster& cluster, const AapcLoad& load) : cluster_(cluster), load_(load) {
        make_boxes();
        measure();
        place();
    }

    const std::vector<Box>& boxes() const { return boxes_; }
    double width() const { return boxes_.front().span + 2 * kMargin; }
    double height() const { return height_; }
    /// Returns the number of columns of a block of machines.
    std::uint32_t columns(const Box& box) const {
        const double wide = std::ceil(std::sqrt(2.0 * box.count));
        return static_cast<std::uint32_t>(std::clamp(wide, 1.0, 16.0));
    }
    double cell_width(const Box& box) const {
        std::size_t longest = 0;
        for (std::uint32_t node = box.node; node < box.node + box.count; ++node) {
            longest = std::max(longest, cluster_.node(node).name.size());
        }
        return std::max(kCellWidthMin,
                        kCellLetter * static_cast<double>(std::min(longest, kCellNameMax)) + 8);
    }

  private:
    void make_boxes() {
        std::vector<std::size_t> box_of(cluster_.node_count(), 0);
        for (std::uint32_t node = 0; node < cluster_.node_count(); ++node) {
            const std::uint32_t parent = cluster_.node(node).parent;
            const std::size_t above = node == 0 ? 0 : box_of[parent];
            const std::size_t row = node == 0 ? 0 : boxes_[above].row + 1;
            const bool is_machine = cluster_.is_machine(node);
            if (is_machine && node > parent + 1) {
                ++boxes_.back().count; // The machines of a switch follow one another.
                continue;
            }
            box_of[node] = boxes_.size();
            boxes_.push_back(
                {.node = node, .count = is_machine ? 1U : 0U, .parent = above, .row = row});
        }
    }

    void measure() {
        for (Box& box : boxes_) {
            if (box.count == 0) {
                const std::string& name = cluster_.node(box.node).name;
                box.width = std::max(56.0, kLetter * static_cast<double>(name.size()) + 24);
                box.height = kSwitchHeight;
            } else {
                box.width = columns(box) * cell_width(box) + 8;
                box.height =
                    std::ceil(static_cast<double>(box.count) / columns(box)) * kCellHeight + 8;
            }
        }
        for (std::size_t i = boxes_.size(); i-- > 0;) {
            Box& box = boxes_[i];
            box.span = std::max({box.width, box.below, i > 0 ? label_span(box) : 0});
            if (i > 0) {
                double& below = boxes_[box.parent].below;
                below += box.span + (below > 0 ? kGap : 0);
            }
        }
    }

    /// Returns the width that leaves room for the label of the link above, which stands to the
    /// right of the link, up to the next box.
    double label_span(const Box& box) const {
        std::size_t longest = 0;
        for (const std::string& line :
             link_lines(cluster_, load_, box.node, std::max(box.count, 1U))) {
            longest = std::max(longest, line.size());
        }
        return 2 * (kLabelGap + kCellLetter * static_cast<double>(longest)) - kGap;
    }

    void place() {
        std::vector<double> heights;
        for (const Box& box : boxes_) {
            heights.resize(std::max(heights.size(), box.row + 1), 0);
            heights[box.row] = std::max(heights[box.row], box.height);
        }
        std::vector<double> tops;
        for (const double row : heights) {
            tops.push_back(height_);
            height_ += row + kDrop;
        }
        height_ += kMargin - kDrop;
        std::vector<double> next(boxes_.size(), 0); // By box: where its next child begins.
        for (std::size_t i = 0; i < boxes_.size(); ++i) {
            Box& box = boxes_[i];
            double& left = next[box.parent];
            box.x = i == 0 ? kMargin + box.span / 2 : left + box.span / 2;
            left += i == 0 ? 0 : box.span + kGap;
            box.y = tops[box.row];
            next[i] = box.x - box.below / 2;
        }
    }

    const Cluster& cluster_;
    const AapcLoad& load_;
    std::vector<Box> boxes_;
    double height_ = 0;
};

class Drawing {
  public:
    explicit Drawing(const Cluster& cluster)
        : cluster_(cluster), load_(aapc_load(cluster)), layout_(cluster, load_),
          is_bottleneck_(cluster.node_count(), false) {
        for (const std::uint32_t node : load_.bottlenecks) {
            is_bottleneck_[node] = true;
        }
    }

    std::string run() {
        const std::vector<std::string> title = summary(cluster_, load_);
        double width = layout_.width();
        for (const std::string& line : title) {
            width = std::max(width, kLetter * static_cast<double>(line.size()) + 2 * kMargin);
        }
        top_ = kMargin + kLine * static_cast<double>(title.size()) + 12;
        left_ = (width - layout_.width()) / 2;
        add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{:.0f}" height="{:.0f}" )"
            R"(font-family="Helvetica, Arial, sans-serif" font-size="12">)"
            "\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            width, top_ + layout_.height());
        for (std::size_t i = 0; i < title.size(); ++i) {
            add("<text x=\"{:.0f}\" y=\"{:.0f}\"{}>{}</text>\n", kMargin,
                kMargin + kLine * static_cast<double>(i), i == 0 ? " font-weight=\"bold\"" : "",
                title[i]);
        }
        for (const bool busy : {false, true}) { // Bottlenecks last, so that no link covers them.
            for (const Box& box : layout_.boxes()) {
                if (box.row > 0 && is_busy(box) == busy) {
                    link(box);
                }
            }
        }
        for (const Box& box : layout_.boxes()) {
            box.count == 0 ? network_switch(box) : machines(box);
        }
        add("</svg>\n");
        return fmt::to_string(text_);
    }

  private:
    template <typename... Arguments>
    void add(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
        fmt::format_to(std::back_inserter(text_), form, std::forward<Arguments>(arguments)...);
    }

    std::string_view colour(std::uint32_t node) const {
        return is_bottleneck_[node] ? kBusy : kPlain;
    }

    bool is_busy(const Box& box) const {
        const auto first = is_bottleneck_.begin() + box.node;
        return std::find(first, first + std::max(box.count, 1U), true) !=
               first + std::max(box.count, 1U);
    }

    void link(const Box& box) {
        const std::string_view colour = is_busy(box) ? kBusy : kPlain;
        const Box& above = layout_.boxes()[box.parent];
        const double from_y = top_ + above.y + above.height;
        const double to_y = top_ + box.y;
        const double middle = to_y - kDrop / 2 - 6;
        const double part = load_.max == 0 ? 0
                                           : static_cast<double>(load_.by_node[box.node]) /
                                                 static_cast<double>(load_.max);
        add("<path d=\"M{0:.1f} {1:.1f} V{2:.1f} H{3:.1f} V{4:.1f}\" fill=\"none\" "
            "stroke-linejoin=\"round\" stroke=\"{5}\" stroke-width=\"{6:.1f}\"><title>{7} to {8}: "
            "{9}</title></path>\n",
            left_ + above.x, from_y, middle, left_ + box.x, to_y, colour,
            kLinkMin + kLinkMore * part,
            box.count > 1 ? machines_of(cluster_, cluster_.node(box.node).parent)
                          : cluster_.node(box.node).name,
            cluster_.node(above.node).name, link_label(cluster_, load_, box.node));
        const auto lines = link_lines(cluster_, load_, box.node, std::max(box.count, 1U));
        for (std::size_t i = 0; i < lines.size(); ++i) {
            add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"10\" fill=\"{}\">{}</text>\n",
                left_ + box.x + kLabelGap, to_y - 20 + 12 * static_cast<double>(i), colour,
                lines[i]);
        }
    }

    void network_switch(const Box& box) {
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"6\" "
            "fill=\"#e8eef5\" stroke=\"#34495e\" stroke-width=\"1.4\"/>\n",
            left_ + box.x - box.width / 2, top_ + box.y, box.width, box.height);
        add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-weight=\"bold\">{}"
            "</text>\n",
            left_ + box.x, top_ + box.y + 20, cluster_.node(box.node).name);
    }

    void machines(const Box& box) {
        const double x = left_ + box.x - box.width / 2;
        const double width = layout_.cell_width(box);
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" "
            "fill=\"#f7f9fb\" stroke=\"#b8c4d0\"/>\n",
            x, top_ + box.y, box.width, box.height);
        for (std::uint32_t i = 0; i < box.count; ++i) {
            const std::uint32_t node = box.node + i;
            const std::string& name = cluster_.node(node).name;
            const std::uint32_t column = i % layout_.columns(box);
            const std::uint32_t row = i / layout_.columns(box);
            const double cell_x = x + 4 + width * column;
            const double cell_y = top_ + box.y + 4 + kCellHeight * row;
            add("<g><title>{}: load {}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                "height=\"{:.1f}\" rx=\"3\" fill=\"white\" stroke=\"{}\"/>"
                "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"10\" text-anchor=\"middle\">{}{}"
                "</text></g>\n",
                name, link_label(cluster_, load_, node), cell_x + 1, cell_y + 1, width - 2,
                kCellHeight - 2, colour(node), cell_x + width / 2, cell_y + 14,
                name.substr(0, name.size() > kCellNameMax ? kCellNameMax - 2 : kCellNameMax),
                name.size() > kCellNameMax ? ".." : "");
        }
    }

    const Cluster& cluster_;
    AapcLoad load_;
    Layout layout_;
    std::vector<bool> is_bottleneck_;
    double left_ = 0;
    double top_ = 0;
    fmt::memory_buffer text_;
};

} // namespace

std::string to_svg(const Cluster& cluster) {
    return Drawing(cluster).run();
}

} // namespace ucg::topo
