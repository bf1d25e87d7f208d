#include "perf/perftest/breakdown/svg.hpp"

#include <fmt/format.h>

namespace ucg::perftest {

std::string svg_escaped(std::string_view text) {
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

std::string svg_head(double width, double height, std::string_view title,
                     std::string_view subtitle) {
    return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                       "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
                       "<title>{2}</title>\n"
                       "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
                       "<text x=\"20\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{2}</text>\n"
                       "<text x=\"20\" y=\"47\" fill=\"#444444\">{3}</text>\n",
                       width, height, svg_escaped(title), svg_escaped(subtitle));
}

} // namespace ucg::perftest
