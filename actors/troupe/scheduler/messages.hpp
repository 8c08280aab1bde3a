#pragma once
#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/device/device_status.hpp"
#include "troupe/job/call.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/recovery/inventory.hpp"
#include "troupe/snapshot/snapshot_store.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Supervisor -> scheduler: this node is in this call and holds these parts. Once per generation and call.
struct call_entered {
  std::uint64_t generation = 0;
  node_inventory inventory;
  call_request request;
  std::uint64_t num_completed = 0;  ///< results this node knows, those of the first calls
  /// Steps done once the step that the last failure interrupted here is made up for; 0: none was.
  std::uint64_t interrupted_step = 0;
  std::uint64_t description_hash = 0;  ///< of this node's job; 0: it has none yet
  job_description description = {};    ///< of the same; only in the first call of a generation that knows it
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, inventory, request, num_completed, interrupted_step, description_hash, description);
  }
};

/// Supervisor -> scheduler: every stage of this node has its state.
struct node_restored {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  step_metrics metrics;  ///< of the step that is restored, if the last stage is here; else zero
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, metrics);
  }
};

/// Supervisor -> scheduler: what calls came to, as asked for by want_results.
struct known_results {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::vector<call_result> results;  ///< at most call_log::most_in_piece
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, results);
  }
};

/// Supervisor -> scheduler: this node knows the result of call `index`.
struct result_seen {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::uint32_t index = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, index);
  }
};

/// Supervisor -> scheduler: the program of this rank has the tensors of call `call`; `problem` says what kept
/// it from doing with them what the call is about.
struct gathered_taken {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::uint32_t call = 0;
  std::string problem;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, call, problem);
  }
};

/// Supervisor -> scheduler of its node: the program wants no further steps of the training call `call`. May
/// come again.
struct cancel_training {
  std::uint32_t call = 0;
};

/// Supervisor -> scheduler of its node: save what is done and end the job. May come again.
struct stop_job {
  int signal = 0;
};
/// Scheduler -> itself, later: whether any process is in a call.
struct stop_unless_called {};

/// Scheduler -> itself, later: no longer wait for nodes to confirm a result.
struct enough_waited {};

/// Scheduler -> itself, later: no longer wait for the last finite state to reach the disk.
struct save_overdue {};

/// Scheduler -> itself, later: look again whether steps wait for the disk.
struct disk_waited {};
/// Scheduler -> itself, later: the user's thread may have taken in what is done by now.
struct grant_again {};

/// Device -> scheduler: a step (evaluate: a batch) is done.
struct step_done {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint64_t step = 0;  ///< the step that is done, from 0
  std::uint32_t device = 0;
  step_metrics metrics;             ///< of the last stage; zero elsewhere
  std::int64_t first_begin_ns = 0;  ///< steady clock, shared by the processes of a host
  std::int64_t last_end_ns = 0;
  std::int64_t busy_ns = 0;
  std::int64_t copy_ns = 0;  ///< state copy, if one was due
  std::uint32_t peak_activations = 0;
  std::vector<measured_action> actions;  ///< in the last step of a call only
  /// "stage 2: the gradient of 3.weight", if that is infinite or NaN: see non_finite_policy. With `stop` the
  /// step was not applied, and the device does nothing more in this generation.
  std::string non_finite;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, call, step, device, metrics, first_begin_ns, last_end_ns, busy_ns, copy_ns,
            peak_activations, actions, non_finite);
  }
};

/// Stage or replica_keeper -> scheduler: a part is held.
struct part_held {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;  ///< who holds it
  held_part part;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, part);
  }
};

/// disk_writer -> scheduler: a part is on disk, or could not be written (`problem` not empty).
struct part_written {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t stage = 0;
  std::string file;
  std::uint64_t size_bytes = 0;
  std::string checksum;
  std::string host;
  std::string problem;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, step, stage, file, size_bytes, checksum, host, problem);
  }
};

/// Where one device has been for how long.
struct device_progress {
  std::uint32_t device = 0;  ///< number in the job
  device_place place;
  double for_s = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(device, place, for_s);
  }
};

/// Supervisor -> scheduler: where the node's devices and its loader are, now and then while one of them does
/// not get on.
struct node_progress {
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

/// Supervisor -> scheduler of its node: the job is known. Comes before any call_entered that needs it.
struct job_known {
  std::shared_ptr<const job_definition> job;
  std::vector<caf::actor> devices;  ///< [num_devices], proxies where remote
  caf::actor disk_writer;
};

/// Transport -> scheduler: the packed parameters of a stage, for the hash. In this process only.
struct parameters_arrived {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint32_t stage = 0;
  tensor packed;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::call_entered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::node_restored)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::known_results)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::result_seen)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::enough_waited)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gathered_taken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cancel_training)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::stop_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::stop_unless_called)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::save_overdue)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::disk_waited)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::grant_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::step_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::part_held)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::part_written)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::node_progress)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::job_known)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::parameters_arrived)
