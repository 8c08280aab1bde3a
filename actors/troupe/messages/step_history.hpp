#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace troupe::actors::messages {

/// A finished step, for those who watch the job.
struct recent_step {
  std::uint64_t step = 0;  ///< steps done with it; runs of the plan
  std::int64_t at_ms = 0;  ///< Unix time
  double loss = 0;
  std::int64_t num_samples = 0;  ///< of the data set; where the job does not know, what the loss counts
  double step_s = 0;             ///< seconds from the end of the step before to its end
  double span_s = 0;             ///< from the first action's begin to the last one's end, over all devices
  double busy_s = 0;             ///< computing, averaged over devices
  double copy_s = 0;             ///< seconds of copying the state
  /// Computing, [num_job_devices]; empty where it is not known.
  std::vector<double> device_busy_s = {};
};

/// The newest steps that a scheduler has seen finish, numbered from 1.
class step_history {
 public:
  static constexpr std::size_t max_kept = 1024;

  void add(const recent_step& step) {
    steps_.push_back(step);
    ++newest_;
    if (steps_.size() > max_kept) steps_.pop_front();
  }

  struct piece {
    std::uint64_t newest = 0;  ///< number of the newest step; 0: there was none
    std::uint64_t missed = 0;  ///< steps after the one asked for that are not kept any more
    std::vector<recent_step> steps;
  };
  /// The steps after number `number`.
  piece after(std::uint64_t number) const {
    auto wanted = number < newest_ ? newest_ - number : 0;
    auto kept = wanted < steps_.size() ? wanted : steps_.size();
    return {newest_, wanted - kept, {steps_.end() - static_cast<std::ptrdiff_t>(kept), steps_.end()}};
  }

 private:
  std::deque<recent_step> steps_;
  std::uint64_t newest_ = 0;
};

}  // namespace troupe::actors::messages
