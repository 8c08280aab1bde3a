#include "troupe/job/trained_data.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::actors::job {

void trained_data::resume(std::uint64_t step, std::optional<std::string> data) {
  std::lock_guard lock(mutex_);
  resumed_step_ = step;
  resumed_data_ = std::move(data);
}

void trained_data::add(std::uint64_t first, std::uint64_t last, const void* samples,
                       const std::string& data) {
  std::lock_guard lock(mutex_);
  bool resumes_here = first < resumed_step_ && resumed_step_ < last;
  if (resumes_here && resumed_data_ && !resumed_data_->empty() && data != *resumed_data_)
    throw bad_input("--resume: the snapshot of step " + std::to_string(resumed_step_) +
                    " is one of training on other data: expected " + *resumed_data_ + ", got " + data +
                    ". Its order of samples cannot go on in these: use the same data set (of a stream the "
                    "same shards, sorted alike, and shuffle_buffer), or --fresh-start");
  ranges_.erase(ranges_.lower_bound(first), ranges_.end());  // of a call that was cancelled before a step
  if (!ranges_.empty()) {
    auto& before = std::prev(ranges_.end())->second;
    before.end = std::min(before.end, first);  // less if the call was cancelled
    // Calls on the same data are one range: their number has no bound.
    if (before.samples == samples && before.end == first) {
      before.end = last;
      return;
    }
  }
  auto position = ranges_.empty() ? first : 0;
  if (auto known = last_of(samples, ranges_.end()); known != ranges_.end()) {
    auto next = std::next(known);
    position = known->second.position + (next == ranges_.end() ? first : next->first) - known->first;
  }
  ranges_[first] = {last, samples, data, position};
}

std::uint64_t trained_data::position_of(const void* samples, std::uint64_t step) const {
  std::lock_guard lock(mutex_);
  auto of = last_of(samples, ranges_.upper_bound(step));
  return of == ranges_.end() ? step : of->second.position + step - of->first;
}

std::string trained_data::at(std::uint64_t step) const {
  std::lock_guard lock(mutex_);
  auto after = ranges_.lower_bound(step);
  if (after == ranges_.begin()) return {};
  const auto& found = std::prev(after)->second;
  return step <= found.end ? found.data : std::string();
}

/// The last range of the data set before `before`, or the end.
trained_data::range_map::const_iterator trained_data::last_of(const void* samples,
                                                              range_map::const_iterator before) const {
  while (before != ranges_.begin())
    if ((--before)->second.samples == samples) return before;
  return ranges_.end();
}

}  // namespace troupe::actors::job
