#include "launch_session.hpp"

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include "recovery_text.hpp"
#include "troupe/cluster/job_secret.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// How long members that were told of the job's end may take to end by themselves, with their own exit codes.
constexpr auto time_to_end_alone = 1s;

/// A process that ends with this code would not do better the next time (bad_input).
constexpr int hopeless_exit_code = 2;

}  // namespace

launcher::session::session(launch_options options, launch_callbacks callbacks)
    : options_(std::move(options)), callbacks_(std::move(callbacks)), output_(options_) {
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
  of.process.emplace(child_spec{program_, options_.command, job_environment(job_, of.rank, of.incarnation)});
  of.drilled_at.reset();
  of.kill_cause.clear();
  output_.add(of.rank, of.incarnation, of.process->take_output(), of.process->take_errors());
  if (callbacks_.on_started) callbacks_.on_started(of.rank, of.incarnation, of.process->pid());
}

int launcher::session::num_alive() const {
  return static_cast<int>(
      std::ranges::count_if(workers_, [](const worker& w) { return w.process.has_value(); }));
}

void launcher::session::signal_all(int number) {
  for (auto& worker : workers_)
    if (worker.process) worker.process->signal(number);
}

void launcher::session::on_child_end(worker& of) {
  auto detected = clock::now();
  auto status = of.process->reap();
  // What the agent said before counts before: it may have ended the job, and the process because of that.
  told_.run_all();
  if (phase_ != phase::running) {
    on_failure_while_ending(of, status);
    of.process.reset();
  } else if (status.success()) {
    of.process.reset();
    agent_->process_exited(of.rank);
  } else {
    on_loss(of, status, detected);
  }
}

/// The process is gone, so the agent may raise the generation; the next incarnation starts while the others
/// stop.
void launcher::session::on_loss(worker& of, const exit_status& status, clock::time_point detected) {
  of.process.reset();
  auto cause = status.describe() + (of.kill_cause.empty() ? "" : " (" + of.kill_cause + ")");
  auto outcome = agent_->process_lost(of.rank, cause, detected, of.drilled_at);
  if (outcome == loss_outcome::had_left) {
    if (!exit_code_) exit_code_ = status.shell_code();
    return output_.say(describe_loss({of.rank, cause}) + " after it had left the job");
  }
  if (outcome == loss_outcome::not_needed) {
    // Killed, it is not missed; what it says by an exit code of its own is the user's to hear.
    if (!status.signal && !exit_code_) exit_code_ = status.shell_code();
    return output_.say(describe_loss({of.rank, cause}) + " when the job was done" +
                       (status.signal ? ", and is not missed" : ""));
  }
  if (outcome == loss_outcome::job_failed) {
    told_.run_all();
    return on_failure_while_ending(of, status);
  }
  if (status.code == hopeless_exit_code)
    return fail(of, cause + ", which starting it again would not cure", status.shell_code());
  if (restarts_ >= options_.max_restarts)
    return fail(
        of,
        cause + ", and no restarts are left (--max-restarts " + std::to_string(options_.max_restarts) + ")",
        status.shell_code());
  if (lost_ranks_.empty()) step_at_loss_ = step_;
  if (had_view_) lost_ranks_.insert(of.rank);
  ++restarts_;
  ++of.incarnation;
  start(of);
}

/// The others are ended too. What went wrong first is what the user wants to know.
void launcher::session::fail(const worker& of, const std::string& what, int exit_code) {
  auto line = std::string("rank ") + std::to_string(of.rank) + " failed first: " + what;
  agent_->fail_job(line);
  if (!exit_code_) exit_code_ = exit_code;
  failed_ = true;
  output_.say(line + ". Ending the job");
  end_job(phase::terminated, options_.grace);
}

void launcher::session::on_failure_while_ending(const worker& of, const exit_status& status) {
  // When the job has failed its processes end one by one: one that knows of bad input is the cause.
  bool is_cause = phase_ == phase::told && status.code == hopeless_exit_code;
  if (status.success() || (exit_code_ && !is_cause)) return;
  bool ended_by_us = phase_ == phase::terminated || phase_ == phase::killed;
  if (failed_ && ended_by_us && status.signal) return;
  exit_code_ = status.shell_code();
  if (phase_ == phase::interrupted)
    agent_->fail_job(describe_loss({of.rank, status.describe()}) + " at the user's wish");
}

void launcher::session::end_job(phase next, std::chrono::milliseconds allowed) {
  if (next <= phase_) return;
  phase_ = next;
  deadline_ = clock::now() + allowed;
  if (next == phase::terminated) signal_all(SIGTERM);
  // A stopped process gets the other signals only when it goes on.
  if (next == phase::terminated) signal_all(SIGCONT);
  if (next == phase::killed) signal_all(SIGKILL);
}

void launcher::session::on_deadline() {
  deadline_.reset();
  if (phase_ == phase::told) return end_job(phase::terminated, options_.grace);
  if (phase_ == phase::terminated) {
    output_.say("some processes did not end on SIGTERM; killing them");
    end_job(phase::killed, 0ms);
  }
}

// --- the loop

int launcher::session::poll_timeout_ms() const {
  if (!deadline_) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - clock::now());
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
  if (deadline_ && clock::now() >= *deadline_) on_deadline();
}

void launcher::session::on_signal(int number) {
  if (phase_ == phase::interrupted || phase_ == phase::terminated) {
    output_.say(signal_name(number) + " again: killing all processes");
    return end_job(phase::killed, 0ms);
  }
  output_.say(signal_name(number) +
              " goes to all processes; waiting for them to end (once more to kill them)");
  signal_all(number);
  if (phase_ < phase::interrupted) phase_ = phase::interrupted;
  deadline_.reset();
}

int launcher::session::finish() {
  agent_.reset();
  told_.run_all();
  output_.read_rest();
  for (const auto& drill : options_.drills)
    output_.say(std::string("the drill ") + std::to_string(drill.rank) + "@" + std::to_string(drill.step) +
                " was not run: the job ended before");
  output_.flush();
  if (failed_ && !exit_code_) return 1;
  return exit_code_.value_or(0);
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
  made.on_job_failed = [this](const std::string& cause) {
    told_.post([this, cause] { on_job_failed(cause); });
  };
  return made;
}

void launcher::session::on_kill(int rank, std::uint32_t incarnation, const std::string& cause) {
  auto& worker = workers_.at(rank);
  if (!worker.process || worker.incarnation != incarnation || worker.process->has_ended()) return;
  if (worker.drilled_at) return;  // it is dying already: what its peers noticed is the drill
  output_.say(std::string("rank ") + std::to_string(rank) + " (pid " + std::to_string(worker.process->pid()) +
              ") is killed: " + cause);
  worker.kill_cause = cause;
  worker.process->signal(SIGKILL);
}

void launcher::session::on_progress(const job_progress& progress) {
  step_ = progress.step;
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
  if (phase_ != phase::running) return;
  failed_ = true;
  output_.say("the job failed: " + cause);
  end_job(phase::told, time_to_end_alone);
}

}  // namespace troupe
