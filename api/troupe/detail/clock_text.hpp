#pragma once
#include <string>

namespace troupe::detail {

/// A time as "2:05" (minutes and seconds), from an hour on as "1:02:05", from a day on as "3 d 1:02:05". For
/// a negative one, or one that is no number, "-". This header is not installed.
std::string clock_text(double seconds);

}  // namespace troupe::detail
