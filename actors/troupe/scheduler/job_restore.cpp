#include "troupe/scheduler/job_restore.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/recovery/holdings.hpp"
#include "troupe/snapshot/manifest.hpp"

namespace troupe::actors::scheduler {
namespace {

/// Time since it was written; 0 if unknown or in the future (clocks differ).
std::chrono::duration<double> age_of(const snapshot::snapshot_manifest& manifest) {
  using std::chrono::seconds;
  auto written = time_written(manifest);
  if (!written) return seconds(0);
  auto now = std::chrono::floor<seconds>(std::chrono::system_clock::now());
  return std::max(seconds(0), now - *written);
}

}  // namespace

job_restore::job_restore(caf::event_based_actor* self, const scheduler_options& options, job_state& job,
                         snapshot_commits& commits, job_ending& ending, hooks given)
    : self_(self),
      options_(options),
      job_(job),
      commits_(commits),
      ending_(ending),
      hooks_(std::move(given)),
      process_restored_(static_cast<std::size_t>(options.world_size)) {}

void job_restore::forget_job() {
  process_restored_.assign(process_restored_.size(), false);
  metrics_.clear();
  on_disk_.reset();
  recorded_.reset();
}

/// Which step memory has does not depend on the members' devices, so it is looked up before these are
/// assigned.
void job_restore::begin() {
  const auto& placed = job().placed;
  const auto& parts = job().parts;
  auto inventories = commits_.inventories();
  const auto& before = newest_hosting(inventories, job().home);
  auto step = choose_restore(inventories, parts, placed, before).step;
  job_.hosts = assign(placed, options_.present, holdings_of(inventories, parts, placed, step), before);
  auto plan = choose_restore(inventories, parts, placed, job_.hosts);
  if (plan.from_scratch)
    restore_from_disk_or_scratch();
  else
    restore(plan);
}

/// Members that host no device, or hold copies of a part whose cell another member hosts from now on: no
/// device of theirs tells all that hold copies what is committed.
std::set<world_rank> job_restore::keepers_without_device() const {
  std::set<world_rank> found;
  for (const auto& one : options_.present.members)
    if (job_.hosts.devices_of(one.rank).empty()) found.insert(one.rank);
  for (const auto& process : commits_.inventories())
    for (const auto& part : process.parts)
      if (part.location == recovery::part_location::own_memory &&
          job().placed.device_of_cell().contains(part.part.cell) &&
          host_of(job().placed, job_.hosts, part.part) != process.rank)
        found.insert(process.rank);
  return found;
}

void job_restore::restore_from_disk_or_scratch() {
  // A job that starts uses begin_with, which was found before; the disk is searched only after losses.
  if (on_disk_) return restore_from(*on_disk_);
  if (options_.generation == 1) return job().begin_with ? use(*job().begin_with) : restore({});
  if (job().snapshots.folder.empty()) return restart_from_scratch();
  search_disk();
}

void job_restore::search_disk() {
  job_.now = job_state::phase::finding;
  // Infinite, because the snapshot writer answers every request; large snapshots may take long.
  self_->request(job_.known.snapshot_writer, caf::infinite, messages::find_on_disk{})
      .then([this](const messages::found_on_disk& found) { on_found(found); },
            [this](const caf::error& problem) {
              if (actor::has_ended(problem)) return;  // repeat_requests repeats the request
              ending_.fail("snapshots on disk cannot be read: " + actor::describe(problem));
            });
}

/// No copy is left. Starts from the initial weights if no trained step is lost by that, or if on_lost_state
/// is restart; else fails.
void job_restore::restart_from_scratch() {
  auto lost = job().trained_before ? std::uint64_t{1} : 0;
  for (const auto& process : commits_.inventories()) lost = std::max(lost, process.committed_step);
  if (lost == 0) return restore({});
  auto what =
      "the trained state (of step " + std::to_string(lost) +
      " or later) is lost: processes that keep each other's copies were lost at once, and no snapshot is "
      "on disk";
  if (job().on_lost_state == job::lost_state_policy::stop)
    return ending_.fail(what +
                        ". With --snapshot-dir FOLDER a job continues from its newest snapshot; with "
                        "--on-lost-state restart it restarts at step 0");
  options_.log->warn("training restarts at step 0: {}", what);
  restore({});
}

void job_restore::on_found(const messages::found_on_disk& found) {
  if (!found.manifest) {
    if (!found.unusable.empty()) {
      std::string named;
      for (const auto& one : found.unusable) named += "; " + one;
      return ending_.fail("no snapshot in " + job().snapshots.folder.string() + " can be used" + named,
                          failure_kind::bad_input);
    }
    options_.log->warn("no snapshot on disk yet, starting from the initial weights folder=\"{}\"",
                       job().snapshots.folder.string());
    return restore({});
  }
  if (auto problem = numeric_class_problem(*found.manifest, options_.numeric_class); !problem.empty())
    return hooks_.refuse(problem);
  if (auto other = snapshot::identity_differences(job().identity, found.manifest->identity); !other.empty())
    return ending_.fail("the snapshot of step " + std::to_string(found.manifest->step) +
                            " belongs to another job: " + other +
                            ". Use the same options, or another --snapshot-dir",
                        failure_kind::bad_input);
  use(*found.manifest);
}

/// Reads the results of calls that were over when the snapshot was written: the job's own, after the loss of
/// all processes, or those of the job from which this one resumes.
void job_restore::use(const snapshot::snapshot_manifest& manifest) {
  on_disk_ = manifest;
  bool is_own = manifest.job_id == job().job_id;
  if (is_own && !manifest.calls)
    return ending_.fail("the snapshot of step " + std::to_string(manifest.step) +
                            " lacks the results of this job's calls: an earlier version of Troupe wrote it. "
                            "Start the job again with --resume",
                        failure_kind::bad_input);
  recorded_ = is_own ? options_.completed : std::make_shared<job::call_log>();
  if (is_own || (manifest.calls && manifest.calls_can_be_repeated)) return read_results();
  restore_from(manifest);
}

void job_restore::read_results() {
  job_.now = job_state::phase::finding;
  self_
      ->request(job_.known.snapshot_writer, caf::infinite,
                troupe::actors::messages::read_results{*on_disk_, recorded_})
      .then([this](const messages::results_read&) { restore_from(*on_disk_); },
            [this](const caf::error& problem) {
              if (actor::has_ended(problem)) return;  // repeat_requests repeats the request
              ending_.fail("snapshots on disk cannot be read: " + actor::describe(problem));
            });
}

/// Calls whose results are known get these; restores the state for the first other one.
void job_restore::restore_from(const snapshot::snapshot_manifest& manifest) {
  bool is_own = manifest.job_id == job().job_id;
  if (is_own) {
    // No process knows when the last snapshot was written, so its age counts; otherwise losses of all
    // processes more frequent than the interval would prevent all snapshots.
    commits_.note_since_last(std::min(age_of(manifest), job().snapshots.cadence.disk_interval));
  }
  job_.now = job_state::phase::gathering;
  if (is_own ? hooks_.catch_up() : hooks_.repeat(*recorded_, manifest.step)) return;
  recovery::restore_plan plan{manifest.step, false, {}};
  for (const auto& part : job().parts)
    plan.sources.push_back(
        {part.id, host_of(job().placed, job_.hosts, part.id), recovery::part_location::disk});
  restore(plan);
}

void job_restore::restore(const recovery::restore_plan& plan) {
  job_.now = job_state::phase::restoring;
  job_.position = plan.step;
  options_.log->info("restoring generation={} step={} from_scratch={}", options_.generation, plan.step,
                     plan.from_scratch);
  for (const auto& supervisor : options_.supervisors)
    self_->send(supervisor, messages::restore_command{options_.generation, plan,
                                                      commits_.since_last().count(), job_.hosts});
  commits_.begin(plan, keepers_without_device());
}

bool job_restore::on_restored(const messages::process_restored& restored) {
  if (restored.generation != options_.generation || job_.now != job_state::phase::restoring) return false;
  if (has_restored(restored.rank)) return false;
  process_restored_.at(static_cast<std::size_t>(restored.rank)) = true;
  metrics_.insert(restored.metrics.begin(), restored.metrics.end());
  if (!std::ranges::all_of(process_restored_, std::identity())) return false;
  for (const auto& [replica, metrics] : metrics_) job_.metrics += metrics;
  job_.is_restored = true;
  return true;
}

void job_restore::repeat_requests() {
  if (job_.now != job_state::phase::finding) return;
  on_disk_ ? read_results() : search_disk();
}

}  // namespace troupe::actors::scheduler
