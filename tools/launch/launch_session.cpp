#include "launch_session.hpp"

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include "adopted_processes.hpp"
#include "orphan_guard.hpp"
#include "recovery_text.hpp"
#include "troupe/config/duration_text.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/messaging/job_secret.hpp"
#include "troupe/posix/thread_limit.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr int threads_of_launcher = 4;
/// How long members may take to end by themselves after the agent has notified them of the job's failure.
constexpr auto time_to_end_alone = 1s;
/// Between the suspicion of a process and its being killed.
constexpr auto time_to_die_alone = 100ms;
/// How long the agent waits for the error message of a process that ended with a nonzero exit code; the
/// message may still be in its socket.
constexpr auto time_to_hear_failure = 500ms;

}  // namespace

launcher::session::session(launch_options options, launch_callbacks callbacks)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      output_(options_),
      workers_(options_, callbacks_, output_),
      restarts_({options_.max_restarts, options_.restart_window}) {}

int launcher::session::run() {
  posix::require_threads(threads_of_launcher, "troupe launch");
  signal_guard signals(options_.more_signals);
  auto secret = messaging::make_job_secret();
  agent_ = make_agent({.address = options_.master_addr,
                       .port = options_.master_port,
                       .secret = secret,
                       .world_size = options_.num_processes,
                       .join_timeout = options_.join_timeout,
                       .suspect_after = options_.suspect_after,
                       .replaces_lost_members = true,
                       .linger = 0ms},
                      make_agent_callbacks());
  auto id = messaging::make_job_secret();
  job_identity job{wire::to_hex(std::span(id).first(8)),
                   wire::to_hex(secret),
                   options_.master_addr,
                   agent_->port(),
                   options_.num_processes,
                   options_.max_restarts,
                   config::to_text(options_.more_signals)};
  orphan_guard orphans(job.job_id);
  job_id_ = job.job_id;
  workers_.start_all(job);
  while (workers_.num_alive() > 0) loop_once(signals);
  return finish();
}

// --- processes

void launcher::session::on_child_end(worker& child) {
  auto detected = clock::now();
  auto status = child.process->reap();
  child.dead_by.reset();
  child.kill_at.reset();
  // Handle earlier callbacks first: the agent may have ended the job, and the process ended because of that.
  posted_.run_all();
  if (phase_ > phase::stopping) {
    on_end_while_ending(status);
    child.process.reset();
  } else if (status.success()) {
    child.process.reset();
    agent_->process_exited(child.rank);
  } else {
    on_loss(child, status, detected);
  }
}

/// The process has ended, so the agent may raise the generation; the next incarnation starts while the
/// survivors quiesce. Also while the job is stopping, since restoring the lost state needs all members.
void launcher::session::on_loss(worker& lost, const exit_status& status, clock::time_point detected) {
  lost.process.reset();
  workers_.write_events(lost);
  bool was_killed_by_others = status.signal == SIGKILL && lost.kill_cause.empty() && !lost.drilled_at;
  if (was_killed_by_others) lost.kill_cause = explain_processor_time(status, processor_time_limit());
  if (was_killed_by_others && lost.kill_cause.empty()) lost.kill_cause = memory_kills_.explain();
  auto cause = status.describe() + (lost.kill_cause.empty() ? "" : " (" + lost.kill_cause + ")");
  was_killed_by_others &= lost.kill_cause.empty();
  auto said = agent_->failure_of(lost.rank, status.signal ? 0ms : time_to_hear_failure);
  if (!said.message.empty()) cause += ": " + said.message;
  auto outcome = agent_->process_lost(lost.rank, cause, detected, lost.drilled_at);
  // A recovery that the agent completed before it knew of this loss does not include it.
  posted_.run_all();
  if (outcome == cluster::loss_outcome::had_left) {
    outcome_.note_exit_code(status.shell_code());
    return output_.say(describe_loss({lost.rank, cause}) + " after it had left the job");
  }
  if (outcome == cluster::loss_outcome::not_needed) {
    // A kill is harmless then; an exit code of the program itself is reported to the user.
    if (!status.signal) outcome_.note_exit_code(status.shell_code());
    return output_.say(describe_loss({lost.rank, cause}) + " when the job was done" +
                       (status.signal ? ", and is not restarted" : ""));
  }
  if (outcome == cluster::loss_outcome::came_too_late)
    return output_.say(describe_loss({lost.rank, cause}) + ": the job was done before it had joined again");
  if (outcome == cluster::loss_outcome::job_failed || phase_ > phase::stopping)
    return on_end_while_ending(status);
  auto first = "rank " + std::to_string(lost.rank) + " failed first: " + cause;
  if (status.code == bad_input_exit_code || said.kind == failure_kind::bad_input)
    return fail(first + "; starting it again would not cure that", bad_input_exit_code);
  auto refusal = restarts_.refusal(
      {lost.rank, cause, newest_step_, lost.drilled_at.has_value(), was_killed_by_others, num_advances_},
      clock::now());
  if (refusal) return fail(first + ", and " + *refusal, status.shell_code());
  if (lost_ranks_.empty()) step_at_loss_ = step_;
  if (had_view_) lost_ranks_[lost.rank] = cause;
  ++lost.incarnation;
  if (phase_ <= phase::stopping) workers_.restart(lost);
}

