#include "troupe/config/duration_text.hpp"

#include <charconv>
#include <cmath>

#include "troupe/error/errors.hpp"

namespace troupe::config {
namespace {

constexpr double longest_ms = 366.0 * 24 * 3600 * 1000;

/// Milliseconds in one `unit`; 0 if there is no such unit.
double unit_ms(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1000;
  if (unit == "ms") return 1;
  if (unit == "m" || unit == "min") return 60'000;
  if (unit == "h") return 3'600'000;
  return 0;
}

}  // namespace

std::chrono::milliseconds duration_from(std::string_view text) {
  double number = 0;
  auto* end = text.data() + text.size();
  auto [stop, status] = std::from_chars(text.data(), end, number);
  auto scale = status == std::errc() ? unit_ms({stop, static_cast<std::size_t>(end - stop)}) : 0;
  auto total = number * scale;
  if (scale != 0 && total > longest_ms)
    throw bad_input("expected a duration of 366 days (8784h) at most, got '" + std::string(text) + "'");
  if (scale == 0 || !(total >= 0))
    throw bad_input("expected a duration such as 5s, 200ms, 2m or a number of seconds, got '" +
                    std::string(text) + "'");
  return std::chrono::milliseconds(std::llround(total));
}

std::string to_text(std::chrono::milliseconds duration) {
  auto count = duration.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + "s" : std::to_string(count) + "ms";
}

}  // namespace troupe::config
