#include "launch_session.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <stdexcept>

#include "orphan_guard.hpp"
#include "recovery_text.hpp"
#include "troupe/cluster/job_secret.hpp"
#include "troupe/config/duration_text.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// How long members that were told of the job's end may take to end by themselves, with their own exit codes.
constexpr auto time_to_end_alone = 1s;
/// The same when the job has stopped: nothing waits for them.
constexpr auto time_to_end_stopped = 5s;
/// Between the suspicion that a process has gone and its being killed.
constexpr auto time_to_die_alone = 100ms;
/// Between attempts to start a process for which there was no descriptor, and how long until that fails.
constexpr auto time_between_starts = 500ms;

/// How long the agent waits for the end of the connection of a process that ended with an exit code of its
/// own: what it said may be on its way still.
constexpr auto time_to_hear_failure = 500ms;

/// What may be there again in a moment.
bool is_shortage(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == EAGAIN || error_number == ENOMEM;
}

}  // namespace

launcher::session::session(launch_options options, launch_callbacks callbacks)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      output_(options_),
      restarts_({options_.max_restarts, options_.restart_window}) {
  program_ = find_program(options_.command.front());
}

int launcher::session::run() {
  signal_guard signals;
  auto secret = make_job_secret();
  agent_ = make_agent({.address = options_.master_addr,
                       .port = options_.master_port,
                       .secret = secret,
                       .world_size = options_.num_processes,
                       .join_timeout = options_.join_timeout,
                       .suspect_after = options_.suspect_after,
                       .survives_losses = true,
                       .linger = 0ms},
                      make_agent_callbacks());
  auto id = make_job_secret();
  job_ = {to_hex(std::span(id).first(8)), to_hex(secret), options_.master_addr, agent_->port(),
          options_.num_processes};
  orphan_guard orphans(job_.job_id);
  workers_.resize(options_.num_processes);
  for (int rank = 0; rank < options_.num_processes; ++rank) {
    workers_[rank].rank = rank;
    start(workers_[rank]);
  }
  while (num_alive() > 0) loop_once(signals);
  return finish();
}

// --- processes

void launcher::session::start(worker& of) {
  of.process.emplace(child_spec{.program = program_,
                                .arguments = options_.command,
                                .environment = job_environment(job_, of.rank, of.incarnation),
                                .send_signal = options_.send_signal});
  of.drilled_at.reset();
  of.kill_at.reset();
  of.dead_by.reset();
  of.kill_cause.clear();
  output_.add(of.rank, of.incarnation, of.process->take_output(), of.process->take_errors());
  if (callbacks_.on_started) callbacks_.on_started(of.rank, of.incarnation, of.process->pid());
}

/// What is missing now may be there in a moment; the agent's join time-out ends it if it is not.
void launcher::session::start_again(worker& of) {
  bool is_first_try = !of.start_again_at;
  of.start_again_at.reset();
  if (phase_ > phase::stopping) return;
  try {
    start(of);
  } catch (const system_failure& shortage) {
    if (!is_shortage(shortage.error_number())) throw;
    of.start_again_at = clock::now() + time_between_starts;
    if (is_first_try)
      output_.say("rank " + std::to_string(of.rank) + " cannot be started again yet: " + shortage.what());
  }
}

int launcher::session::num_alive() const {
  return static_cast<int>(std::ranges::count_if(
      workers_, [](const worker& w) { return w.process.has_value() || w.start_again_at.has_value(); }));
}

void launcher::session::signal_all(int number) {
  for (auto& worker : workers_)
    if (worker.process) worker.process->signal(number);
}

void launcher::session::on_child_end(worker& of) {
  auto detected = clock::now();
  auto status = of.process->reap();
  of.dead_by.reset();
  of.kill_at.reset();
  // What the agent said before counts before: it may have ended the job, and the process because of that.
  told_.run_all();
  if (phase_ > phase::stopping) {
    on_end_while_ending(status);
    of.process.reset();
  } else if (status.success()) {
    of.process.reset();
    agent_->process_exited(of.rank);
  } else {
    on_loss(of, status, detected);
  }
}

