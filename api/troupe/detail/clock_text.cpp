#include "troupe/detail/clock_text.hpp"

#include <cstdint>
#include <cstdio>

namespace troupe::detail {

std::string clock_text(double seconds) {
  constexpr double longest = 1e12;
  if (!(seconds >= 0 && seconds < longest)) return "-";
  auto whole = static_cast<std::int64_t>(seconds);
  auto days = static_cast<long long>(whole / 86400);
  auto hours = static_cast<int>(whole / 3600 % 24);
  auto minutes = static_cast<int>(whole / 60 % 60);
  auto rest = static_cast<int>(whole % 60);
  char text[64];
  if (days > 0)
    std::snprintf(text, sizeof text, "%lld d %d:%02d:%02d", days, hours, minutes, rest);
  else if (hours > 0)
    std::snprintf(text, sizeof text, "%d:%02d:%02d", hours, minutes, rest);
  else
    std::snprintf(text, sizeof text, "%d:%02d", minutes, rest);
  return text;
}

}  // namespace troupe::detail
