// What the pictures of a breakdown share: colours that differ for those who see few of them, and
// text in SVG.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ucg::perftest {

/// Of Okabe and Ito, "Color Universal Design" (2008), and two more.
inline constexpr std::array<std::string_view, 9> kColours = {"#0072b2", "#e69f00", "#009e73",
                                                             "#cc79a7", "#56b4e9", "#d55e00",
                                                             "#b8a900", "#6b6b6b", "#8c5a2b"};

/// Pixels of a letter of a sans-serif font of 12 pixels, rather too many than too few.
inline constexpr double kLetterWidth = 7;

/// Safe between tags and in attributes.
std::string svg_escaped(std::string_view text);

/// The document's head, with a white ground, and the two lines of its caption from (20, 28) on.
std::string svg_head(double width, double height, std::string_view title,
                     std::string_view subtitle);

} // namespace ucg::perftest
