#pragma once
#include <spdlog/logger.h>

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "troupe/inspector/commands/command_runner.hpp"
#include "troupe/inspector/findings/fault_watch.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/messages/inspector.hpp"

namespace troupe::actors::inspector {

/// Whether the kernel has suspended this process of this machine: by SIGSTOP, or for a debugger.
bool is_suspended_process(std::int64_t pid);

struct inspector_options {
  int rank = 0;
  int world_size = 1;
  std::shared_ptr<inspected_job> out;  ///< where it puts each view for the HTTP server; required
  std::shared_ptr<spdlog::logger> log;
  /// Between two polls. Shorter: a newer view, and more messages: two a process and poll.
  std::chrono::milliseconds poll_interval{500};
  /// An actor that has not answered by then is asked again with the next poll.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(5);
  /// A command that is not carried out by then gets an outcome that says so.
  std::chrono::milliseconds command_timeout = std::chrono::minutes(2);
  std::string host = {};  ///< of this process; those of others are asked of no kernel
  std::function<bool(std::int64_t pid)> is_suspended = is_suspended_process;
};

/// Gathers what the actors of all processes tell of themselves, and publishes it as one value
/// (inspected_job). Who watches reads that value: nobody's request reaches an actor of the job.
///
/// Has no states: it polls from the first generation on, and each actor has one request at most that is not
/// answered yet. What does not answer is shown with the age of its last report.
///
///   message              -> reply
///   inspected_generation ->
///   inspected_recovery   ->
///   poll_job (delayed)   -> inspect_process to supervisors, inspect_scheduler to the scheduler
///   commands_posted      -> what command_runner passes on
///
/// Reports of earlier generations are dropped. Monitors no actor. Devices are not asked: their supervisors
/// read what their threads publish. Runs in the process of the scheduler, as a scheduled actor, since its
/// handlers neither block nor compute.
class inspector_state {
 public:
  static constexpr const char* actor_name = "inspector";
  inspector_state(caf::event_based_actor* self, inspector_options options);
  inspector_state(const inspector_state&) = delete;
  inspector_state& operator=(const inspector_state&) = delete;
  caf::behavior make_behavior();

 private:
  void on_generation(const messages::inspected_generation& begun);
  void on_recovery(const messages::inspected_recovery& recovery);
  void on_poll();
  void look_for_faults();
  void ask_process(int rank);
  void ask_scheduler();
  void on_process(int rank, const messages::process_report& report);
  void on_scheduler(messages::scheduler_report report);
  void note_steps(const messages::scheduler_report& report);
  void note_changes(const messages::process_report* before, const messages::process_report& report);

  // constant
  caf::event_based_actor* self_;
  inspector_options options_;

  // current generation
  messages::inspected_generation generation_;
  std::uint64_t steps_known_ = 0;  ///< number of the newest step in the scheduler's history

  // waiting replies
  std::set<int> asked_;  ///< ranks that were asked and have not answered
  bool scheduler_asked_ = false;

  job_view view_;
  fault_watch faults_;
  std::optional<command_runner> commands_;
};

}  // namespace troupe::actors::inspector
