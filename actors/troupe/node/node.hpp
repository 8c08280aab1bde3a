#pragma once
#include <spdlog/logger.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/config/launch_environment.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe {

class process_table;
class store;

struct node_options {
  /// Who this process is; none: a job of this one process, with no launcher, port or file.
  std::optional<launch_environment> launch;
  std::string numeric_class;  ///< see ops/numeric_class.hpp; must be equal in all processes
  std::string network_interface = "lo";
  bool verify_frames = false;
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);
  /// A device or loader that does not get on for so long is treated as lost; 0: never.
  std::chrono::milliseconds progress_timeout{0};
  std::string fault;                    ///< see fault/fault_plan.hpp
  std::shared_ptr<spdlog::logger> log;  ///< required
};

/// What a call tells while it runs; called on the thread that runs it. The call goes on while they run.
struct call_observer {
  /// The tensors that a call gives to this process, see call_request::num_gathered. More than once if
  /// processes are lost meanwhile. Returns what keeps the program from doing what the call is about (all
  /// processes hear of it in call_result::problem), or nothing.
  std::function<std::string(std::vector<tensor>)> on_gathered = [](std::vector<tensor>) { return ""; };
  std::function<void(const step_progress&)> on_step = [](const step_progress&) {};
  std::function<void(const recovery_report&)> on_recovered = [](const recovery_report&) {};
};

/// One process among others: its actor system, transport, membership and the actors it hosts. For one thread.
class node {
 public:
  /// Joins the job. Throws bad_input (wrong secret, port in use, ...), or what UCX throws.
  static std::unique_ptr<node> start(const node_options& options);
  virtual ~node() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual int local_rank() const = 0;
  virtual const std::string& job_id() const = 0;

  /// Before the first call that computes. Another job may follow when every process has made all calls about
  /// the one before; its number and its first call are filled in here.
  virtual void define(std::shared_ptr<const job_definition> job) = 0;
  /// Returns the number by which calls name it. Every process adds the same sources in the same order.
  virtual std::uint32_t add_source(std::shared_ptr<batch_source> source) = 0;
  /// Makes the next call together with all processes and waits for its end; `request.index` is filled in
  /// here. Throws bad_input in every process, and ends the job, if they do not do the same; and job_failed
  /// (error/errors.hpp), from then on at once. A process that was started again hears of calls that are over;
  /// throws result_gone if what one gave it is not to be had any more.
  virtual call_result run(call_request request, const call_observer& observer) = 0;
  /// From call_observer::on_step only: no further steps of this call. It ends a few steps later, for all
  /// processes.
  virtual void cancel_training() = 0;
  /// Which processes of the job live, and what they leave for each other: groups of one's own begin there.
  /// They live as long as the node.
  virtual process_table& members() = 0;
  virtual store& keys() = 0;
  /// What the job's processes know and others do not, for the groups' own connections.
  virtual const std::string& group_token() const = 0;
  /// Ends the job for all processes, which hear `cause`.
  virtual void fail(const std::string& cause) = 0;
  /// Asks for the end of this process or of the whole job, as a signal would. Thread-safe.
  virtual void request_stop(int signal, stop_scope scope) = 0;
  /// The signal that the whole job is to stop by, or has; 0: none. Thread-safe.
  virtual int stop_signal() const = 0;
  /// Whether the job has ended for all. Thread-safe.
  virtual bool job_ended() const = 0;
  /// An exception of the program ends this process: its actors stop now; the job hears of it, and waits for
  /// tell_failure and the end of the process a moment before it suspects it.
  virtual void abandon() = 0;
  /// Leaves the job together with all others, which the destructor does else.
  virtual void leave() = 0;
  /// After abandon(): with what this process ends.
  virtual void tell_failure(const std::string& what) = 0;
  /// Writes what this process recorded. Throws system_failure.
  virtual void write_trace(const std::filesystem::path& file) const = 0;
};

}  // namespace troupe