/// Ends all processes. The first failure is the cause; it becomes the last line of the output.
void launcher::session::fail(const std::string& line, int exit_code) {
  agent_->fail_job(line);
  outcome_.fail(line, exit_code);
  end_job(phase::terminated, options_.time_to_end);
}

void launcher::session::on_end_while_ending(const exit_status& status) {
  using enum job_outcome::ended_by;
  outcome_.process_ended(status, phase_ == phase::told ? itself : us);
}

void launcher::session::end_job(phase next, std::chrono::milliseconds allowed) {
  if (next <= phase_) return;
  phase_ = next;
  deadline_ = clock::now() + allowed;
  workers_.cancel_restarts();
  if (next == phase::terminated) workers_.signal_all(SIGTERM);
  // A suspended process gets the other signals only when it continues.
  if (next == phase::terminated) workers_.signal_all(SIGCONT);
  if (next == phase::killed) workers_.signal_all(SIGKILL);
}

void launcher::session::on_deadline() {
  deadline_.reset();
  switch (phase_) {
    case phase::running:
      return;
    case phase::stopping:
      output_.say("the job did not stop within " + config::to_text(options_.grace) +
                  " (--grace); killing it");
      return kill_stopping();
    case phase::told:
      return end_job(phase::terminated, options_.time_to_end);
    case phase::terminated:
      output_.say("some processes did not end on SIGTERM; killing them");
      return end_job(phase::killed, options_.time_to_die);
    case phase::killed:
      for (auto& worker : workers_)
        if (worker.process) abandon(worker);
  }
}

/// Stops waiting for a killed process that does not end, because it is blocked in the kernel.
void launcher::session::abandon(worker& abandoned) {
  auto line = "rank " + std::to_string(abandoned.rank) + " (pid " + std::to_string(abandoned.process->pid()) +
              ") was killed and has not ended within " + config::to_text(options_.time_to_die) +
              ": it is blocked in the kernel (a disk or network file system that does not answer), and the "
              "job ends without it";
  abandoned.process->abandon();
  abandoned.process.reset();
  abandoned.dead_by.reset();
  abandoned.kill_at.reset();
  if (phase_ <= phase::stopping) return fail(line, 1);
  outcome_.abandon();
  output_.say(line);
}

void launcher::session::on_worker_deadlines(worker& checked) {
  auto now = clock::now();
  if (!checked.process) checked.kill_at = checked.dead_by = {};
  if (checked.start_again_at && now >= *checked.start_again_at) workers_.restart(checked);
  if (checked.process && checked.kill_at && now >= *checked.kill_at && !checked.process->has_ended())
    kill_suspect(checked);
  if (checked.process && checked.dead_by && now >= *checked.dead_by && !checked.process->has_ended())
    abandon(checked);
}

// --- the loop

