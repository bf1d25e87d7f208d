// Text of others (files, the environment, command lines) made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace ucg {

/// Is a line break of the text one that is meant?
enum class LineBreaks { keep, escape };

/// `text` with every control character (C0, DEL, C1) and every byte that is not UTF-8 written as
/// \u001b is: nothing in it moves a cursor, changes a title or a colour. The form is JSON's and
/// TOML's own, so that such documents keep their meaning. Tabs stay; line breaks as `breaks` says.
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::keep);

} // namespace ucg
