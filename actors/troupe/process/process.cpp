#include "troupe/process/process.hpp"

#include <unistd.h>

#include <atomic>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/actor/use_two_workers.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/inspector/inspection.hpp"
#include "troupe/job_error/job_errors.hpp"
#include "troupe/messaging/job_secret.hpp"
#include "troupe/posix/thread_limit.hpp"
#include "troupe/process/await_actors.hpp"
#include "troupe/process/event_router.hpp"
#include "troupe/process/job_connection.hpp"
#include "troupe/scheduler/progress_watch.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe::actors::process {
namespace {

/// Those of the table "Processes, threads and actors" in docs/architecture.md, for one device.
constexpr int threads_of_process = 16;

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string text_of_gone(const job::call_result& result) {
  std::string repeats =
      result.from_snapshot ? "this job repeats the calls of the one from whose snapshot it resumes, of which "
                             "number "
                           : "this process was restarted and repeats call number ";
  return repeats + std::to_string(result.index) + " delivered tensors of step " +
         std::to_string(result.steps_done) +
         ": these are kept nowhere any more, and training has continued. Save tensors of earlier steps with "
         "Trainer::save, which is not repeated";
}

class real_process : public process {
 public:
  explicit real_process(const process_options& options) : options_(options) {
    if (options_.launch) {
      rank_ = options_.launch->rank;
      world_size_ = options_.launch->world_size;
      local_rank_ = options_.launch->local_rank;
      job_id_ = options_.launch->job_id;
    }
    if (job_id_.empty()) job_id_ = wire::to_hex(messaging::make_job_secret()).substr(0, 16);
    faults_ = fault::fault_plan(options_.fault, rank_, options_.launch ? options_.launch->incarnation : 0);
    connection_.emplace(options_, router_);
    trace_ = std::make_unique<trace::trace_recorder>(rank_, trace::recording_segment());
    begin_inspection();
    spawn_supervisor();
    try {
      connection_->join(host_name());
      job_id_ = connection_->unique_job_id(job_id_);
      if (inspection_) inspection_->begin(job_id_);
    } catch (...) {
      stop_actors();
      throw;
    }
  }

  /// Leaves together with all other processes: until then a lost process can be restored from this one's
  /// copies.
  ~real_process() override {
    if (std::uncaught_exceptions() == 0) leave();
    if (!abandoned_) stop_actors();
    if (inspection_ && is_job_over()) inspection_->end();
  }

  void leave() override {
    if (ended_ || abandoned_ || std::exchange(leaving_, true)) return;
    try {
      if (world_size_ > 1) run({}, {});
      faults_.at(fault::fault_point::leaving);
      for (const auto& fault : faults_.not_fired())
        options_.log->warn("--fault {}: it was not injected, the job did not come to it", to_string(fault));
      connection_->members().leave();
      has_left_ = true;
    } catch (const job_stopped&) {  // the program has made all its calls
    } catch (const std::exception& problem) {
      options_.log->error("{}", problem.what());
    }
  }

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  int local_rank() const override { return local_rank_; }
  const std::string& job_id() const override { return job_id_; }

  void define(std::shared_ptr<const job::job_definition> job) override {
    auto numbered = std::make_shared<job::job_definition>(*job);
    numbered->number = num_jobs_++;
    numbered->first_call = next_call_;
    caf::anon_send(supervisor_, messages::define_job{std::move(numbered)});
  }

  std::uint32_t add_source(std::shared_ptr<batch_source> source) override {
    caf::anon_send(supervisor_, troupe::actors::messages::add_source{std::move(source)});
    return num_sources_++;
  }

  void cancel_training() override { caf::anon_send(supervisor_, messages::cancel_call{next_call_ - 1}); }

  void request_pause(const job::pause_request& request) override {
    caf::anon_send(supervisor_, troupe::actors::messages::request_pause{request});
  }
  job::pause_state pause() const override { return pause_->get(); }

  bool is_replaying() const override { return is_replaying_; }

