#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::scheduler {

/// The median of any number of values in bounded memory. It is exact for up to `max_kept` values. Beyond, it
/// is the median of a systematic sample: of every second, fourth, eighth ... value, between max_kept / 2 and
/// max_kept of them. For values in random order the rank of the result is off by at most 1.6 % of their
/// number (one standard deviation, 1 / (2 sqrt(1024))).
class sampled_median {
 public:
  static constexpr std::size_t max_kept = 2048;
  void add(double value);
  /// 0 if there are none.
  double median() const;
  std::size_t num_kept() const { return kept_.size(); }

 private:
  std::vector<double> kept_;  ///< every `stride_`th value, from the first on
  std::uint64_t stride_ = 1;
  std::uint64_t num_seen_ = 0;
};

/// A step that every device has finished.
struct finished_step {
  std::uint64_t step = 0;
  program::step_metrics metrics;                      ///< the sum of the devices'
  std::vector<program::step_metrics> device_metrics;  ///< [num_devices]
  double span_s = 0, busy_s = 0, copy_s = 0;
  std::vector<double> device_busy_s;  ///< [num_devices] seconds of computing
};

/// Collects the devices' step_done reports of one activity (a range of steps or batches). A step is complete
/// when every device has reported it; steps complete in order.
class step_tracker {
 public:
  step_tracker() = default;
  step_tracker(std::uint32_t num_devices, std::uint64_t first_step)
      : done_(num_devices, first_step), complete_(first_step) {}
  /// Returns the steps that this report completes, in order.
  std::vector<finished_step> add(const messages::step_done& report);
  /// Steps below this are complete.
  std::uint64_t complete() const { return complete_; }
  /// Medians over the complete steps, see sampled_median.
  job::step_timing timing() const;

 private:
  struct gathered {
    finished_step sums;
    std::map<std::uint32_t, program::step_metrics> metrics;  ///< by device, whose order is that of replicas
    std::map<std::uint32_t, std::int64_t> busy_of_device_ns;
    std::int64_t begin_ns = 0, end_ns = 0, busy_ns = 0, copy_ns = 0;
  };
  std::vector<std::uint64_t> done_;
  std::uint64_t complete_ = 0;
  std::map<std::uint64_t, gathered> open_;
  sampled_median spans_, busies_, bubbles_;
  std::uint32_t peak_ = 0;
};

}  // namespace troupe::actors::scheduler
