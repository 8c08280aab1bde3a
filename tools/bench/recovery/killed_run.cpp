#include "bench/recovery/killed_run.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

namespace troupe::bench {
namespace {

using clock = std::chrono::steady_clock;

/// A step that took longer was a pause, not a measure for where in the next one to kill.
constexpr clock::duration longest_delay = std::chrono::milliseconds(100);

}  // namespace

std::vector<planned_kill> plan_kills(const kill_plan_options& options) {
  // Its words are the standard's; the standard's distributions are each library's own.
  std::mt19937_64 words(options.seed);
  auto choices = options.most_steps_between - options.least_steps_between + 1;
  std::vector<planned_kill> planned;
  std::uint64_t step = 0;
  for (int i = 0; i < options.num_kills; ++i) {
    step += options.least_steps_between + words() % choices;
    auto rank = options.ranks[static_cast<std::size_t>(i) % options.ranks.size()];
    planned.push_back({rank, step, static_cast<double>(words() % 1000) / 1000});
  }
  return planned;
}

killed_run::killed_run(std::vector<std::string> command, int num_processes, std::vector<planned_kill> kills)
    : planned_(std::move(kills)),
      job_(std::move(command), num_processes, static_cast<int>(planned_.size()) + 1,
           {.on_started = [this](int, std::uint32_t, pid_t) { ++outcome_.num_started; },
            .on_progress = [this](const cluster::job_progress& progress) { on_progress(progress); },
            .on_recovered = [this](const cluster::recovery_report& report) { on_recovered(report); }}) {}

run_outcome killed_run::run() {
  auto begin = clock::now();
  last_progress_ = begin;
  auto printed = job_.run();
  outcome_.seconds = std::chrono::duration<double>(clock::now() - begin).count();
  for (const auto& line : printed) {
    if (line.value("event", "") == "done") outcome_.weights_sha256 = line.value("weights_sha256", "");
    if (line.value("event", "") == "groups") outcome_.groups.push_back(line);
  }
  if (outcome_.weights_sha256.empty())
    throw std::runtime_error(
        "the measured program printed no {\"event\":\"done\",\"weights_sha256\":..}: does it take --json?");
  if (pending_) outcome_.kills.pop_back();
  return std::move(outcome_);
}

void killed_run::on_progress(const cluster::job_progress& progress) {
  if (progress.total_steps == 0) return;
  if (progress.generation > generation_) {
    auto restored = progress.step - 1;
    if (!outcome_.kills.empty())
      outcome_.kills.back().rolled_back = newest_step_ > restored ? newest_step_ - restored : 0;
    generation_ = progress.generation;
  }
  newest_step_ = progress.step;
  auto now = clock::now();
  auto step_time = now - std::exchange(last_progress_, now);
  if (!pending_ && outcome_.kills.size() < planned_.size() &&
      newest_step_ >= planned_[outcome_.kills.size()].step)
    kill_next(step_time);
}

void killed_run::kill_next(clock::duration step_time) {
  pending_ = true;
  const auto& next = planned_[outcome_.kills.size()];
  outcome_.kills.push_back({next.rank, newest_step_, 0, {}});
  auto delay =
      std::chrono::duration_cast<clock::duration>(next.into_next_step * std::min(step_time, longest_delay));
  killer_ = std::jthread([this, delay, rank = next.rank] {
    std::this_thread::sleep_for(delay);
    job_.kill(rank);
  });
}

void killed_run::on_recovered(const cluster::recovery_report& report) {
  if (!pending_) {
    ++outcome_.num_unplanned;
    return;
  }
  pending_ = false;
  outcome_.kills.back().report = report;
}

}  // namespace troupe::bench
