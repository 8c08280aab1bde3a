#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe {

/// Times one device's actions within a step and counts the activations its stages hold.
class step_clock {
 public:
  step_clock(event_ring& ring, int device) : ring_(&ring), device_(static_cast<std::uint32_t>(device)) {}

  void begin_step();
  /// Records one action and adds it to the step's work.
  void add(const action& op, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t generation,
           std::uint64_t step);
  /// Records an event that is no action of the plan (apply, copy_state); it does not count as busy time.
  void record(trace_kind kind, std::int64_t begin_ns, std::uint64_t generation, std::uint64_t step,
              int stage);
  /// The activations of one more microbatch of `stage` are saved.
  void saved(int stage);
  /// Those of one microbatch are released.
  void released(int stage) { --saved_[stage]; }

  std::int64_t first_begin_ns() const { return first_begin_ns_; }
  std::int64_t last_end_ns() const { return last_end_ns_; }
  std::int64_t busy_ns() const { return busy_ns_; }
  std::uint32_t peak_activations() const { return peak_; }
  /// The step's actions so far.
  const std::vector<measured_action>& actions() const { return actions_; }

 private:
  event_ring* ring_;
  std::uint32_t device_;
  std::int64_t first_begin_ns_ = 0, last_end_ns_ = 0, busy_ns_ = 0;
  std::map<int, std::uint32_t> saved_;
  std::uint32_t peak_ = 0;
  std::vector<measured_action> actions_;
};

}  // namespace troupe