/// The process is gone, so the agent may raise the generation; the next incarnation starts while the others
/// stop. While the job is to stop too: what is to be saved is in the others' memory.
void launcher::session::on_loss(worker& of, const exit_status& status, clock::time_point detected) {
  of.process.reset();
  auto cause = status.describe() + (of.kill_cause.empty() ? "" : " (" + of.kill_cause + ")");
  auto said = agent_->failure_of(of.rank, status.signal ? 0ms : time_to_hear_failure);
  if (!said.empty()) cause += ": " + said;
  auto outcome = agent_->process_lost(of.rank, cause, detected, of.drilled_at);
  if (outcome == loss_outcome::had_left) {
    outcome_.note_exit_code(status.shell_code());
    return output_.say(describe_loss({of.rank, cause}) + " after it had left the job");
  }
  if (outcome == loss_outcome::not_needed) {
    // Killed, it is not missed; what it says by an exit code of its own is the user's to hear.
    if (!status.signal) outcome_.note_exit_code(status.shell_code());
    return output_.say(describe_loss({of.rank, cause}) + " when the job was done" +
                       (status.signal ? ", and is not missed" : ""));
  }
  if (outcome == loss_outcome::job_failed) {
    told_.run_all();
    return on_end_while_ending(status);
  }
  auto first = "rank " + std::to_string(of.rank) + " failed first: " + cause;
  if (status.code == hopeless_exit_code)
    return fail(first + "; starting it again would not cure that", status.shell_code());
  auto refusal = restarts_.refusal({of.rank, cause, newest_step_, of.drilled_at.has_value()}, clock::now());
  if (refusal) return fail(first + ", and " + *refusal, status.shell_code());
  if (lost_ranks_.empty()) step_at_loss_ = step_;
  if (had_view_) lost_ranks_.insert(of.rank);
  ++of.incarnation;
  start_again(of);
}

/// The others are ended too. What went wrong first is what the user wants to know, and the last line says it.
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
  for (auto& worker : workers_) worker.start_again_at.reset();
  if (next == phase::terminated) signal_all(SIGTERM);
  // A stopped process gets the other signals only when it goes on.
  if (next == phase::terminated) signal_all(SIGCONT);
  if (next == phase::killed) signal_all(SIGKILL);
}

void launcher::session::on_deadline() {
  deadline_.reset();
  switch (phase_) {
    case phase::running:
      return;
    case phase::stopping:
      output_.say("the job did not stop within " + to_text(options_.grace) + " (--grace); killing it");
      return kill_stopping();
    case phase::told:
      return end_job(phase::terminated, options_.time_to_end);
    case phase::terminated:
      output_.say("some processes did not end on SIGTERM; killing them");
      return end_job(phase::killed, options_.time_to_die);
    case phase::killed:
      for (auto& worker : workers_)
        if (worker.process) leave_behind(worker);
  }
}

/// Its end is not waited for any longer; the kernel sees to it when it can.
void launcher::session::leave_behind(worker& of) {
  auto line = "rank " + std::to_string(of.rank) + " (pid " + std::to_string(of.process->pid()) +
              ") was killed and has not ended within " + to_text(options_.time_to_die) +
              ": it hangs in the kernel, as on a disk or a network file system that does not answer, and is "
              "left behind";
  of.process->abandon();
  of.process.reset();
  of.dead_by.reset();
  of.kill_at.reset();
  if (phase_ <= phase::stopping) return fail(line, 1);
  outcome_.leave_behind();
  output_.say(line);
}

void launcher::session::on_worker_deadlines(worker& of) {
  auto now = clock::now();
  if (!of.process) of.kill_at = of.dead_by = {};
  if (of.start_again_at && now >= *of.start_again_at) start_again(of);
  if (of.process && of.kill_at && now >= *of.kill_at && !of.process->has_ended()) kill_suspect(of);
  if (of.process && of.dead_by && now >= *of.dead_by && !of.process->has_ended()) leave_behind(of);
}

// --- the loop

std::optional<launcher::session::clock::time_point> launcher::session::next_deadline() const {
  auto next = deadline_;
  for (const auto& worker : workers_)
    for (const auto& one : {worker.kill_at, worker.dead_by, worker.start_again_at})
      if (one && (!next || *one < *next)) next = one;
  return next;
}

