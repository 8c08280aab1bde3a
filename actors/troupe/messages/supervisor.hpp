#pragma once
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <memory>
#include <string>
#include <vector>

#include "troupe/actor/message_storage.hpp"
#include "troupe/cluster/membership.hpp"
#include "troupe/job/call.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/job/pause.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/messages/job_history.hpp"
#include "troupe/recovery/restore_plan.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::messages {

// Event router -> supervisor, from the membership's thread; see membership_events.
struct fence_raised {
  std::uint64_t generation = 0;
  std::vector<cluster::member_loss> losses;
};
struct view_formed {
  cluster::membership_view view;
};
struct recovery_done {
  cluster::recovery_report report;
};
struct job_ended {
  std::string cause;
  failure_kind kind = failure_kind::error;
};
struct stop_requested {
  int signal = 0;
};
struct job_was_stopped {
  int signal = 0;
  std::string summary;
};

// Event router -> supervisor, from the transport's thread; see transport_events.
struct peer_broken {
  int rank = 0;
  std::uint64_t generation = 0;  ///< in which it was noticed
  std::string cause;
};
/// From any thread: a group over which replicas add up gradients cannot be made, or has failed. As a rule
/// since a process was lost, which the agent notices too: it counts if its generation still runs some time
/// later.
struct replica_group_failed {
  std::uint64_t generation = 0;
  std::string cause;
  failure_kind kind = failure_kind::error;
  bool is_due = false;  ///< sent again, after that time
};
/// A tensor from `rank` was lost, see transport_events::on_tensor_lost.
struct tensor_lost {
  int rank = 0;
  std::uint64_t generation = 0;
  std::string cause;
};
/// The state of one of this process's parts, sent by a process that held a copy.
struct state_arrived {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  layout::part_id part;
  tensor packed;
};

// User's thread -> supervisor.
struct define_job {
  std::shared_ptr<const job::job_definition> job;
};
struct enter_call {
  job::call_request request;
};

/// The program has received the tensors of a call, which arrived in this generation; see gathered_received.
struct program_received {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::string problem;
};
/// The program repeats a call that is over; request the tensors of that call from the caches.
struct fetch_cached {
  job::call_request request;
};
/// End the training call `call` after the granted steps.
struct cancel_call {
  std::uint32_t call = 0;
};

/// Pause the job, let it go on, or take it a step further.
struct request_pause {
  job::pause_request request;
};

/// Supervisor -> itself, delayed: request a new generation, because an actor failed.
struct generation_requested {
  std::uint64_t current = 0;
  std::string cause;
};

/// Supervisor -> itself, delayed: restart children of the io subtree, one of which failed.
struct restart_due {
  std::uint64_t number = 0;
};

/// Scheduler -> supervisor of its process: request a new generation, because a message or tensor was lost.
/// Counts as a restart.
struct restart_requested {
  std::uint64_t generation = 0;
  std::string cause;
};

/// Supervisor -> itself, periodically: sample the progress of devices and loader.
struct check_progress {};
/// Supervisor -> itself, every second while devices compute although generation `generation` is to begin.
/// `number`: of this check, from 1.
struct check_stopping {
  std::uint64_t generation = 0;
  std::uint32_t number = 0;
};

/// Scheduler -> supervisor: host these devices, restore their stages by this plan, then send
/// process_restored.
struct restore_command {
  std::uint64_t generation = 0;
  recovery::restore_plan plan;
  double since_disk_s = 0;  ///< seconds, the largest value of all processes; see process_inventory
  mesh::hosting hosts;      ///< which process has which device in this generation
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, plan, since_disk_s, hosts);
  }
};

/// Inspector -> supervisor, a request: how its process is. Reply: process_report, in any state of the
/// process.
struct inspect_process {
  std::uint64_t generation = 0;    ///< the newest generation that the inspector knows
  std::uint8_t wants_history = 0;  ///< the reply is to have all of its history
  job_history history = {};        ///< what the process does not know yet; empty: nothing
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, wants_history, history);
  }
};

/// Scheduler -> supervisor, a request: the results of calls from `first` on, which a new scheduler lacks.
/// Reply: known_results.
struct want_results {
  std::uint64_t first = 0;  ///< number of the first call whose result is wanted
  template <class Archive>
  void serialize(Archive& archive) {
    archive(first);
  }
};

/// Scheduler -> supervisor: the snapshot of this step has failed; delete its parts.
struct snapshot_failed {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, step);
  }
};

/// Scheduler -> supervisor: write the stages' copies of this step to disk.
struct write_copies {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, step);
  }
};

/// Scheduler -> supervisor: send the stages' copies to the peer again, whose peer copy store was restarted.
struct replicate_copies {
  std::uint64_t generation = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation);
  }
};

/// Scheduler -> supervisor: the job was paused, goes on, or stands where it was to stop.
struct pause_changed {
  std::uint64_t generation = 0;
  job::pause_state state;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, state);
  }
};

/// Scheduler -> supervisor of a member that no device tells so: `step` is committed, so older copies of any
/// stage may be dropped.
struct copies_committed {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, step);
  }
};

/// Scheduler -> supervisor: the call is complete in all processes. A request when the call ends: the empty
/// reply confirms it. No request to processes that missed the result of an earlier call.
struct call_finished {
  std::uint64_t generation = 0;
  job::call_result result;
  bool was_missed = false;  ///< the call was over before the process entered it
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, result, was_missed);
  }
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::fence_raised)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::view_formed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::recovery_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::job::job_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::job_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::stop_requested)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::job_was_stopped)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::peer_broken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::replica_group_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::tensor_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::state_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::define_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::enter_call)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::program_received)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::fetch_cached)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::cancel_call)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::request_pause)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::pause_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::generation_requested)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::restart_due)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::restart_requested)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::check_progress)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::check_stopping)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::restore_command)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::snapshot_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::write_copies)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::replicate_copies)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::copies_committed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::inspect_process)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::want_results)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::call_finished)