  job::call_result run(job::call_request request, const call_observer& observer) override {
    if (ended_) std::rethrow_exception(ended_);
    std::string refused;
    bool is_given = !request.delivers_to(rank_);
    std::optional<job::call_result> waits_for_cached;
    request.index = next_call_++;
    caf::anon_send(supervisor_, messages::enter_call{request});
    for (;;) {
      auto event = client_->take();
      if (auto* step = std::get_if<job::step_progress>(&event)) observer.on_step(*step);
      if (auto* report = std::get_if<cluster::recovery_report>(&event)) observer.on_recovered(*report);
      if (auto* gathered = std::get_if<job::gathered_tensors>(&event);
          gathered && gathered->call == request.index) {
        auto problem = observer.on_gathered(std::move(gathered->tensors));
        is_given = true;
        if (waits_for_cached) return *waits_for_cached;
        caf::anon_send(supervisor_, messages::program_received{gathered->generation, request.index, problem});
      }
      if (auto* gone = std::get_if<job::gathered_unavailable>(&event); gone && gone->call == request.index)
        throw result_gone(text_of_gone(*waits_for_cached));
      if (std::holds_alternative<job::job_done>(event)) {
        if (leaving_) return {};
        end_with(job_failed(
            "the job is done: the other processes ended it while this lost process was restarted"));
      }
      if (auto* stop = std::get_if<job::job_stop>(&event))
        end_with(job_stopped(stop->signal, "stopped " + stop->summary));
      if (auto* failure = std::get_if<job::job_failure>(&event)) {
        if (!refused.empty()) end_with(job_refused(refused));
        end_with(job_failed(failure->cause, failure->kind));
      }
      if (auto* result = std::get_if<job::call_result>(&event); result && result->index == request.index) {
        if (result->refused.empty()) {
          note_replay(*result);
          // With a single receiver the tensors were written by that process; they are not fetched again.
          if (is_given || !result->problem.empty() || request.receiver >= 0) return *result;
          waits_for_cached = *result;
          caf::anon_send(supervisor_, messages::fetch_cached{request});
          continue;
        }
        refused = result->refused;
        // Rank 0 gets the result last. The others wait for the end of the job, since a process that exits
        // before it counts as lost.
        if (rank_ == 0) fail(refused, failure_kind::bad_input);
      }
    }
  }

  collective::process_table& members() override { return router_.members; }
  collective::store& keys() override { return connection_->members().keys(); }
  const std::string& group_token() const override { return connection_->group_token(); }

  void fail(const std::string& cause, failure_kind kind) override {
    connection_->members().fail_job(cause, kind);
  }

  void request_stop(int signal, cluster::stop_scope scope) override {
    connection_->members().request_stop(signal, scope);
  }
  int stop_signal() const override { return router_.stop_signal(); }
  bool job_ended() const override { return router_.has_ended(); }

  void abandon() override {
    if (abandoned_) return;
    abandoned_ = true;
    if (!ended_) connection_->members().failing("");
    stop_actors();
  }

  void report_failure(const std::string& message, failure_kind kind) override {
    if (ended_) return;
    if (connection_->ends_job())
      connection_->members().fail_job(message, kind);
    else
      connection_->members().failing(message, kind);
  }

  const std::string& inspector_url() const override {
    static const std::string none;
    return inspection_ ? inspection_->url() : none;
  }

  void write_trace(const std::filesystem::path& file) const override { trace_->write_perfetto(file); }

 private:
  /// A process that was started again repeats calls up to the first that was not over before.
  void note_replay(const job::call_result& result) {
    if (!result.is_repeated) repeats_calls_ = false;
    is_replaying_ = result.from_snapshot || (repeats_calls_ && result.is_repeated);
  }

  /// Throws `error`, now and in every later call.
  template <class Error>
  [[noreturn]] void end_with(const Error& error) {
    ended_ = std::make_exception_ptr(error);
    throw error;
  }

