#pragma once
#include <spdlog/logger.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/collective/diagnostics/collective_position.hpp"
#include "troupe/config/environment/launch_environment.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/job/pause.hpp"
#include "troupe/program/batch_source.hpp"
#include "troupe/transport/send_delay.hpp"

namespace troupe::collective {
class process_table;
class store;
}  // namespace troupe::collective

namespace troupe::actors::process {

struct process_options {
  /// Rank, world size and rendezvous; none: a job of this one process, without launcher, port or file.
  std::optional<launch_environment> launch;
  std::string numeric_class;  ///< see ops/numeric_class.hpp; must be equal in all processes
  std::string network_interface = "lo";
  bool verify_frames = false;
  transport::send_delay_ptr delay = nullptr;  ///< of tensors to other processes, for measurements
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);
  /// A process that sends no heartbeat for this long counts as lost. Used where rank 0 hosts the agent.
  std::chrono::milliseconds suspect_after = std::chrono::seconds(1);
  /// A device or loader without progress for this long counts as lost, at least 320 ms; 0: never.
  std::chrono::milliseconds progress_timeout{0};
  /// See job_options; counts on rank 0.
  std::string inspect;
  std::filesystem::path inspect_token_file;
  bool inspect_control = false;
  std::filesystem::path inspect_audit_log;  ///< empty: the log
  /// The permissions with which the folder of inspect_audit_log is made; 0: it is not.
  mode_t inspect_audit_folder_mode = 0;
  /// Snapshots store the results of calls, which are all kept then.
  bool writes_snapshots = false;
  std::string fault;                    ///< faults to inject, as in --fault: fault/fault_plan.hpp
  std::shared_ptr<spdlog::logger> log;  ///< required
  /// Where this process is in its process groups, for those who watch it. Thread-safe; may be empty.
  std::function<std::vector<collective::collective_position>()> collectives;
};

/// Callbacks of a running call, on the thread that called process::run. Actors continue during a callback.
struct call_observer {
  /// The tensors that the call delivers to this process, see call_request::num_gathered. Called again if
  /// processes are lost during the call. Returns an empty text, or why the program cannot use the tensors,
  /// which all processes get in call_result::problem.
  std::function<std::string(std::vector<tensor>)> on_gathered = [](std::vector<tensor>) { return ""; };
  std::function<void(const job::step_progress&)> on_step = [](const job::step_progress&) {};
  std::function<void(const cluster::recovery_report&)> on_recovered = [](const cluster::recovery_report&) {};
};

/// One process of a job: its actor system, transport, membership and actors. Functions are to be called from
/// one thread, except where they say thread-safe.
class process {
 public:
  /// Joins the job. Throws bad_input (wrong secret, port in use, ...), or what UCX throws.
  static std::unique_ptr<process> start(const process_options& options);
  virtual ~process() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual int local_rank() const = 0;
  virtual const std::string& job_id() const = 0;

  /// Defines the job, before the first call that computes. A further job may be defined after all calls of
  /// the previous one. Fills in job_definition::number and first_call.
  virtual void define(std::shared_ptr<const job::job_definition> job) = 0;
  /// Returns its number, for call_request::source. Every process adds the same sources in the same order.
  virtual std::uint32_t add_source(std::shared_ptr<batch_source> source) = 0;
  /// Makes the next call, together with all processes, and blocks until it is complete. Fills in
  /// `request.index`. Throws bad_input in every process, and ends the job, if the processes' requests differ;
  /// job_failed (error/errors.hpp) if the job fails, and at once in every later call. A process that was
  /// started again repeats earlier calls and gets their stored results; throws result_gone if the tensors of
  /// such a call are in no cache any more.
  virtual job::call_result run(job::call_request request, const call_observer& observer) = 0;
  /// Whether the newest call gave a result that was computed before: by an earlier process of this rank, or
  /// by the job from whose snapshot this one resumes. Before the first call: whether this process replaces a
  /// lost one. Thread-safe.
  virtual bool is_replaying() const = 0;
  /// Ends the running training call a few steps later, in all processes. Call it from
  /// call_observer::on_step only.
  virtual void cancel_training() = 0;
  /// Pauses the job of all processes, lets it go on, or takes it single steps further: training, evaluation
  /// and predictions. A pause lasts until some process ends it, also if processes are lost meanwhile; a job
  /// that is to stop goes on. Returns at once. Thread-safe.
  virtual void request_pause(const job::pause_request& request) = 0;
  /// What this process knows of it; some milliseconds behind the scheduler. Thread-safe.
  virtual job::pause_state pause() const = 0;
  /// Which processes of the job are alive, and the job's key-value store: what process groups are built from.
  /// Both live as long as the process.
  virtual collective::process_table& members() = 0;
  virtual collective::store& keys() = 0;
  /// A token derived from the job's secret; authenticates the connections of process groups.
  virtual const std::string& group_token() const = 0;
  /// Ends the job in all processes with the error `cause`.
  virtual void fail(const std::string& cause, failure_kind kind) = 0;
  /// Requests a stop of this process or of the whole job, as `signal` would. Thread-safe.
  virtual void request_stop(int signal, cluster::stop_scope scope) = 0;
  /// The signal that stops or has stopped the whole job; 0: none. Thread-safe.
  virtual int stop_signal() const = 0;
  /// Whether the job has ended in all processes. Thread-safe.
  virtual bool job_ended() const = 0;
  /// Call it when an exception ends the program: stops this process's actors and tells the agent that the
  /// process is failing. The agent then waits some seconds for report_failure and the end of the process
  /// before it suspects the process.
  virtual void abandon() = 0;
  /// Leaves the job together with all other processes. The destructor calls it if the program did not.
  virtual void leave() = 0;
  /// After abandon(): reports the error that ends this process.
  virtual void report_failure(const std::string& message, failure_kind kind) = 0;
  /// Where the job is watched, with the token; empty: nowhere, or on another rank.
  virtual const std::string& inspector_url() const = 0;
  /// Writes what this process recorded. Throws system_failure.
  virtual void write_trace(const std::filesystem::path& file) const = 0;
};

}  // namespace troupe::actors::process
