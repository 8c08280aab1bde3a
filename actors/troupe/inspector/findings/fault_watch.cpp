#include "troupe/inspector/findings/fault_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "troupe/inspector/findings/missing_members.hpp"
#include "troupe/inspector/views/names.hpp"

namespace troupe::actors::inspector {
namespace {

/// The inspector itself was suspended, or the machine was: what others did meanwhile is not known.
constexpr std::int64_t own_gap_ms = 1500;
/// A process that the kernel does not call suspended may be late for this long on a busy machine.
constexpr std::int64_t longest_silence_ms = 3000;
constexpr std::int64_t bad_frames_shown_ms = 10'000;

/// How long a condition must have been seen before it is a finding.
std::int64_t least_age_ms(finding_kind kind) {
  bool is_of_pace = kind == finding_kind::straggler || kind == finding_kind::unbalanced_partition;
  return is_of_pace ? 400 : 0;
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", seconds * 1000);
  return text;
}

std::string times(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f times", factor);
  return text;
}

/// What threads that wait for cores say about a slow device; empty: they hardly do.
std::string lacking_text(double threads) {
  constexpr double worth_saying = 0.1;
  if (threads < worth_saying) return {};
  char text[160];
  std::snprintf(text, sizeof text,
                ". %.1f threads of its process wait for a core on average: the machine has too few cores for "
                "what runs on it",
                threads);
  return text;
}

std::string seconds_text(std::int64_t ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
  return text;
}

void append(std::vector<finding>& to, std::vector<finding> more) {
  for (auto& one : more) to.push_back(std::move(one));
}

bool contains_stopped(const std::vector<finding>& all, int rank) {
  return std::ranges::any_of(
      all, [&](const finding& one) { return one.kind == finding_kind::stopped_process && one.rank == rank; });
}

/// Who waits for a process that is stopped says more about it; it is no fault of its own.
void join_stopped(std::vector<finding>& all) {
  for (auto& stopped : all) {
    if (stopped.kind != finding_kind::stopped_process) continue;
    for (const auto& one : all)
      if (one.kind == finding_kind::stuck_rank && one.rank == stopped.rank) stopped.text += "; " + one.text;
  }
  std::erase_if(all, [&](const finding& one) {
    return one.kind == finding_kind::stuck_rank && contains_stopped(all, one.rank);
  });
}

}  // namespace

const char* to_string(finding_kind kind) {
  switch (kind) {
    case finding_kind::stuck_rank:
      return "stuck_rank";
    case finding_kind::stopped_process:
      return "stopped_process";
    case finding_kind::straggler:
      return "straggler";
    case finding_kind::unbalanced_partition:
      return "unbalanced_partition";
    case finding_kind::missing_in_collective:
      return "missing_in_collective";
    case finding_kind::growing_mailbox:
      return "growing_mailbox";
    case finding_kind::link_errors:
      return "link_errors";
  }
  return "unknown";
}

std::vector<finding> fault_watch::observe(const job_view& view, std::int64_t now_ms) {
  bool was_away = observed_ms_ > 0 && now_ms - observed_ms_ > own_gap_ms;
  observed_ms_ = now_ms;
  if (was_away || generation_ != view.generation) {
    generation_ = view.generation;
    waits_ = {};
    pace_.reset();
    mailboxes_ = {};
    seen_.clear();
    quiet_until_ms_ = now_ms + (was_away ? own_gap_ms : 0);
  }
  waits_.observe(view);
  cores_.observe(view);
  mailboxes_.observe(view);
  std::vector<finding> all;
  if (now_ms >= quiet_until_ms_) {
    append(all, waits_.find(view, now_ms));
    std::erase_if(all, [this](const finding& one) { return lacked_cores(one); });
    append(all, stopped(view, now_ms));
    append(all, missing_members(view, now_ms));
    append(all, mailboxes_.find(view));
  }
  append(all, paces(view));
  append(all, links(view, now_ms));
  join_stopped(all);
  std::vector<finding> shown;
  for (auto& one : all) {
    auto before = std::ranges::find_if(seen_, [&](const finding& known) { return known.is_same_as(one); });
    one.seen_ms = now_ms;
    auto first_ms = now_ms;
    if (before != seen_.end()) {
      one.since_ms = std::min(one.since_ms, before->since_ms);
      first_ms = before->seen_ms;
    }
    auto kept = one;
    kept.seen_ms = first_ms;
    if (now_ms - first_ms >= least_age_ms(one.kind)) shown.push_back(one);
    one = std::move(kept);
  }
  seen_ = std::move(all);
  std::ranges::stable_sort(shown, {}, &finding::kind);
  return shown;
}

std::vector<finding> fault_watch::stopped(const job_view& view, std::int64_t now_ms) const {
  std::vector<finding> found;
  for (const auto& [rank, process] : view.processes) {
    auto silent_ms = now_ms - process.at_ms;
    bool is_silent = process.num_unanswered > 0 && silent_ms > longest_silence_ms;
    if (!is_silent && !(process.is_suspended && process.num_unanswered > 0)) continue;
    finding one;
    one.kind = finding_kind::stopped_process;
    one.rank = rank;
    one.actor = supervisor_id(process.report);
    one.since_ms = process.at_ms;
    one.text = "rank " + std::to_string(rank) + " (pid " + std::to_string(process.report.pid) + " on " +
               process.report.host + ") " +
               (process.is_suspended ? "is suspended, by SIGSTOP or a debugger: it has"
                                     : "does not answer: it has") +
               " not reported for " + seconds_text(silent_ms);
    found.push_back(std::move(one));
  }
  return found;
}

/// A device that stands since other programs have its cores is not stuck.
bool fault_watch::lacked_cores(const finding& stuck) const {
  return cores_.mean_since(stuck.rank, stuck.since_ms) >= 0.5;
}

std::vector<finding> fault_watch::paces(const job_view& view) const {
  std::vector<finding> found;
  if (!view.scheduler || !view.scheduler->running || view.scheduler->pause.is_paused != 0) return found;
  if (!ends_steps(view.scheduler->kind)) return found;
  const auto& hosts = view.scheduler->hosts;
  for (const auto& problem : pace_.find()) {
    finding one;
    auto device = static_cast<int>(problem.device);
    one.kind = problem.is_slower_than_before ? finding_kind::straggler : finding_kind::unbalanced_partition;
    one.device = device;
    if (device < hosts.num_devices()) one.rank = hosts.member_of({device});
    if (auto process = view.processes.find(one.rank); process != view.processes.end())
      one.actor = actor_id(process->second.report, {actor::child_role::device, device});
    one.since_ms = problem.since_ms;
    // Cores that its process has lacked more than usually may explain half of what it computes longer.
    auto longer = (problem.busy_s - problem.reference_s) * view.steps_per_s;
    auto lacking = cores_.mean_since(one.rank, one.since_ms) - cores_.usual(one.rank);
    bool lacked_cores = longer > 0 && lacking >= longer / 2;
    if (problem.is_slower_than_before && lacked_cores) continue;
    // Those that it lacks all the time are no fault of its device either, but no reason to say nothing.
    auto waiting = cores_.mean_since(one.rank, one.since_ms);
    auto factor = times(problem.busy_s / problem.reference_s);
    auto begin =
        "device " + std::to_string(device) + " computes " + milliseconds(problem.busy_s) + " a step, ";
    one.text = problem.is_slower_than_before
                   ? begin + factor + " as long as before (" + milliseconds(problem.reference_s) +
                         "), while the others have not changed so: its processor is slower or shared" +
                         lacking_text(waiting)
                   : begin + factor + " as long as the others on average (" +
                         milliseconds(problem.reference_s) +
                         "), since the job began: its stages cost more, or its processor is slower" +
                         lacking_text(waiting);
    found.push_back(std::move(one));
  }
  return found;
}

/// New ones only: a job may go on for days after one bad frame.
std::vector<finding> fault_watch::links(const job_view& view, std::int64_t now_ms) {
  std::vector<finding> found;
  for (const auto& [rank, process] : view.processes) {
    auto& known = bad_frames_[rank];
    if (known.incarnation != process.report.incarnation) known = {process.report.incarnation, 0, 0, 0};
    if (process.report.bad_frames > known.count) {
      known.newest = process.report.bad_frames - std::exchange(known.count, process.report.bad_frames);
      known.at_ms = now_ms;
    }
    if (known.at_ms == 0 || now_ms - known.at_ms > bad_frames_shown_ms) continue;
    finding one;
    one.kind = finding_kind::link_errors;
    one.rank = rank;
    one.actor = supervisor_id(process.report);
    one.since_ms = known.at_ms;
    one.text = "rank " + std::to_string(rank) + " has got " + std::to_string(known.newest) +
               " frames that failed a check (" + std::to_string(known.count) +
               " in all): forged, damaged or cut short";
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace troupe::actors::inspector
