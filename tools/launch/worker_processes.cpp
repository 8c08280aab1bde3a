#include "worker_processes.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/trace/event_segment.hpp"

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

/// A job also runs without: descriptors may have run out.
void worker_processes::make_events(worker& owner) {
  owner.events.reset();
  if (options_.events_per_thread == 0) return;
  trace::event_segment_size size;
  size.events_per_ring = static_cast<std::uint32_t>(options_.events_per_thread);
  try {
    owner.events = trace::event_segment::make_file(size, owner.rank, owner.incarnation);
  } catch (const system_failure& problem) {
    if (std::exchange(has_told_no_events_, true)) return;
    output_.say("the events of some processes are lost with them: " + std::string(problem.what()) +
                ". If descriptors have run out, raise ulimit -n");
  }
}

void worker_processes::write_events(const worker& owner) {
  if (options_.log_dir.empty() || !owner.events) return;
  auto file = options_.log_dir / (std::string("events-") + std::to_string(owner.rank) + "." +
                                  std::to_string(owner.incarnation) + ".bin");
  try {
    auto left = trace::read_events(owner.events.get());
    if (left.pid == 0) return;
    troupe::trace::write_events(left, file);
    output_.say("the last events of rank " + std::to_string(owner.rank) + " are in " + file.string() +
                " (troupe events prints them)");
  } catch (const std::exception& problem) {
    output_.say("the last events of rank " + std::to_string(owner.rank) + " are lost: " + problem.what());
  }
}

void worker_processes::start(worker& started) {
  make_events(started);
  started.process.emplace(child_spec{
      .program = program_,
      .arguments = options_.command,
      .environment = job_environment(job_, {started.rank, started.incarnation, started.events.get()}),
      .send_signal = options_.send_signal,
      .inherited = started.events.get()});
  started.drilled_at.reset();
  started.kill_at.reset();
  started.dead_by.reset();
  started.kill_cause.clear();
  output_.add(started.rank, started.incarnation, started.process->take_output(),
              started.process->take_errors());
  if (callbacks_.on_started) callbacks_.on_started(started.rank, started.incarnation, started.process->pid());
}

void worker_processes::restart(worker& restarted) {
  bool is_first_try = !restarted.start_again_at;
  restarted.start_again_at.reset();
  try {
    start(restarted);
  } catch (const system_failure& shortage) {
    if (!is_shortage(shortage.error_number())) throw;
    restarted.start_again_at = clock::now() + restart_interval;
    if (is_first_try)
      output_.say("rank " + std::to_string(restarted.rank) + " cannot be restarted yet: " + shortage.what());
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

bool worker_processes::is_alive(pid_t pid) const {
  return std::ranges::any_of(workers_,
                             [pid](const worker& w) { return w.process && w.process->pid() == pid; });
}

std::optional<worker_processes::clock::time_point> worker_processes::next_deadline() const {
  std::optional<clock::time_point> next;
  for (const auto& worker : workers_)
    for (const auto& one : {worker.kill_at, worker.dead_by, worker.start_again_at})
      if (one && (!next || *one < *next)) next = one;
  return next;
}

}  // namespace troupe
