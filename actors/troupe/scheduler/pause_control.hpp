#pragma once
#include <caf/event_based_actor.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "troupe/messages/scheduler.hpp"
#include "troupe/scheduler/state/job_pause.hpp"
#include "troupe/scheduler/state/job_state.hpp"

namespace troupe::actors::scheduler {

/// Carries out the processes' requests to pause the job, once all processes have told what they know of the
/// pause, and tells all processes what has changed.
class pause_control {
 public:
  /// All outlive this object.
  pause_control(caf::event_based_actor* self, const scheduler_options& options)
      : self_(self), options_(options) {}

  const job_pause& pause() const { return pause_; }
  /// A process enters a call, and knows this state.
  void learn(const job::pause_state& known) { pause_.learn(known); }
  /// All processes have told.
  void open();
  void begin(job_pause::activity begun) { pause_.begin(std::move(begun)); }
  /// Between two calls. Tells it if the job is paused.
  void end();
  void tell_if_paused() const;
  void add(const messages::pause_requested& wanted) { requests_.push_back(wanted); }
  /// `granted`: up to where the devices of the running activity go. False: nothing has changed. A step waits
  /// until steps are run. A request of a process that did not know the newest state is answered with that
  /// state, and repeated.
  bool carry_out(const cut& granted);
  /// See job_pause::add.
  bool add_reached(std::uint32_t device, plan_position position);

 private:
  void tell() const;
  void tell(int rank) const;

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;

  job_pause pause_;
  bool is_open_ = false;
  std::vector<messages::pause_requested>
      requests_;  ///< requests that are not carried out yet, in their order
};

}  // namespace troupe::actors::scheduler
