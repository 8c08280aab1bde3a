#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/tensor/async/stream_clock.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe::actors::messages {
struct step_done;
}  // namespace troupe::actors::messages

namespace troupe::actors::devices {

/// Accounts for the steps of one device: times the actions of the current one, counts the activations its
/// stages hold, and keeps the first value that was not finite.
///
/// What is queued on a GPU has the times at which the GPU does it. They are known later: the actions that the
/// GPU has done are taken into account while others are queued, and all but A at the end of the step.
class step_account {
 public:
  step_account(trace::event_ring& ring, int device)
      : ring_(&ring), device_(static_cast<std::uint32_t>(device)) {}

  /// The most actions that are queued on a GPU and not done. More: an end of the generation has to wait for
  /// them. Fewer: the GPU has nothing to do while the host queues the next.
  static constexpr std::size_t most_queued = 3;

  /// The actions are computed on `place` from now on. Forgets those that are queued.
  void begin_generation(device place);
  void begin_step(std::uint64_t generation, std::uint64_t step);
  /// The next action is `op`, which cannot begin yet; it waits until begin_action.
  void begin_wait(trace::wait_reason reason, const action& op);
  /// Waits until the GPU has done all but the last actions (most_queued). Throws device_lost, like all that
  /// ask the GPU.
  void begin_action(const action& op);
  /// Whether actions are queued on a GPU that it has not done, as far as is known.
  bool has_queued() const { return !queued_.empty(); }
  /// The action that is running waits meanwhile, for other replicas or a copy, which is no work of it.
  void begin_wait_in_action(const action& op, trace::wait_reason reason);
  void end_wait_in_action(const action& op);
  /// `saves`: forwards save their activations.
  void end_action(const action& op, bool saves);
  /// Only the first one of a step is kept.
  void add_non_finite(const std::string& what);
  /// Whether an action of this step, or of the previous one, took so long that the transport's thread should
  /// poll meanwhile.
  bool is_busy() const { return is_busy_ || was_busy_; }
  /// Waits until the GPU has done all actions of the step but A.
  void end_step();
  /// Of the current step.
  std::size_t num_actions() const { return actions_.size(); }
  /// Adds this step to the report. `with_actions`: and each of its actions.
  void describe(messages::step_done& report, bool with_actions) const;

  /// Records one action and adds it to the step's work, but for what it waited.
  void add_work(const action& op, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t waited_ns = 0);
  /// Records an event of the host until now that does not count as work (copy_state).
  void record(trace::trace_kind kind, std::int64_t begin_ns, int stage);
  /// A G or A of a deferred update. It is not counted as work of the step, nor of the action that it lies
  /// within.
  void begin_deferred();
  void end_deferred(const action& op, std::uint64_t step);
  /// The activations of one more microbatch of `stage` are saved.
  void saved(int stage);
  /// Those of one microbatch are released.
  void released(int stage) { --saved_[stage]; }

 private:
  enum class span_use {
    work,
    outside,  ///< A, which is no work of the step
    deferred  ///< see begin_deferred
  };
  struct interval {
    stream_clock::point begin, end;
  };
  struct span {
    action op;
    span_use use = span_use::work;
    std::uint64_t step = 0;
    interval ran;
    std::vector<interval> waits = {};  ///< within it: on a GPU what it had nothing to do for
    bool is_within = false;            ///< another action
  };
  void add(span queued);
  void take_done();
  void take(const span& done);
  std::int64_t length_of(const interval& known) const {
    return clock_.ns_of(known.end) - clock_.ns_of(known.begin);
  }

  trace::event_ring* ring_;
  std::uint32_t device_;
  stream_clock clock_;
  bool is_busy_ = false, was_busy_ = true;
  // the current step
  std::uint64_t generation_ = 0, step_ = 0;
  std::deque<span> queued_;          ///< in the order of their ends
  std::int64_t known_until_ns_ = 0;  ///< the end of the last action that is done
  stream_clock::point action_begin_, deferred_begin_;
  std::int64_t action_begin_ns_ = 0;  ///< on the host
  bool is_in_action_ = false, is_in_deferred_ = false;
  std::int64_t wait_begin_ns_ = 0;  ///< for the next action; 0: no wait
  trace::wait_reason waits_for_ = trace::wait_reason::tensor;
  // A wait within an action, and those of the action that is running.
  stream_clock::point inner_wait_;
  trace::wait_reason inner_waits_for_ = trace::wait_reason::tensor;
  std::vector<interval> waits_;
  std::int64_t waited_in_action_ns_ = 0;  ///< by the host, in the action that is running
  std::int64_t deferred_ns_ = 0;          ///< of deferred updates within the action that ends next
  std::int64_t first_begin_ns_ = 0, last_end_ns_ = 0, busy_ns_ = 0;
  std::map<int, std::uint32_t> saved_;
  std::uint32_t peak_ = 0;
  std::vector<job::measured_action> actions_;
  std::string non_finite_;
};

}  // namespace troupe::actors::devices
