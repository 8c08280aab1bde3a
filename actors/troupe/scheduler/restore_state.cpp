// scheduler_state: decides which step all nodes restore, and from where (memory, disk, scratch).
#include <algorithm>
#include <functional>

#include "troupe/actor/actor_error.hpp"
#include "troupe/disk_writer/messages.hpp"
#include "troupe/recovery/holdings.hpp"
#include "troupe/recovery/restore_plan.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"
#include "troupe/snapshot/numeric_class_problem.hpp"

namespace troupe {
namespace {

/// Time since it was written; 0 if unknown or in the future (clocks differ).
std::chrono::duration<double> age_of(const snapshot_manifest& manifest) {
  using std::chrono::seconds;
  auto written = time_written(manifest);
  if (!written) return seconds(0);
  auto now = std::chrono::floor<seconds>(std::chrono::system_clock::now());
  return std::max(seconds(0), now - *written);
}

}  // namespace

/// Devices go to the members of the view, starting from where they were, and these to the newest step that
/// memory has. Which step that is does not depend on the members' devices, so it is looked up before these
/// are assigned.
void scheduler_state::place_and_restore() {
  const auto& placed = job().placed;
  const auto& parts = job().parts;
  auto inventories = held_.inventories();
  const auto& before = newest_hosting(inventories, job().home);
  auto step = choose_restore(inventories, parts, placed, before).step;
  hosts_ = assign(placed, options_.present, holdings_of(inventories, parts, placed, step), before);
  to_tell_ = keepers_without_device();
  auto plan = choose_restore(inventories, parts, placed, hosts_);
  if (plan.from_scratch)
    restore_from_disk_or_scratch();
  else
    restore(plan);
}

/// Members that host no device, or hold copies of a part whose cell another member hosts from now on: no
/// device of theirs tells all that hold copies what is committed.
std::set<member_id> scheduler_state::keepers_without_device() const {
  std::set<member_id> found;
  for (const auto& one : options_.present.members)
    if (hosts_.devices_of(one.id).empty()) found.insert(one.id);
  for (const auto& node : held_.inventories())
    for (const auto& part : node.parts)
      if (part.location == part_location::own_memory &&
          job().placed.device_of_cell().contains(part.part.of) &&
          host_of(job().placed, hosts_, part.part.of) != member_id{node.rank})
        found.insert({node.rank});
  return found;
}

void scheduler_state::restore_from_disk_or_scratch() {
  // A job that starts uses begin_with, which was found before; the disk is searched only after losses.
  if (options_.generation == 1) return job().begin_with ? restore_from(*job().begin_with) : restore({});
  if (job().snapshots.folder.empty()) return restart_from_scratch();
  if (on_disk_) return restore_from(*on_disk_);
  search_disk();
}

void scheduler_state::search_disk() {
  phase_ = phase::finding;
  // Infinite, because the disk writer answers every request; large snapshots may take long.
  self_->request(known_.disk_writer, caf::infinite, find_on_disk{})
      .then([this](const found_on_disk& found) { on_found(found); },
            [this](const caf::error& problem) {
              if (has_ended(problem)) return;  // on_disk_writer_replaced repeats the request
              fail("snapshots on disk cannot be read: " + describe(problem));
            });
}

/// No copy is left. Starts from the initial weights if no trained step is lost by that, or if on_lost_state
/// is restart; else fails.
void scheduler_state::restart_from_scratch() {
  auto lost = job().trained_before ? std::uint64_t{1} : 0;
  for (const auto& node : held_.inventories()) lost = std::max(lost, node.committed_step);
  if (lost == 0) return restore({});
  auto what =
      "the trained state (of step " + std::to_string(lost) +
      " or later) is lost: processes that keep each other's copies were lost at once, and no snapshot is "
      "on disk";
  if (job().on_lost_state == lost_state_policy::stop)
    return fail(what +
                ". With --snapshot-dir FOLDER a job continues from its newest snapshot; with "
                "--on-lost-state restart it restarts at step 0");
  options_.log->warn("training restarts at step 0: {}", what);
  restore({});
}

void scheduler_state::on_found(const found_on_disk& found) {
  if (!found.manifest) {
    if (!found.unusable.empty()) {
      std::string named;
      for (const auto& one : found.unusable) named += "; " + one;
      return fail("no snapshot in " + job().snapshots.folder.string() + " can be used" + named);
    }
    options_.log->warn("no snapshot on disk yet, starting from the initial weights folder=\"{}\"",
                       job().snapshots.folder.string());
    return restore({});
  }
  if (auto problem = numeric_class_problem(*found.manifest, options_.numeric_class); !problem.empty())
    return refuse_call(problem);
  if (auto other = identity_differences(job().identity, found.manifest->identity); !other.empty())
    return fail("the snapshot of step " + std::to_string(found.manifest->step) +
                " belongs to another job: " + other + ". Use the same options, or another --snapshot-dir");
  on_disk_ = found.manifest;
  if (on_disk_->job_id != job().job_id) return restore_from(*on_disk_);
  read_results_on_disk();
}

/// After the loss of all processes: reads the results of calls that were over when the snapshot was written.
void scheduler_state::read_results_on_disk() {
  if (!on_disk_->calls)
    return fail("the snapshot of step " + std::to_string(on_disk_->step) +
                " lacks the results of this job's calls: an earlier version of Troupe wrote it. "
                "Start the job again with --resume");
  self_->request(known_.disk_writer, caf::infinite, read_results{*on_disk_, options_.completed})
      .then([this](const results_read&) { restore_from(*on_disk_); },
            [this](const caf::error& problem) {
              if (has_ended(problem)) return;  // on_disk_writer_replaced repeats the request
              fail("snapshots on disk cannot be read: " + describe(problem));
            });
}

/// Sends known results to nodes that repeat calls; restores the state when all have reached the current call.
void scheduler_state::restore_from(const snapshot_manifest& manifest) {
  if (manifest.job_id == job().job_id) {
    // No node knows when the last snapshot was written, so its age counts; otherwise losses of all processes
    // more frequent than the interval would prevent all snapshots.
    disk_.note_since_last(std::min(age_of(manifest), job().snapshots.cadence.disk_interval), now());
  }
  if (request().index < num_completed()) {
    phase_ = phase::gathering;
    return catch_up();
  }
  restore_plan plan{manifest.step, false, {}};
  for (const auto& part : job().parts)
    plan.sources.push_back({part.id, host_of(job().placed, hosts_, part.id.of).rank, part_location::disk});
  restore(plan);
}

void scheduler_state::restore(const restore_plan& plan) {
  phase_ = phase::restoring;
  position_ = plan.step;
  bool is_on_disk = !plan.sources.empty() && plan.sources.front().location == part_location::disk;
  if (is_on_disk) step_on_disk_ = plan.step;
  options_.log->info("restoring generation={} step={} from_scratch={}", options_.generation, plan.step,
                     plan.from_scratch);
  for (const auto& supervisor : options_.supervisors)
    self_->send(supervisor,
                restore_order{options_.generation, plan, disk_.since_last(now()).count(), hosts_});
  held_.roll_back(plan);
}

void scheduler_state::on_restored(const node_restored& restored) {
  if (restored.generation != options_.generation || phase_ != phase::restoring) return;
  if (node_restored_.at(static_cast<std::size_t>(restored.rank))) return;
  node_restored_[static_cast<std::size_t>(restored.rank)] = true;
  metrics_ += restored.metrics;
  if (!std::ranges::all_of(node_restored_, std::identity())) return;
  restored_ = true;
  options_.members->report(options_.generation, recovery_phase::restored);
  if (interrupted_step_ <= position_) interrupted_step_ = 0;
  continue_call();
  options_.members->report(options_.generation, recovery_phase::rebuilt);
  if (interrupted_step_ == 0) options_.members->report(options_.generation, recovery_phase::replayed);
}

}  // namespace troupe
