#pragma once
#include <caf/actor.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "troupe/actor/message_storage.hpp"
#include "troupe/job/call.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/job/pause.hpp"
#include "troupe/messages/device_status.hpp"
#include "troupe/recovery/inventory.hpp"
#include "troupe/snapshot/snapshot_store.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::messages {

/// Supervisor -> scheduler: this process holds these copies. Sent once per generation and job, before the
/// process's first call_entered.
struct copies_held {
  std::uint64_t generation = 0;
  recovery::process_inventory inventory;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, inventory);
  }
};

/// Supervisor -> scheduler: this process has entered a call. Sent once per generation and call.
struct call_entered {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  job::call_request request;
  std::uint64_t num_completed = 0;  ///< this process knows the results of the first num_completed calls
  /// Optimizer steps done once the step that the last failure interrupted is replayed; 0: none was.
  std::uint64_t interrupted_step = 0;
  std::uint64_t description_hash = 0;           ///< of this process's job description; 0: it has no job yet
  agreement::job_description description = {};  ///< only in the first call of a generation, else empty
  job::pause_state pause = {};                  ///< the newest that this process knows
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, request, num_completed, interrupted_step, description_hash, description, pause);
  }
};

/// Supervisor -> scheduler: every stage of this process has restored its state.
struct process_restored {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  /// Of the restored step, by replica: of those whose last stage this process has, or of all.
  std::map<std::int32_t, program::step_metrics> metrics;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, metrics);
  }
};

/// Supervisor -> scheduler: results of calls; the reply to want_results.
struct known_results {
  std::vector<job::call_result> results;  ///< at most call_log::max_in_piece
  template <class Archive>
  void serialize(Archive& archive) {
    archive(results);
  }
};

/// Supervisor -> scheduler: the program of this rank has received the tensors of call `call`. `problem`: why
/// it could not use them; empty if it could.
struct gathered_received {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::uint32_t call = 0;
  std::string problem;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, call, problem);
  }
};

/// Supervisor -> scheduler of its process: end the training call `call` after the granted steps. Idempotent.
struct cancel_training {
  std::uint32_t call = 0;
};

/// Supervisor -> scheduler of its process: save the state and end the job. Idempotent.
struct stop_job {
  int signal = 0;
};
/// Scheduler -> itself, delayed: stop the job if no process has entered a call.
struct check_stop {};

/// Scheduler -> itself, delayed: stop waiting for the last finite state to be on disk.
struct save_timed_out {};

/// Scheduler -> itself, delayed: check again whether steps wait for the disk.
struct check_disk_wait {};
/// Scheduler -> itself, delayed: try again to grant steps, which the queue of the user's thread held up.
struct retry_credit {};

/// Device -> scheduler: a step (evaluate: a batch) is done.
struct step_done {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint64_t step = 0;  ///< the completed step, from 0
  std::uint32_t device = 0;
  program::step_metrics metrics;    ///< of the last stage; zero elsewhere
  std::int64_t first_begin_ns = 0;  ///< steady clock, shared by the processes of a host
  std::int64_t last_end_ns = 0;
  std::int64_t busy_ns = 0;
  std::int64_t copy_ns = 0;  ///< state copy, if one was due; on a GPU that of the step before
  std::uint32_t peak_activations = 0;
  std::vector<job::measured_action> actions;  ///< in the last step of a call, and in step_sampling's
  /// "stage 2: the gradient of 3.weight", if that is infinite or NaN, see non_finite_policy; else empty. With
  /// policy `stop` the step was not applied and the device halts for the rest of the generation.
  std::string non_finite;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, call, step, device, metrics, first_begin_ns, last_end_ns, busy_ns, copy_ns,
            peak_activations, actions, non_finite);
  }
};

/// Device -> scheduler: all is done that was granted, which ends within a step. `metrics`: of that step, once
/// all its forwards are done on the device; else zero.
struct cut_reached {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint32_t device = 0;
  plan_position position;
  program::step_metrics metrics;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, call, device, position, metrics);
  }
};

