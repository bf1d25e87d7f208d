// What the pictures of a breakdown share: colours that colour-blind people can distinguish, and
// text in SVG.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ucg::perftest {

/// The colours of Okabe and Ito, "Color Universal Design" (2008), and two more.
inline constexpr std::array<std::string_view, 9> kColours = {"#0072b2", "#e69f00", "#009e73",
                                                             "#cc79a7", "#56b4e9", "#d55e00",
                                                             "#b8a900", "#6b6b6b", "#8c5a2b"};

/// The assumed width in pixels of a letter of a sans-serif font of 12 pixels, rather too large than
/// too small.
inline constexpr double kLetterWidth = 7;

/// Returns the text escaped for use between tags and in attributes.
std::string svg_escaped(std::string_view text);

/// Returns the head of the document, with a white background and the two lines of its caption,
/// which begin at (20, 28).
std::string svg_head(double width, double height, std::string_view title,
                     std::string_view subtitle);

} // namespace ucg::perftest
