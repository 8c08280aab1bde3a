#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace troupe::config {

/// "5s", "200ms", "2m", "1.5s" or plain seconds ("5"). Throws bad_input naming the text and the units;
/// negative durations and those over a year are refused.
std::chrono::milliseconds duration_from(std::string_view text);

/// The shortest text that duration_from reads back: "5s", "200ms".
std::string to_text(std::chrono::milliseconds duration);

}  // namespace troupe::config
