#include "worker_processes.hpp"

#include <algorithm>
#include <cerrno>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// The interval between attempts to start a process while descriptors or memory are exhausted.
constexpr auto restart_interval = std::chrono::milliseconds(500);

/// Whether the resource may be available again soon.
bool is_shortage(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == EAGAIN || error_number == ENOMEM;
}

}  // namespace

worker_processes::worker_processes(const launch_options& options, const launch_callbacks& callbacks,
                                   job_output& output)
    : options_(options),
      callbacks_(callbacks),
      output_(output),
      program_(find_program(options.command.front())) {}

void worker_processes::start_all(const job_identity& job) {
  job_ = job;
  workers_.resize(static_cast<std::size_t>(options_.num_processes));
  for (int rank = 0; rank < options_.num_processes; ++rank) {
    at(rank).rank = rank;
    start(at(rank));
  }
}

void worker_processes::start(worker& of) {
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

void worker_processes::restart(worker& of) {
  bool is_first_try = !of.start_again_at;
  of.start_again_at.reset();
  try {
    start(of);
  } catch (const system_failure& shortage) {
    if (!is_shortage(shortage.error_number())) throw;
    of.start_again_at = clock::now() + restart_interval;
    if (is_first_try)
      output_.say("rank " + std::to_string(of.rank) + " cannot be restarted yet: " + shortage.what());
  }
}

void worker_processes::cancel_restarts() {
  for (auto& worker : workers_) worker.start_again_at.reset();
}

void worker_processes::signal_all(int number) {
  for (auto& worker : workers_)
    if (worker.process) worker.process->signal(number);
}

int worker_processes::num_alive() const {
  return static_cast<int>(std::ranges::count_if(
      workers_, [](const worker& w) { return w.process.has_value() || w.start_again_at.has_value(); }));
}

std::optional<worker_processes::clock::time_point> worker_processes::next_deadline() const {
  std::optional<clock::time_point> next;
  for (const auto& worker : workers_)
    for (const auto& one : {worker.kill_at, worker.dead_by, worker.start_again_at})
      if (one && (!next || *one < *next)) next = one;
  return next;
}

}  // namespace troupe
