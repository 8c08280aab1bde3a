#pragma once
#include <sys/resource.h>

#include <chrono>
#include <vector>

#include "bench/measure/spread.hpp"

namespace troupe::bench {

/// A moment of training, in seconds.
struct step_moment {
  double wall_s = 0;       ///< on the steady clock
  double processor_s = 0;  ///< that this process has used so far, all threads together

  static step_moment now() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
            seconds(used.ru_utime) + seconds(used.ru_stime)};
  }
};

/// Steps that were timed in several turns.
class timed_steps {
 public:
  /// The moments of one turn: that of each step's begin, and the last one's end.
  void add(const std::vector<step_moment>& moments) {
    for (std::size_t i = 1; i < moments.size(); ++i)
      wall_s_.push_back(moments[i].wall_s - moments[i - 1].wall_s);
    processor_s_ += moments.back().processor_s - moments.front().processor_s;
  }
  double median_s() const { return median_of(wall_s_); }
  double mean_processor_s() const { return processor_s_ / static_cast<double>(wall_s_.size()); }

 private:
  std::vector<double> wall_s_;
  double processor_s_ = 0;
};

}  // namespace troupe::bench
