#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe::actors::messages {
struct step_done;
}  // namespace troupe::actors::messages

namespace troupe::actors::devices {

/// Accounts for the steps of one device: times the actions of the current one, counts the activations its
/// stages hold, and keeps the first value that was not finite.
class step_account {
 public:
  step_account(trace::event_ring& ring, int device)
      : ring_(&ring), device_(static_cast<std::uint32_t>(device)) {}

  void begin_step(std::uint64_t generation, std::uint64_t step);
  /// The next action is `op`, which cannot begin yet; it waits until begin_action.
  void begin_wait(trace::wait_reason reason, const action& op);
  void begin_action(const action& op);
  /// The action that is running waits for other replicas meanwhile, which is no work of it.
  void begin_wait_in_action(const action& op);
  void end_wait_in_action(const action& op);
  /// `saves`: forwards save their activations.
  void end_action(const action& op, bool saves);
  /// Only the first one of a step is kept.
  void add_non_finite(const std::string& what);
  /// Whether an action of this step, or of the previous one, took so long that the transport's thread should
  /// poll meanwhile.
  bool is_busy() const { return is_busy_ || was_busy_; }
  void end_step();
  /// Of the current step.
  std::size_t num_actions() const { return actions_.size(); }
  /// Adds this step to the report. `with_actions`: and each of its actions.
  void describe(messages::step_done& report, bool with_actions) const;

  /// Records one action and adds it to the step's work.
  void add(const action& op, std::int64_t begin_ns, std::int64_t end_ns);
  /// Records an event until now that does not count as work (apply, copy_state).
  void record(trace::trace_kind kind, std::int64_t begin_ns, int stage);
  /// Records a G or A of a deferred update, until now. It is not counted as work of the step, nor of the
  /// action that it lies within.
  void record_deferred(const action& op, std::uint64_t step, std::int64_t begin_ns);
  /// The activations of one more microbatch of `stage` are saved.
  void saved(int stage);
  /// Those of one microbatch are released.
  void released(int stage) { --saved_[stage]; }

 private:
  trace::event_ring* ring_;
  std::uint32_t device_;
  bool is_busy_ = false, was_busy_ = true;
  // the current step
  std::uint64_t generation_ = 0, step_ = 0;
  std::int64_t action_begin_ns_ = 0;
  std::int64_t wait_begin_ns_ = 0;  ///< 0: no wait
  trace::wait_reason waits_for_ = trace::wait_reason::tensor;
  std::int64_t waited_in_action_ns_ = 0;  ///< in the action that is running, also for deferred updates
  std::int64_t first_begin_ns_ = 0, last_end_ns_ = 0, busy_ns_ = 0;
  std::map<int, std::uint32_t> saved_;
  std::uint32_t peak_ = 0;
  std::vector<job::measured_action> actions_;
  std::string non_finite_;
};

}  // namespace troupe::actors::devices