  /// The inspector is where the scheduler is.
  void begin_inspection() {
    if (options_.inspect.empty() || rank_ != 0) return;
    inspector::inspection_options made;
    made.address = options_.inspect;
    made.token_file = options_.inspect_token_file;
    made.job_token = connection_->inspector_token();
    made.host_name = host_name();
    made.trace = trace_.get();
    made.takes_commands = options_.inspect_control;
    made.rules = {is_replaced(), options_.launch ? options_.launch->max_restarts : std::nullopt};
    made.audit = {options_.inspect_audit_log, options_.inspect_audit_folder_mode};
    made.incarnation = options_.launch ? options_.launch->incarnation : 0;
    made.log = options_.log;
    try {
      inspection_.emplace(made);
    } catch (const bad_input& problem) {
      // A job that has begun goes on, whoever has taken the port meanwhile.
      if (!options_.launch || options_.launch->incarnation == 0) throw;
      return options_.log->error("{}. The job goes on without inspector", problem.what());
    }
    options_.log->sinks().push_back(inspection_->log());
    if (!inspection_->warning().empty()) options_.log->warn("{}", inspection_->warning());
  }

  /// Whether a lost process is started again.
  bool is_replaced() const { return options_.launch && options_.launch->launched_by_troupe; }

  /// Whether the job ends with this process, so that no other one serves it next.
  bool is_job_over() const { return has_left_ || router_.has_ended() || connection_->ends_job(); }

  void spawn_supervisor() {
    supervisor::supervisor_options made;
    made.rank = rank_;
    made.world_size = world_size_;
    made.incarnation = options_.launch ? options_.launch->incarnation : 0;
    made.host = host_name();
    made.numeric_class = options_.numeric_class;
    made.out = &connection_->data();
    made.members = &connection_->members();
    made.gate = &router_.gate;
    made.directory = &router_.directory;
    made.faults = &faults_;
    made.trace = trace_.get();
    made.fenced = router_.fenced;
    made.client = client_;
    made.pause = pause_;
    made.log = options_.log;
    made.progress_timeout = options_.progress_timeout;
    made.stuck = stuck_;
    made.is_replaced = is_replaced();
    made.keeps_results = options_.writes_snapshots || is_replaced();
    made.collectives = options_.collectives;
    if (inspection_) made.inspected = inspection_->job();
    supervisor_ =
        system_.spawn<actor::actor_of<supervisor::supervisor_state>, caf::detached>(std::move(made));
    router_.attach(supervisor_);
  }

  void stop_actors() {
    router_.fenced->store(std::numeric_limits<std::uint64_t>::max());
    router_.attach({});
    caf::anon_send_exit(supervisor_, caf::exit_reason::user_shutdown);
    supervisor_ = {};
    await_actors(system_, *stuck_, ended_, *options_.log);
    // Last, because a busy actor may have registered itself until now, and a detached actor's thread ends
    // only when its last handle is gone.
    router_.gate.close();
    router_.directory.close();
  }

  process_options options_;
  int rank_ = 0, world_size_ = 1, local_rank_ = 0;
  std::string job_id_;
  fault::fault_plan faults_;
  std::shared_ptr<std::atomic<bool>> stuck_ = std::make_shared<std::atomic<bool>>(false);
  std::uint32_t num_jobs_ = 0;
  bool leaving_ = false;   ///< the program makes no more calls
  bool has_left_ = false;  ///< together with all other processes
  bool abandoned_ = false;
  std::exception_ptr ended_;  ///< what the program's calls throw once the job has ended
  std::uint32_t next_call_ = 0, num_sources_ = 0;
  bool repeats_calls_ = options_.launch && options_.launch->incarnation > 0;
  std::atomic<bool> is_replaying_ = repeats_calls_;

  // Members are destroyed in reverse order, so those that others use come first.
  std::shared_ptr<job::client_mailbox> client_ = std::make_shared<job::client_mailbox>();
  std::shared_ptr<job::pause_record> pause_ = std::make_shared<job::pause_record>();
  std::unique_ptr<trace::trace_recorder> trace_;
  std::optional<inspector::inspection> inspection_;
  event_router router_{options_.launch ? options_.launch->rank : 0,
                       options_.launch ? options_.launch->world_size : 1};
  caf::actor_system_config config_;
  caf::actor_system system_{actor::use_two_workers(config_)};
  std::optional<job_connection> connection_;
  caf::actor supervisor_;
};

}  // namespace

std::unique_ptr<process> process::start(const process_options& options) {
  scheduler::check_progress_timeout(options.progress_timeout);
  posix::require_threads(threads_of_process, "this process");
  return std::make_unique<real_process>(options);
}

}  // namespace troupe::actors::process
