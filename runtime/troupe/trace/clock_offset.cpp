#include "troupe/trace/clock_offset.hpp"

#include <algorithm>

namespace troupe::trace {

std::optional<clock_offset> estimate_offset(std::span<const clock_sample> samples) {
  const clock_sample* best = nullptr;
  auto round_trip = [](const clock_sample& sample) { return sample.received_ns - sample.sent_ns; };
  for (const auto& one : samples)
    if (round_trip(one) >= 0 && (!best || round_trip(one) < round_trip(*best))) best = &one;
  if (!best) return {};
  auto half = round_trip(*best) / 2;
  return clock_offset{best->remote_ns - (best->sent_ns + half), round_trip(*best) - half};
}

std::vector<merged_event> merge_events(const std::vector<process_events>& processes,
                                       const std::map<int, std::int64_t>& offset_of_rank) {
  std::vector<merged_event> merged;
  for (std::size_t process = 0; process < processes.size(); ++process) {
    auto found = offset_of_rank.find(processes[process].rank);
    auto offset = found == offset_of_rank.end() ? 0 : found->second;
    const auto& threads = processes[process].threads;
    for (std::size_t thread = 0; thread < threads.size(); ++thread)
      for (auto event : threads[thread].events) {
        event.begin_ns += offset;
        event.end_ns += offset;
        merged.push_back({process, thread, event});
      }
  }
  std::ranges::stable_sort(merged, {}, [](const merged_event& one) { return one.event.end_ns; });
  return merged;
}

}  // namespace troupe::trace
