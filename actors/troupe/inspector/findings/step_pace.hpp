#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "troupe/messages/step_history.hpp"

namespace troupe::actors::inspector {

/// What is wrong with the pace of one device.
struct pace_problem {
  std::size_t device = 0;
  bool is_slower_than_before = false;  ///< a straggler; else it has more to compute than the others
  double busy_s = 0;                   ///< computing in a step, lately
  double reference_s = 0;              ///< the same before, or of the other devices on average
  std::int64_t since_ms = 0;           ///< Unix time from which on it has been so, as far as is known
};

/// Compares the devices' times of computing in a step with each other and with their own past. Not
/// thread-safe.
///
/// Compared are lower quartiles over a window of a second, or of `least_steps` where steps take longer: a
/// busy machine and a process that was suspended lengthen some steps, a slow device lengthens all. The past
/// of a device is its best window of this job and generation.
class step_pace {
 public:
  static constexpr std::size_t least_steps = 5, most_kept = 4096;
  static constexpr std::int64_t window_ms = 1000;
  /// A device is a straggler if it takes `straggles_from` times as long as before, compared with how the
  /// others have changed. It has too much to compute if it takes `unbalanced_from` times as long as the
  /// others' mean.
  static constexpr double straggles_from = 1.6, unbalanced_from = 2.5;
  /// Shorter times of computing are not compared: other costs outweigh them.
  static constexpr double least_busy_s = 0.5e-3;

  /// Another generation, or steps of another size: the past does not count any more.
  void reset();
  void add(const messages::recent_step& step);
  /// One for each device at fault. Empty with fewer than two devices, and before the first window is over.
  std::vector<pace_problem> find() const;

 private:
  struct window {
    std::int64_t begin_ms = 0, end_ms = 0;
    std::vector<double> busy_s;  ///< [num_devices]
  };
  std::optional<window> newest() const;
  void keep_best(const window& finished);

  std::deque<messages::recent_step> steps_;  ///< the newest, ascending
  std::size_t num_new_ = 0;  ///< steps in it that are newer than the newest window of the past
  std::size_t num_windows_ = 0;
  std::vector<double> best_s_;  ///< of each device, over the windows of the past
  std::int64_t num_samples_ = 0;
};

}  // namespace troupe::actors::inspector
