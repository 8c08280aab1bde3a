#pragma once
#include <caf/event_based_actor.hpp>
#include <cstdint>
#include <map>
#include <vector>

#include "troupe/messages/supervisor.hpp"
#include "troupe/supervisor/generation_runner.hpp"
#include "troupe/supervisor/state_restore.hpp"

namespace troupe::actors::supervisor {

/// Restarts loader, peer copy store and snapshot writer within a generation, so that no other actor is
/// disturbed: gives the new handles to those that use them, and sees to what was lost.
///
///   child            lost with it               restored by
///   loader           batches that were          devices, which request them again (loader_replaced)
///                    requested
///   peer copy store  copies of the peer's       the peer, which sends what it still holds (replicas_wanted);
///                    stages                     the scheduler no longer counts them (replicas_lost)
///   snapshot writer  parts to be written        the scheduler, which has them written again or gives their
///                                               snapshot up (writes_lost)
///                    unanswered requests        state_restore and scheduler, which repeat them
///   inspector        nothing: the newest view   its polls
///                    stays published
class io_subtree {
 public:
  /// All outlive this object.
  io_subtree(caf::event_based_actor* self, const supervisor_options& options,
             const generation_runner& generations, process_connections& connections, job_children& children,
             state_restore& restore);

  /// Restarts the children of `command` after its delay. Those that are restarted along with the one that
  /// failed are stopped at once.
  void restart_later(const restart_command& command);
  void on_due(const messages::restart_due& due);
  /// Restarts that belong to the previous job are no longer due.
  void forget_job();

 private:
  void introduce(const child_id& one);
  void introduce_loader();
  void introduce_store();
  void introduce_writer();
  void introduce_to_stages();

  // constant
  caf::event_based_actor* self_;
  const supervisor_options& options_;
  const process_generation& generation_;
  process_connections& connections_;
  job_children& children_;
  state_restore& restore_;

  std::map<std::uint64_t, std::vector<child_id>> due_;  ///< by the number of restart_due
  std::uint64_t num_due_ = 0;
};

}  // namespace troupe::actors::supervisor
