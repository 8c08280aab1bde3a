#include "troupe/scheduler/roll_call.hpp"

#include <algorithm>

namespace troupe {

bool roll_call::is_complete(int world_size, std::size_t index) const {
  return entered_.size() == static_cast<std::size_t>(world_size) &&
         std::ranges::all_of(entered_, [&](const auto& one) { return one.second.index == index; });
}

std::optional<std::string> roll_call::disagreement() const {
  if (std::ranges::all_of(entered_, [this](const auto& one) { return one.second == request(); })) return {};
  std::string what =
      "the processes do different things, every process must make the same calls in the same order:";
  for (const auto& [rank, entered] : entered_)
    what += " rank " + std::to_string(rank) + ": " + to_string(entered) + ";";
  return what;
}

}  // namespace troupe
