#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>

namespace troupe::detail {

/// Steps per second over about the last two seconds.
class step_rate {
 public:
  using clock = std::chrono::steady_clock;
  void add(clock::time_point now, std::uint64_t steps_done) {
    // A recovery sets the count back: what was before says nothing of the rate now.
    if (!seen_.empty() && steps_done <= seen_.back().second) seen_.clear();
    seen_.emplace_back(now, steps_done);
    while (seen_.size() > 2 && now - seen_.front().first > std::chrono::seconds(2)) seen_.pop_front();
  }
  double steps_per_s() const {
    if (seen_.size() < 2) return 0;
    std::chrono::duration<double> time = seen_.back().first - seen_.front().first;
    return time.count() > 0 ? static_cast<double>(seen_.back().second - seen_.front().second) / time.count()
                            : 0;
  }

 private:
  std::deque<std::pair<clock::time_point, std::uint64_t>> seen_;
};

}  // namespace troupe::detail
