#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/http/event_log.hpp"
#include "troupe/inspector/views/finding.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/messages/job_history.hpp"

namespace troupe::actors::inspector {

/// Optimizer steps of one run of the job's plan, which is a step of the scheduler.
std::uint64_t steps_of_run(const messages::scheduler_report& report);

/// What a process sends to another one, per second.
struct link_rates {
  double bytes_per_s = 0, tensors_per_s = 0;  ///< of tensors
  double frames_per_s = 0;                    ///< of control messages
};

/// A process of the job, as it last reported.
struct process_view {
  messages::process_report report;
  std::int64_t at_ms = 0;            ///< Unix time at which the report came
  std::uint64_t num_unanswered = 0;  ///< polls since then without an answer
  bool is_suspended = false;         ///< the kernel says so (SIGSTOP, a debugger); known on this host only
  // Per second, between the two newest reports of this process; 0 before there are two.
  double bytes_sent_per_s = 0, bytes_received_per_s = 0;
  double tensors_sent_per_s = 0, tensors_received_per_s = 0;
  std::map<int, link_rates> sent_to = {};  ///< rates to each other process; key: its rank
  double cores_waited_for = 0;             ///< threads that waited for a core, on average
};

/// The rates between two reports of a process, `seconds` apart, and those to each rank.
void set_rates(process_view& newest, const messages::process_report& before, double seconds);

/// All that an inspector knows of a job. A value: who reads it holds nobody up.
struct job_view {
  static constexpr std::size_t max_past = 64;
  int rank = 0;  ///< rank of the process with the inspector
  int world_size = 1;
  std::int64_t at_ms = 0;  ///< the newest poll; 0: there was none
  std::uint64_t generation = 0;
  std::map<int, process_view> processes;  ///< key: rank
  /// Processes that have been replaced, as they last reported, the newest `max_past`; oldest first.
  std::deque<process_view> replaced;
  messages::job_history history;
  std::optional<messages::scheduler_report> scheduler;      ///< newest report, with an empty `steps`
  std::shared_ptr<const messages::measured_step> measured;  ///< the newest, of any generation
  std::shared_ptr<const job::call_result> last_training;    ///< the newest, of any generation
  double steps_per_s = 0;                                   ///< over the newest steps, however old they are
  double slowest_step_s = 0;                                ///< of the newest runs of the plan; 0: none yet
  std::vector<finding> findings;                            ///< what is wrong, by kind
};

/// Whether a job whose newest step is `silent_s` old does nothing any more: that is longer than steps that
/// take `usual_s` explain, and than the inspector's own delay.
bool has_gone_quiet(double silent_s, double usual_s);

/// The newest optimizer steps of a job. A step that a recovery computes again takes the place of its first
/// time. Thread-safe.
class metrics_history {
 public:
  static constexpr std::size_t max_kept = 10'000;
  void add(const messages::recent_step& step);
  void add_missed(std::uint64_t count);

  struct piece {
    std::uint64_t missed = 0;  ///< steps too fast to be kept, since the job began
    std::optional<std::uint64_t> oldest;
    std::vector<messages::recent_step> steps;
  };
  /// The first `most` of the steps after step `step`, ascending.
  piece after(std::uint64_t step, std::size_t most) const;
  std::optional<messages::recent_step> newest() const;
  /// The number of steps whose pace is that of the job.
  static constexpr std::size_t steps_of_rate = 20;
  /// Steps per second over the last `num_steps`; 0: there are not two of them.
  double rate(std::size_t num_steps) const;
  /// The same of the last `steps_of_rate` as it is at a time; 0 also if nothing has been done lately, see
  /// has_gone_quiet.
  double rate_at(std::int64_t now_ms) const;
  /// The longest time of the last `num_steps`, in seconds; 0: there are none.
  double slowest_s(std::size_t num_steps) const;

 private:
  mutable std::mutex mutex_;
  std::deque<messages::recent_step> steps_;  ///< ascending
  std::uint64_t missed_ = 0;
};

class open_commands;

/// What an inspector publishes to the threads that serve it. Thread-safe.
class inspected_job {
 public:
  explicit inspected_job(std::string job_id = {}) : job_id_(std::move(job_id)) {}

  void set_job_id(const std::string& id);
  std::string job_id() const;
  void publish(job_view view);
  /// Null before the first one.
  std::shared_ptr<const job_view> view() const;
  metrics_history& metrics() { return metrics_; }
  const metrics_history& metrics() const { return metrics_; }
  const std::shared_ptr<http::event_log>& events() const { return events_; }
  /// Of those who watch the job; null: they may give none.
  const std::shared_ptr<open_commands>& commands() const { return commands_; }
  /// Before the inspector's actor begins.
  void take_commands(std::shared_ptr<open_commands> commands) { commands_ = std::move(commands); }

 private:
  mutable std::mutex mutex_;
  std::string job_id_;
  std::shared_ptr<const job_view> view_;
  metrics_history metrics_;
  std::shared_ptr<http::event_log> events_ = std::make_shared<http::event_log>();
  std::shared_ptr<open_commands> commands_;
};

}  // namespace troupe::actors::inspector
