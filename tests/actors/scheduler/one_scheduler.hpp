#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "actors/virtual_actors.hpp"
#include "support/recording_membership.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe::testing {

/// What a snapshot writer that only pretends answers, and what it was asked.
struct disk_script {
  std::optional<snapshot::snapshot_manifest> on_disk;
  std::vector<std::string> unusable;
  std::string problem;             ///< not empty: the answer to everything
  std::string problem_of_results;  ///< not empty: the answer to requests for the results of calls
  bool silent = false;             ///< it never answers
  bool fatal = false;              ///< it ends of what it is asked
  std::vector<snapshot::snapshot_manifest> committed;
  std::vector<std::size_t> committed_results;     ///< number of results with each of `committed`
  std::vector<actors::job::call_result> results;  ///< in the snapshot on disk
  int num_reads = 0;                              ///< how often `results` were read
  int num_searches = 0;
};

struct scheduler_settings {
  int world_size = 2;
  std::uint64_t generation = 1;
  std::uint64_t window = 4;
  bool on_disk = false;
  std::uint64_t disk_every_steps = 0;
  std::chrono::seconds disk_interval{0};
  std::uint64_t memory_every_steps = 1;
  bool resume = false;
  bool knows_job = true;
  non_finite_policy on_non_finite = non_finite_policy::stop;
  std::optional<snapshot::snapshot_manifest> begin_with = {};
  bool trained_before = false;
  actors::job::lost_state_policy on_lost_state = actors::job::lost_state_policy::stop;
  std::uint64_t committed_step = 0;  ///< committed step that the processes report
  std::chrono::seconds progress_timeout{0};
  int num_devices = 0;                     ///< each with a stage; 0: one a process
  int num_replicas = 1;                    ///< with the same weights, which share the devices
  std::optional<mesh::hosting> home = {};  ///< none: spread over the processes
};

/// The scheduler of a job with one stage a device, and one device a process unless told otherwise, its
/// neighbours being probes; rank 0 is its own process.
struct one_scheduler {
  virtual_actors actors;
  recording_membership members;
  std::shared_ptr<actors::job::client_mailbox> client = std::make_shared<actors::job::client_mailbox>();
  std::shared_ptr<disk_script> disk = std::make_shared<disk_script>();
  scheduler_settings with;
  std::vector<probe> supervisors, devices;
  caf::actor scheduler;
  std::uint32_t job_number = 0, first_call = 0;

  explicit one_scheduler(scheduler_settings given = {});

  int num_devices() const { return with.num_devices == 0 ? with.world_size : with.num_devices; }
  void know_job();
  /// Its process has restarted the snapshot writer.
  void replace_snapshot_writer();
  /// Warnings and errors so far.
  std::string logged() const { return log_.str(); }

  // what processes say
  void enter(int rank, const actors::job::call_request& request, std::vector<recovery::held_part> parts = {},
             std::vector<actors::job::call_result> completed = {}, std::uint64_t interrupted_step = 0);
  void all_enter(const actors::job::call_request& request,
                 const std::vector<actors::job::call_result>& completed = {});
  void restored(int rank, program::step_metrics metrics = {});
  void all_restored();
  void done(int device, std::uint64_t step, std::uint32_t call = 0);
  void all_done(std::uint64_t step, std::uint32_t call = 0);
  /// Every stage's copy of `step` is with its owner and with the next rank.
  void all_held(std::uint64_t step);
  void held(int rank, std::uint64_t step, int stage, recovery::part_location place);
  void written(std::uint64_t step, int stage, const std::string& problem = {});
  void all_written(std::uint64_t step);
  void seen(int rank, std::uint32_t index);
  void all_seen(std::uint32_t index);

  /// Up to the moment when steps are granted.
  void begin_training(std::uint64_t target);
  /// A whole call, from its credit on.
  void train_to_end(std::uint64_t first, std::uint64_t target, std::uint32_t call = 0);

  // messages to the processes
  actors::messages::step_credit granted(int device = 0) const;
  std::size_t num_credits() const;
  std::vector<std::uint64_t> finished(int rank) const;
  actors::job::call_result result(int rank = 0) const;
  actors::messages::restore_command command(int rank = 0) const;
  std::size_t num_commands() const;
  /// Throws std::logic_error if one was reported of another generation.
  std::vector<cluster::recovery_phase> phases() const;

  std::ostringstream log_;

  static actors::job::call_request train(std::uint32_t index, std::uint64_t target,
                                         std::uint32_t source = 0) {
    return {index, actors::job::call_kind::train, source, target, 0, 0};
  }
  static actors::job::call_request evaluate(std::uint32_t index, std::uint64_t position,
                                            std::uint64_t batches, std::uint32_t source = 1) {
    return {index, actors::job::call_kind::evaluate, source, position, batches, 2};
  }
  static actors::job::call_request forward_backward(std::uint32_t index, std::uint64_t target) {
    return {index, actors::job::call_kind::forward_backward, 0, target, 0, 0};
  }
  static actors::job::call_request optimizer_step(std::uint32_t index, std::uint64_t target) {
    return {index, actors::job::call_kind::optimizer_step, 0, target, 0, 0};
  }
  static actors::job::call_request hash(std::uint32_t index, std::uint64_t position) {
    return {index, actors::job::call_kind::hash, 0, position, 0, 0};
  }
  static actors::job::call_request barrier(std::uint32_t index) {
    return {index, actors::job::call_kind::barrier, 0, 0, 0, 0};
  }
  static program::step_metrics metrics_of(std::uint64_t step) {
    return {static_cast<double>(step) + 0.5, 64, 3};
  }
};

using numbers = std::vector<std::uint64_t>;
using phases = std::vector<cluster::recovery_phase>;
inline constexpr auto own = recovery::part_location::own_memory;
inline constexpr auto peer = recovery::part_location::peer_memory;

actors::job::call_result finished_training(std::uint32_t index, std::uint64_t steps,
                                           std::uint32_t source = 0);
std::vector<std::uint64_t> steps_of(const std::vector<actors::messages::due_copy>& copies);

}  // namespace troupe::testing
