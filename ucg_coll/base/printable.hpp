// Makes text from outside (files, the environment, command lines) fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace ucg {

/// What printable() does with line breaks.
enum class LineBreaks { keep, escape };

/// Returns `text` with every control character (C0, DEL, C1) and every byte that is not UTF-8
/// written in the form \u001b, so that nothing in it moves a cursor or changes a title or a colour.
/// JSON and TOML have the same form, so such documents keep their meaning. Tabs stay; line breaks
/// stay or are written in that form, as `breaks` says.
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::keep);

} // namespace ucg