/// Supervisor -> scheduler: the program of this rank pauses the job, lets it go on, or takes it a step
/// further. The scheduler carries it out if `based_on` is the newest version of the pause_state, which is
/// then one higher. A request without an answer (pause_changed) is repeated in the next generation.
struct pause_requested {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::uint64_t based_on = 0;  ///< the version of the pause_state that the process knows
  job::pause_request request;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, based_on, request);
  }
};

/// Stage or peer_copy_store -> scheduler: a copy of a part is held in memory.
struct part_held {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;  ///< of the process that holds it
  recovery::held_part part;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, part);
  }
};

/// snapshot_writer -> scheduler: a part is on disk, or could not be written (`problem` not empty).
struct part_written {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  snapshot::manifest_part entry;
  std::string problem;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, step, entry, problem);
  }
};

/// Supervisor -> scheduler: the peer copy store of this rank has failed, and the copies that it kept are
/// lost.
struct replicas_lost {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank);
  }
};

/// Supervisor -> scheduler: the peer copy store of this rank was restarted and holds nothing.
struct replicas_wanted {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank);
  }
};

/// Supervisor -> scheduler: the snapshot writer of this rank was restarted. Parts that it has not reported
/// with part_written are lost.
struct writes_lost {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank);
  }
};

/// Supervisor -> scheduler of its process: the snapshot writer was restarted. Requests without an answer are
/// repeated.
struct snapshot_writer_replaced {
  caf::actor snapshot_writer;
};

/// The position of one device, and for how long it has been there.
struct device_progress {
  std::uint32_t device = 0;  ///< number among the job's devices
  execution_position position;
  double for_s = 0;  ///< seconds that the device has been at this position
  template <class Archive>
  void serialize(Archive& archive) {
    archive(device, position, for_s);
  }
};

/// Device -> scheduler: which parameters a stage has, for a hash.
struct parameters_listed {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint32_t stage = 0;
  std::uint32_t replica = 0;
  std::vector<std::string> names;
  std::vector<std::int64_t> firsts;  ///< [names] the first element that it has
  std::string problem;               ///< why they cannot be hashed; empty: they can
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, call, stage, replica, names, firsts, problem);
  }
};

/// Device -> scheduler: what it was to hash (hash_parameters) is hashed.
struct parameters_hashed {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint64_t num_hashed = 0;  ///< of all parameters
  std::vector<std::byte> state;  ///< of the hash (weights_hasher)
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, call, num_hashed, state);
  }
};

/// Supervisor -> scheduler: the positions of the process's devices and its loader. Sent periodically while
/// one of them makes no progress.
struct process_progress {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::vector<device_progress> devices;
  std::uint8_t loader_is_working = 0;
  double loader_for_s = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, devices, loader_is_working, loader_for_s);
  }
};

/// Supervisor -> scheduler of its process: the job is defined. Sent before any call_entered that needs it.
struct job_known {
  std::shared_ptr<const job::job_definition> job;
  caf::actor snapshot_writer;
};

/// Supervisor -> scheduler of its process: the devices that a restore_command gives to the members. Sent
/// before its process_restored.
struct devices_known {
  std::uint64_t generation = 0;
  std::vector<caf::actor> devices;  ///< [num_devices], proxies where remote
};

/// Inspector -> scheduler of its process, a request: how the job is. Reply: scheduler_report.
struct inspect_scheduler {
  std::uint64_t after = 0;  ///< the newest step that the inspector knows, see step_history
};

/// Inspector -> scheduler of its process, a request: write a snapshot as soon as one can be written. Reply:
/// snapshot_saved, when it is on disk.
struct save_snapshot {};
struct snapshot_saved {
  std::uint64_t step = 0;  ///< runs of the plan that it has
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::copies_held)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::call_entered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::process_restored)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::known_results)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::gathered_received)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::cancel_training)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::stop_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::check_stop)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::save_timed_out)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::check_disk_wait)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::retry_credit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::step_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::cut_reached)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::pause_requested)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::part_held)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::part_written)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::replicas_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::replicas_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::writes_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::snapshot_writer_replaced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::process_progress)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::job_known)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::devices_known)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::inspect_scheduler)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::save_snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::snapshot_saved)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::parameters_listed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::parameters_hashed)
