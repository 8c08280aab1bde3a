#include "troupe/inspector/views/log_tail.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe::actors::inspector {

std::vector<log_tail::line> log_tail::after(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  std::vector<line> found;
  for (const auto& one : lines_)
    if (one.number > number) found.push_back(one);
  return found;
}

void log_tail::sink_it_(const spdlog::details::log_msg& message) {
  auto since = message.time.time_since_epoch();
  auto level = spdlog::level::to_string_view(message.level);
  line made{++newest_, std::chrono::duration_cast<std::chrono::milliseconds>(since).count(),
            std::string(level.data(), level.size()),
            std::string(message.payload.data(), std::min(message.payload.size(), max_line_bytes))};
  lines_.push_back(std::move(made));
  if (lines_.size() > max_lines) lines_.pop_front();
}

}  // namespace troupe::actors::inspector
