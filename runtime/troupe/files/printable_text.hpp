#pragma once
#include <string>
#include <string_view>

namespace troupe::files {

/// `text` as it may be shown on a terminal or in a log. Every control character (C0, DEL, and C1 in UTF-8) is
/// written as `\xNN`, so that a name from a file cannot move the cursor or fake a line.
std::string printable(std::string_view text);

}  // namespace troupe::files
