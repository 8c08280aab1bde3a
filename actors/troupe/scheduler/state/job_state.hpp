#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/job/call_log.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::scheduler {

struct scheduler_options {
  std::uint64_t generation = 1;
  int world_size = 1;
  mesh::view present;  ///< members of this generation
  std::string numeric_class;
  std::vector<caf::actor> supervisors;  ///< [world_size], proxies where remote
  cluster::membership* members = nullptr;
  std::shared_ptr<job::client_mailbox> client;  ///< gets step_progress, for the program's callbacks
  std::shared_ptr<spdlog::logger> log;
  /// Steps granted beyond the last complete one, so that devices need no round trip per step.
  std::uint64_t window = 8;
  /// Bounds the time of granted steps, since a job that is to stop completes them first.
  std::chrono::seconds window_time{2};
  /// How long steps wait while disk_snapshots::max_pending snapshots are being written. After that steps
  /// continue and further snapshots are skipped, until one is written.
  std::chrono::seconds disk_wait_limit = std::chrono::seconds(10);
  /// How long the job waits for its last finite state to be on disk before it ends.
  std::chrono::seconds save_timeout = std::chrono::seconds(120);
  int rank = 0;  ///< rank of the scheduler's process
  /// The results of calls that this process knows; shared with its supervisor.
  std::shared_ptr<job::call_log> completed = std::make_shared<job::call_log>();
  /// A device or loader without progress for this long counts as lost; 0: never.
  std::chrono::milliseconds progress_timeout{0};

  const caf::actor& supervisor_of(int of_rank) const {
    return supervisors[static_cast<std::size_t>(of_rank)];
  }
};

/// What the parts of a scheduler know of the job in its generation. Only the part named changes a field.
struct job_state {
  /// See scheduler_state.
  enum class phase : std::uint8_t { gathering, finding, restoring, running };
  phase now = phase::gathering;     // call_runner, job_restore
  messages::job_known known;        // scheduler_state
  std::vector<caf::actor> devices;  ///< [num_devices], from the restore on; scheduler_state

  // job_restore
  bool is_restored = false;
  mesh::hosting hosts;  ///< which process has which device; empty before the restore

  // job_restore, then call_runner
  std::uint64_t position = 0;     ///< optimizer steps done by all devices
  program::step_metrics metrics;  ///< of the step before `position`
  bool is_unsaved = false;        ///< steps were done since the last that a call waited for to be saved
  /// Optimizer steps done once the interrupted step is replayed; 0: nothing to replay.
  std::uint64_t interrupted_step = 0;

  // call_runner, job_ending
  bool is_stopping = false;               ///< the job is to end when its state is on disk
  std::optional<std::string> non_finite;  ///< the infinite or NaN value that ends the job

  bool is_running() const { return now == phase::running; }
  const job::job_definition& job() const { return *known.job; }
  std::uint32_t num_stages() const { return static_cast<std::uint32_t>(job().training.num_stages); }
};

}  // namespace troupe::actors::scheduler
