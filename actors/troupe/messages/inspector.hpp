#pragma once
#include <caf/actor.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/actor/actor_counts.hpp"
#include "troupe/actor/child_id.hpp"
#include "troupe/actor/message_storage.hpp"
#include "troupe/cluster/membership.hpp"
#include "troupe/collective/diagnostics/collective_position.hpp"
#include "troupe/job/call.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/job/pause.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/messages/job_history.hpp"
#include "troupe/messages/measured_steps.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/step_history.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::messages {

/// Supervisor -> inspector of its process: a generation has begun, and these are the actors to ask in it.
struct inspected_generation {
  std::uint64_t generation = 0;
  std::vector<caf::actor> supervisors;  ///< [world_size], proxies where remote
  caf::actor scheduler;
};

/// Supervisor -> inspector of its process: a recovery is over.
struct inspected_recovery {
  cluster::recovery_report report;
};

/// Inspector -> itself, periodically: ask supervisors and scheduler.
struct poll_job {};

/// Server's thread -> inspector: commands have come (open_commands).
struct commands_posted {};

/// A child of a supervisor, alive or not. One that has ended stays in the reports of its process.
struct child_report {
  actor::child_id id;
  std::uint8_t is_running = 0;
  std::uint32_t starts = 0;         ///< how often it was started
  std::string reason;               ///< of its newest failure; empty: it never failed
  actor::actor_counts counts = {};  ///< totals are those of all its starts
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, is_running, starts, reason, counts);
  }
};

/// What a process has exchanged with another one, see peer_statistics.
struct peer_report {
  std::int32_t rank = 0;
  transport::peer_statistics counted;
  template <class Archive>
  void serialize(Archive& archive) {
    auto& c = counted;
    archive(rank, c.frames_sent, c.frames_received, c.frame_bytes_sent, c.frame_bytes_received,
            c.frame_bytes_queued, c.tensors_sent, c.tensors_received, c.tensor_bytes_sent,
            c.tensor_bytes_received, c.tensors_in_flight, c.tensor_bytes_in_flight);
  }
};

/// Memory of a process, in bytes.
struct process_memory_report {
  std::uint64_t resident = 0, peak_resident = 0;  ///< as the kernel counts it; 0: not known
  // Held by tensors in CPU memory.
  std::uint64_t current = 0, peak = 0;
  std::uint64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, other = 0;  ///< of `current`
  template <class Archive>
  void serialize(Archive& archive) {
    archive(resident, peak_resident, current, peak, parameters, gradients, optimizer, activations, other);
  }
};

/// Where a device computes, and what it holds, in bytes: without copies of the state.
struct device_memory_report {
  std::int32_t device = 0;
  std::string place;                 ///< "cpu", "cuda:0"
  std::uint64_t held = 0, peak = 0;  ///< in the memory of its place
  std::uint64_t limit = 0;           ///< see mesh::logical_device; 0: none
  std::uint64_t on_host = 0;         ///< of a device on a GPU: held in the memory of the CPU
  template <class Archive>
  void serialize(Archive& archive) {
    archive(device, place, held, peak, limit, on_host);
  }
};

/// The reply to inspect_process.
struct process_report {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::uint32_t incarnation = 0;
  std::int64_t pid = 0;
  std::string host;
  std::uint8_t phase = 0;          ///< process_generation::phase
  actor::actor_counts supervisor;  ///< of the one that reports
  std::vector<child_report> children;
  std::vector<device_progress> devices;  ///< that run here, as their threads have published it
  /// See transport_statistics.
  std::uint64_t control_frames_sent = 0, control_frames_received = 0;
  std::uint64_t tensors_sent = 0, tensors_received = 0;
  std::uint64_t tensor_bytes_sent = 0, tensor_bytes_received = 0, tensor_bytes_shared = 0;
  std::uint64_t stale_frames = 0, bad_frames = 0;
  std::uint64_t loader_changes = 0;                          ///< loader_status::changes
  std::vector<collective::collective_position> collectives;  ///< of the process groups that exist here
  std::vector<peer_report> peers;  ///< by rank; those with which anything was exchanged
  std::uint64_t core_wait_ns = 0;  ///< see core_wait
  process_memory_report memory;
  std::vector<device_memory_report> device_memory;  ///< of the devices that run here
  job_history history;  ///< as this process knows it: a summary, unless inspect_process::wants_history
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, incarnation, pid, host, phase, supervisor, children, devices);
    archive(control_frames_sent, control_frames_received, tensors_sent, tensors_received, tensor_bytes_sent,
            tensor_bytes_received, tensor_bytes_shared, stale_frames, bad_frames, loader_changes, collectives,
            peers, core_wait_ns, memory, device_memory, history);
  }
};

/// The reply to inspect_scheduler. In this process only.
struct scheduler_report {
  std::uint64_t generation = 0;
  std::uint8_t phase = 0;  ///< job_state::phase
  std::uint32_t call = 0;  ///< number of the call that the job is in or will enter next
  job::call_kind kind = job::call_kind::barrier;
  job::call_request activity;           ///< what the devices do, while `running` is not null
  std::shared_ptr<const plan> running;  ///< which they run; null: no call runs
  // Steps are runs of the plan.
  std::uint64_t step = 0;            ///< steps that all devices have done
  std::uint64_t end_step = 0;        ///< step at which the running call ends
  std::uint64_t committed_step = 0;  ///< the newest that the job survives a loss with, in memory
  std::optional<std::uint64_t> step_on_disk;
  std::uint64_t num_pending = 0;  ///< snapshots that are being written
  bool is_stopping = false;
  double step_s = 0;  ///< mean time of a step; 0: not known
  job::pause_state pause;
  std::shared_ptr<const job::job_definition> job;  ///< null: none is defined yet
  mesh::hosting hosts;                             ///< empty before the first restore of the generation
  step_history::piece steps;                       ///< those after inspect_scheduler::after
  std::shared_ptr<const measured_step> measured;   ///< of this generation, by all devices; null: none
  std::shared_ptr<const job::call_result> last_training;  ///< of this generation; null: none
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::inspected_generation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::inspected_recovery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::poll_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::commands_posted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::process_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::scheduler_report)
