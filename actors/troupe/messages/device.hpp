#pragma once
#include <caf/actor.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "troupe/actor/message_storage.hpp"
#include "troupe/job/call.hpp"
#include "troupe/mesh/device_places.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/messages/device_status.hpp"
#include "troupe/program/batch_source.hpp"
#include "troupe/program/non_finite_policy.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::execution {
class replica_groups;
}  // namespace troupe::execution

namespace troupe::actors::messages {

/// A copy of the stages' state that devices make after an optimizer step.
struct due_copy {
  std::uint64_t step = 0;  ///< steps applied when the copy is taken
  std::uint8_t to_disk = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, to_disk);
  }
};

/// Scheduler -> device: run the actions of a call that come before `end()`. A later credit of the same call
/// extends it. Together the devices' ends are a closed cut of the plan.
struct step_credit {
  std::uint64_t generation = 0;
  job::call_request call;
  std::uint64_t first_step = 0;  ///< where the call starts in this generation
  std::uint64_t end_step = 0;    ///< one past the last step (evaluate: batch) that is granted to its end
  std::vector<due_copy> copies;
  std::uint64_t committed_step = 0;  ///< older state copies may be dropped
  std::uint32_t end_action = 0;      ///< how many actions of step `end_step` are granted too
  plan_position end() const { return {end_step, end_action}; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, call, first_step, end_step, copies, committed_step, end_action);
  }
};

/// Scheduler -> device: go on with the hash of all parameters, with these of a stage. Reply:
/// parameters_hashed, a message to the scheduler.
struct hash_parameters {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint32_t stage = 0;
  std::uint64_t num_hashed = 0;    ///< parameters before these
  std::vector<std::string> names;  ///< in the order of the hash
  std::vector<std::byte> state;    ///< of the hash so far (weights_hasher)
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, call, stage, num_hashed, names, state);
  }
};

/// The part of the job's definition that devices use, and who hosts its devices; constant in a generation.
struct device_job {
  plan training;
  mesh::placement placed;
  mesh::hosting hosts;          ///< which process has which device in this generation
  mesh::process_places places;  ///< where the devices of this process compute
  /// Over which replicas in several processes add up gradients; null: by messages.
  std::shared_ptr<execution::replica_groups> groups;
  int num_threads = 1;
  non_finite_policy on_non_finite = non_finite_policy::stop;
  bool shares_metrics = false;  ///< see job_definition::shares_metrics
  int prefetch_steps = 2;       ///< batches requested from the loader ahead of the current step
  int num_stages() const { return training.num_stages; }
};

/// A stage, of the device's replica, attached to a device: only the device uses its program from
/// begin_generation until quiesce.
struct attached_stage {
  int stage = 0;
  std::shared_ptr<program::stage_program> program;
  caf::actor owner;  ///< the stage actor, which gets state_copied
};

/// Supervisor -> device: the generation begins with these stages. In this process only.
struct begin_generation {
  std::uint64_t generation = 0;
  std::shared_ptr<const device_job> job;
  std::vector<attached_stage> stages;
  caf::actor scheduler;
  caf::actor loader;  ///< invalid if the device has neither first nor last stage
  int world_size = 1;
};

/// Supervisor -> device, a request: stop the generation. The device replies `stopped` between two actions.
struct quiesce {
  std::uint64_t generation = 0;
};
struct stopped {
  std::uint64_t generation = 0;
  /// Optimizer steps done once the interrupted step has been replayed; 0 if the device was not training.
  std::uint64_t interrupted_step = 0;
};

/// To a device, a request: where it is. Answered between two actions.
struct inspect_device {};
struct device_report {
  std::uint64_t generation = 0;
  execution_position position;
  plan_position end;           ///< where the actions that are granted end
  std::uint64_t num_held = 0;  ///< tensors that arrived before their action
};

/// Device -> itself: go on with the next action, after the messages that have arrived meanwhile. And its
/// thread for copies of the state -> device: all are made.
struct run_on {};

/// Transport -> device: a tensor for one of its stages. In this process only.
struct tensor_arrived {
  transport::tensor_tag tag;
  tensor value;
};

/// Transport -> device: something has come from other replicas, see device_options::from_replicas. In this
/// process only.
struct replica_tensors_arrived {};

/// A thread of the device -> device: a tensor of its GPU could not be copied to the CPU or sent. The device
/// ends with that error, unless its generation has ended.
struct copy_failed {
  std::uint64_t generation = 0;
  std::exception_ptr cause;
};

/// Loader -> device: the samples of a step. In this process only.
struct batch_ready {
  std::uint32_t call = 0;
  std::uint32_t source = 0;
  std::uint64_t step = 0;
  batch samples;
};

/// Supervisor -> device: the loader was restarted. The batches that the previous one has not sent are
/// requested again. In this process only.
struct loader_replaced {
  caf::actor loader;
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::step_credit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::begin_generation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::quiesce)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::stopped)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::inspect_device)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::device_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::run_on)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::tensor_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::replica_tensors_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::copy_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::hash_parameters)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::batch_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::loader_replaced)