int launcher::session::poll_timeout_ms() const {
  auto next = workers_.next_deadline();
  if (deadline_ && (!next || *deadline_ < *next)) next = deadline_;
  if (!next) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void launcher::session::loop_once(signal_guard& signals) {
  poll_round round;
  for (auto& worker : workers_)
    if (worker.process)
      round.watch(worker.process->pidfd(), POLLIN, [this, &worker] { on_child_end(worker); });
  round.watch(posted_.fd(), POLLIN, [this] { posted_.run_all(); });
  round.watch(signals.fd(), POLLIN, [this, &signals] {
    if (auto number = signals.next()) on_signal(*number);
  });
  output_.watch(round);
  round.run(poll_timeout_ms());
  output_.drop_ended();
  if (adopts_processes_) reap_adopted([this](pid_t pid) { return workers_.is_alive(pid); });
  for (auto& worker : workers_) on_worker_deadlines(worker);
  if (deadline_ && clock::now() >= *deadline_) on_deadline();
}

void launcher::session::on_signal(int number) {
  if (number == SIGCHLD) return;  // it ends the wait: see loop_once
  // Before the next look at them: orphan_guard has stopped them with this process.
  if (number == SIGCONT) return workers_.signal_all(SIGCONT);
  if (stop_signal_) {
    auto since = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - stop_signalled_);
    if (!config::is_repeated_stop(number, since)) return;
    output_.say(signal_name(number) + " again: killing all processes");
    return kill_stopping();
  }
  stop_signal_ = number;
  stop_signalled_ = clock::now();
  if (phase_ == phase::told) return end_job(phase::terminated, options_.time_to_end);
  if (phase_ != phase::running) return;
  begin_stopping(number);
  auto members = agent_->stop_job(number);
  for (auto& worker : workers_)
    if (worker.process && !std::ranges::count(members, worker.rank)) worker.process->signal(number);
}

/// The agent notifies the members; a signal in addition would end members that do not handle it.
void launcher::session::begin_stopping(int signal) {
  if (phase_ != phase::running) return;
  stop_signal_ = signal;
  stop_signalled_ = clock::now();
  phase_ = phase::stopping;
  deadline_ = stop_signalled_ + options_.grace;
  output_.say(signal_name(signal) + ": the job saves its state and stops within " +
              config::to_text(options_.grace) +
              " (--grace); a further signal, a second or more later, kills it");
}

void launcher::session::kill_stopping() {
  outcome_.note_exit_code(128 + stop_signal_);
  end_job(phase::killed, options_.time_to_die);
}

/// A program that puts itself into the background, as setsid does with a process that leads its group, ends
/// at once, and nothing watches what it started. Of a job that ran, a program may leave a service behind.
void launcher::session::end_left_behind() {
  int num_left = kill_processes_of_job(job_id_);
  if (num_left == 0 || outcome_.exit_code() != 0 || stop_signal_) return;
  outcome_.fail(
      "the program ended before it joined the job and left " + std::to_string(num_left) +
          (num_left == 1 ? " process" : " processes") +
          " behind, now killed: expected a program that stays in the foreground (setsid --wait, not "
          "setsid)",
      bad_input_exit_code);
}

int launcher::session::finish() {
  agent_.reset();
  posted_.run_all();
  if (!had_view_) end_left_behind();
  output_.read_rest();
  for (const auto& [rank, cause] : lost_ranks_)
    output_.say(describe_loss({rank, cause}) + " at step " + std::to_string(step_at_loss_) +
                "; the job ended before it was restored");
  for (const auto& drill : options_.drills)
    output_.say(std::string("the drill ") + std::to_string(drill.rank) + "@" + std::to_string(drill.step) +
                " was not run: the job ended before");
  if (!outcome_.last_line().empty()) output_.say(outcome_.last_line());
  output_.flush();
  auto code = outcome_.exit_code();
  return code == 0 ? output_.exit_code() : code;
}

// --- callbacks of the agent, posted from its thread

cluster::agent_callbacks launcher::session::make_agent_callbacks() {
  cluster::agent_callbacks made;
  made.kill = [this](int rank, std::uint32_t incarnation, const std::string& cause) {
    posted_.post([this, rank, incarnation, cause] { on_kill(rank, incarnation, cause); });
  };
  made.on_view = [this](const cluster::membership_view&) { posted_.post([this] { had_view_ = true; }); };
  made.on_progress = [this](const cluster::job_progress& progress) {
    posted_.post([this, progress] { on_progress(progress); });
  };
  made.on_recovered = [this](const cluster::recovery_report& report) {
    posted_.post([this, report] { on_recovered(report); });
  };
  made.on_stop = [this](int signal) { posted_.post([this, signal] { begin_stopping(signal); }); };
  made.on_job_stopped = [this](int signal, const std::string& what) {
    posted_.post([this, signal, what] { on_job_stopped(signal, what); });
  };
  made.on_warning = [this](const std::string& what) { posted_.post([this, what] { output_.say(what); }); };
  made.on_job_failed = [this](const std::string& cause, failure_kind kind) {
    posted_.post([this, cause, kind] { on_job_failed(cause, kind); });
  };
  return made;
}

