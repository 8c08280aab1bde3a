#pragma once
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "troupe/inspector/commands/open_commands.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/job/pause.hpp"
#include "troupe/messages/inspector.hpp"

namespace troupe::actors::inspector {

/// Carries out the commands of those who watch a job, for the inspector: passes each to the actor that can,
/// and tells the outcome of each as an event.
///
///   command          passed to             is done when
///   pause, step      own supervisor        all devices stand where they were told to stop
///   resume           own supervisor        the scheduler has carried it out
///   snapshot         scheduler             it is on disk
///   log_level        all supervisors       all have set it
///   restart, kill    the process's         its actor was started again; its process was replaced
///                    supervisor
///
/// restart and kill are carried out one at a time, while the job has a state that survives them; the next one
/// waits for the outcome of the one before. All others are passed on at once, also during a recovery, and
/// again in each new generation until there is an answer. What has no outcome after command_timeout gets one.
class command_runner {
 public:
  /// All outlive this object. Commands that an earlier inspector has passed on are followed, or lost.
  command_runner(caf::event_based_actor* self, std::shared_ptr<inspected_job> job, const job_view& view,
                 std::chrono::milliseconds command_timeout);
  command_runner(const command_runner&) = delete;
  command_runner& operator=(const command_runner&) = delete;
  ~command_runner();

  void begin_generation(const messages::inspected_generation& begun);
  /// Commands have come.
  void on_posted();
  void on_process(const messages::process_report& report);
  /// The view has a report of this generation.
  void on_scheduler();
  void on_poll();

 private:
  void follow_or_lose();
  void pass(const open_command& one);
  void pass_pause(const open_command& one);
  void ask_for_snapshot(const std::string& id);
  void ask_for_level(const std::string& level, const std::string& id);
  void pass_next_disruptive();
  void pass_end(const open_command& one);
  void on_end_answer(const std::string& id, std::uint64_t generation, const caf::error& problem);
  void note_standing();
  void end(const std::string& id, const command_outcome& outcome);
  void fail(const std::string& id, const caf::error& problem);

  // constant
  caf::event_based_actor* self_;
  std::shared_ptr<inspected_job> job_;
  std::shared_ptr<open_commands> commands_;  ///< null: none are taken
  const job_view& view_;
  std::chrono::milliseconds command_timeout_;

  messages::inspected_generation generation_;
  bool has_report_ = false;  ///< of the scheduler, in this generation
  std::string level_;        ///< the newest that was set, which new processes get too; empty: none

  // open commands, by id
  std::map<std::string, std::chrono::steady_clock::time_point> since_;
  std::map<std::string, std::string> waits_for_;         ///< why it was not passed on yet
  std::map<std::string, std::uint64_t> stands_at_;       ///< a pause or step: version of its pause_state
  std::map<std::string, std::set<int>> without_answer_;  ///< log_level: ranks
  /// A restart or kill whose process was lost before it answered: the generation in which it was asked.
  std::map<std::string, std::uint64_t> unsure_;
};

}  // namespace troupe::actors::inspector
