#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "troupe/inspector/views/finding.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/schedule/find_stall.hpp"

namespace troupe::actors::inspector {

/// Measures, from one report to the next, for how long devices and loaders have been where they are, and
/// finds those that do not go on. Not thread-safe.
class device_waits {
 public:
  /// Takes the positions of a view. Calls with views in the order of their time.
  void observe(const job_view& view);
  /// Who waits for whom, from each device whose chain of waits ends at a cause. Empty while no call runs or
  /// the job is paused.
  std::vector<schedule::stall> chains(const job_view& view, std::int64_t now_ms) const;
  /// Devices and loaders that have not gone on for much longer than the job's slowest recent step took.
  std::vector<finding> find(const job_view& view, std::int64_t now_ms) const;

 private:
  struct place {
    messages::execution_position position;
    std::int64_t since_ms = 0;
  };
  struct process {
    std::uint32_t incarnation = 0;
    std::int64_t reported_ms = 0;
    std::uint64_t loader_changes = 0;
    std::int64_t loader_since_ms = 0;
    std::map<std::uint32_t, place> devices;
  };
  schedule::job_positions positions(const job_view& view, std::int64_t now_ms) const;
  double longest_s(std::int64_t now_ms) const;
  std::map<int, process> processes_;
  std::uint64_t generation_ = 0;
  std::uint64_t first_step_ = 0;  ///< done when the generation was first seen
  bool has_stepped_ = false;      ///< a step has been done in this generation
};

/// For how long a device may be at one place before that is a finding, in seconds: several of the job's
/// slowest recent steps. It is never less than a second, for which a busy machine may give a thread no core.
double stuck_limit_s(double slowest_step_s, bool has_stepped);

}  // namespace troupe::actors::inspector