int launcher::session::poll_timeout_ms() const {
  auto next = next_deadline();
  if (!next) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void launcher::session::loop_once(signal_guard& signals) {
  poll_round round;
  for (auto& worker : workers_)
    if (worker.process)
      round.watch(worker.process->pidfd(), POLLIN, [this, &worker] { on_child_end(worker); });
  round.watch(told_.fd(), POLLIN, [this] { told_.run_all(); });
  round.watch(signals.fd(), POLLIN, [this, &signals] {
    if (auto number = signals.next()) on_signal(*number);
  });
  output_.watch(round);
  round.run(poll_timeout_ms());
  output_.drop_ended();
  for (auto& worker : workers_) on_worker_deadlines(worker);
  if (deadline_ && clock::now() >= *deadline_) on_deadline();
}

void launcher::session::on_signal(int number) {
  if (stop_signal_) {
    output_.say(signal_name(number) + " again: killing all processes");
    return kill_stopping();
  }
  stop_signal_ = number;
  if (phase_ == phase::told) return end_job(phase::terminated, options_.time_to_end);
  if (phase_ != phase::running) return;
  begin_stopping(number);
  auto members = agent_->stop_job(number);
  for (auto& worker : workers_)
    if (worker.process && !std::ranges::count(members, worker.rank)) worker.process->signal(number);
}

/// Members hear of it from the agent; a signal besides would end those that do not handle it.
void launcher::session::begin_stopping(int signal) {
  if (phase_ != phase::running) return;
  stop_signal_ = signal;
  phase_ = phase::stopping;
  deadline_ = clock::now() + options_.grace;
  output_.say(signal_name(signal) + ": the job saves what is done and stops, within " +
              to_text(options_.grace) + " (--grace); once more kills it");
}

void launcher::session::kill_stopping() {
  outcome_.note_exit_code(128 + stop_signal_);
  end_job(phase::killed, options_.time_to_die);
}

int launcher::session::finish() {
  agent_.reset();
  told_.run_all();
  output_.read_rest();
  for (const auto& drill : options_.drills)
    output_.say(std::string("the drill ") + std::to_string(drill.rank) + "@" + std::to_string(drill.step) +
                " was not run: the job ended before");
  if (!outcome_.last_line().empty()) output_.say(outcome_.last_line());
  output_.flush();
  return outcome_.exit_code();
}

// --- what the agent tells, from its thread

agent_callbacks launcher::session::make_agent_callbacks() {
  agent_callbacks made;
  made.kill = [this](int rank, std::uint32_t incarnation, const std::string& cause) {
    told_.post([this, rank, incarnation, cause] { on_kill(rank, incarnation, cause); });
  };
  made.on_view = [this](const membership_view&) { told_.post([this] { had_view_ = true; }); };
  made.on_progress = [this](const job_progress& progress) {
    told_.post([this, progress] { on_progress(progress); });
  };
  made.on_recovered = [this](const recovery_report& report) {
    told_.post([this, report] { on_recovered(report); });
  };
  made.on_stop = [this](int signal) { told_.post([this, signal] { begin_stopping(signal); }); };
  made.on_job_stopped = [this](int signal, const std::string& what) {
    told_.post([this, signal, what] { on_job_stopped(signal, what); });
  };
  made.on_warning = [this](const std::string& what) { told_.post([this, what] { output_.say(what); }); };
  made.on_job_failed = [this](const std::string& cause) {
    told_.post([this, cause] { on_job_failed(cause); });
  };
  return made;
}

/// Peers notice the end of a process before the kernel has taken it down: one that dies by itself is given
/// the moment to do so, and is lost of its own cause.
void launcher::session::on_kill(int rank, std::uint32_t incarnation, const std::string& cause) {
  auto& worker = workers_.at(rank);
  if (!worker.process || worker.incarnation != incarnation || worker.process->has_ended()) return;
  if (worker.drilled_at) return;  // it is dying already: what its peers noticed is the drill
  worker.suspected_of = cause;
  worker.kill_at = clock::now() + time_to_die_alone;
}

void launcher::session::kill_suspect(worker& of) {
  of.kill_at.reset();
  output_.say("rank " + std::to_string(of.rank) + " (pid " + std::to_string(of.process->pid()) +
              ") is killed: " + of.suspected_of);
  of.kill_cause = of.suspected_of;
  of.dead_by = clock::now() + options_.time_to_die;
  of.process->signal(SIGKILL);
}

void launcher::session::on_progress(const job_progress& progress) {
  step_ = progress.step;
  newest_step_ = std::max(newest_step_, step_);
  std::erase_if(options_.drills, [&](const drill& wanted) {
    bool due = step_ >= wanted.step && workers_[wanted.rank].process && phase_ == phase::running;
    if (due) run_drill(wanted);
    return due;
  });
  if (callbacks_.on_progress) callbacks_.on_progress(progress);
}

void launcher::session::kill(int rank) {
  if (rank < 0 || rank >= options_.num_processes)
    throw std::out_of_range("[launcher::kill] expected a rank of the job, got " + std::to_string(rank));
  told_.post([this, rank] {
    if (workers_.at(rank).process && phase_ == phase::running) run_drill({rank, step_});
  });
}

void launcher::session::run_drill(const drill& wanted) {
  auto& worker = workers_[wanted.rank];
  output_.say(std::string("drill: killing rank ") + std::to_string(wanted.rank) + " (pid " +
              std::to_string(worker.process->pid()) + ") with SIGKILL at step " + std::to_string(step_));
  worker.drilled_at = clock::now();
  worker.process->signal(SIGKILL);
}

void launcher::session::on_recovered(const recovery_report& report) {
  auto step = report.loss.rank < 0 ? step_ : step_at_loss_;
  int kept = options_.num_processes - static_cast<int>(lost_ranks_.size());
  output_.say(recovery_line(report, step, kept));
  if (options_.json) output_.add_result(recovery_json(report, step, kept));
  lost_ranks_.clear();
  if (callbacks_.on_recovered) callbacks_.on_recovered(report);
}

void launcher::session::on_job_failed(const std::string& cause) {
  if (phase_ > phase::stopping) return;
  outcome_.fail("the job failed: " + cause);
  end_job(phase::told, time_to_end_alone);
}

void launcher::session::on_job_stopped(int signal, const std::string& what) {
  if (phase_ > phase::stopping) return;
  outcome_.stop(signal, what, !had_view_);
  end_job(phase::told, had_view_ ? time_to_end_stopped : options_.grace);
}

}  // namespace troupe