/// Peers notice the end of a process by its closed connections before it can be reaped. A process that is
/// ending by itself gets a moment to do so, so that its own cause is reported and not the suspicion.
void launcher::session::on_kill(int rank, std::uint32_t incarnation, const std::string& cause) {
  auto& worker = workers_.at(rank);
  if (!worker.process || worker.incarnation != incarnation || worker.process->has_ended()) return;
  if (worker.drilled_at) return;  // killed by a drill: it is ending
  worker.suspected_of = cause;
  worker.kill_at = clock::now() + time_to_die_alone;
}

void launcher::session::kill_suspect(worker& suspect) {
  suspect.kill_at.reset();
  output_.say("rank " + std::to_string(suspect.rank) + " (pid " + std::to_string(suspect.process->pid()) +
              ") is killed: " + suspect.suspected_of);
  suspect.kill_cause = suspect.suspected_of;
  suspect.dead_by = clock::now() + options_.time_to_die;
  suspect.process->signal(SIGKILL);
}

void launcher::session::on_progress(const cluster::job_progress& progress) {
  step_ = progress.step;
  newest_step_ = std::max(newest_step_, step_);
  generation_of_step_ = progress.generation;
  ++num_advances_;
  std::erase_if(options_.drills, [&](const drill& wanted) {
    bool due = step_ >= wanted.step && workers_.at(wanted.rank).process && phase_ == phase::running;
    if (due) run_drill(wanted);
    return due;
  });
  if (callbacks_.on_progress) callbacks_.on_progress(progress);
}

void launcher::session::kill(int rank) {
  if (rank < 0 || rank >= options_.num_processes)
    throw std::out_of_range("[launcher::kill] expected a rank of the job, got " + std::to_string(rank));
  posted_.post([this, rank] {
    if (workers_.at(rank).process && phase_ == phase::running) run_drill({rank, step_});
  });
}

void launcher::session::run_drill(const drill& wanted) {
  auto& worker = workers_.at(wanted.rank);
  output_.say(std::string("drill: killing rank ") + std::to_string(wanted.rank) + " (pid " +
              std::to_string(worker.process->pid()) + ") with SIGKILL at step " + std::to_string(step_));
  worker.drilled_at = clock::now();
  worker.process->signal(SIGKILL);
}

/// The agent reports the first loss, with its cause; this process has seen the end of every process.
std::vector<cluster::member_loss> launcher::session::losses_of(const cluster::recovery_report& report) const {
  auto lost = lost_ranks_;
  lost[report.loss.rank] = report.loss.cause;
  std::vector<cluster::member_loss> losses;
  for (const auto& [rank, cause] : lost) losses.push_back({rank, cause});
  return losses;
}

void launcher::session::on_recovered(const cluster::recovery_report& report) {
  auto step = report.loss.rank < 0 ? step_ : step_at_loss_;
  int kept = options_.num_processes - static_cast<int>(lost_ranks_.size());
  auto losses = losses_of(report);
  ++num_advances_;
  output_.say(recovery_line(report, losses, step, kept, generation_of_step_ == report.generation));
  if (options_.json) output_.add_result(recovery_json(report, losses, step, kept));
  lost_ranks_.clear();
  if (callbacks_.on_recovered) callbacks_.on_recovered(report);
}

/// A process that is stopped prints nothing that would explain why the others waited for it.
std::string launcher::session::stopped_processes() {
  std::string text;
  for (auto& worker : workers_)
    if (worker.process && worker.process->is_stopped())
      text += ". Rank " + std::to_string(worker.rank) + " (pid " + std::to_string(worker.process->pid()) +
              ") is stopped (SIGSTOP, SIGTSTP, a debugger)";
  return text;
}

void launcher::session::on_job_failed(const std::string& cause, failure_kind kind) {
  if (phase_ > phase::stopping) return;
  outcome_.fail("the job failed: " + cause + stopped_processes(), kind);
  end_job(phase::told, time_to_end_alone);
}

void launcher::session::on_job_stopped(int signal, const std::string& what) {
  if (phase_ > phase::stopping) return;
  outcome_.stop(signal, what, !had_view_);
  end_job(phase::told, had_view_ ? options_.time_to_end_stopped : options_.grace);
}

}  // namespace troupe
