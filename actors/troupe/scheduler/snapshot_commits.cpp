#include "troupe/scheduler/snapshot_commits.hpp"

#include <algorithm>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/recovery/replica.hpp"
#include "troupe/recovery/snapshot_cadence.hpp"

namespace troupe::actors::scheduler {

snapshot_commits::snapshot_commits(caf::event_based_actor* self, const scheduler_options& options,
                                   const job_state& job, std::function<void()> on_commit_over)
    : self_(self),
      options_(options),
      job_(job),
      on_commit_over_(std::move(on_commit_over)),
      disk_(self->clock().now()) {}

void snapshot_commits::set_inventory(const recovery::process_inventory& inventory) {
  held_.set(inventory);
  note_since_last(std::chrono::duration<double>(inventory.since_disk_s));
}

void snapshot_commits::begin(const recovery::restore_plan& plan, std::set<world_rank> keepers) {
  bool is_on_disk = !plan.sources.empty() && plan.sources.front().location == recovery::part_location::disk;
  if (is_on_disk) step_on_disk_ = plan.step;
  keepers_ = std::move(keepers);
  last_copy_due_ = plan.step;
  held_.roll_back(plan);
}

/// Processes hold no copies of the next job yet.
void snapshot_commits::forget_job() {
  told_committed_ = last_copy_due_ = 0;
  step_on_disk_.reset();
  interval_ = {};
  held_ = {};
  disk_ = disk_snapshots(now());
  skipping_ = false;
  saves_.refuse_all("the training that it was requested for is over");
}

std::vector<messages::due_copy> snapshot_commits::plan(std::uint64_t first, std::uint64_t last,
                                                       std::uint64_t complete, std::uint64_t end) {
  auto cadence = job_.job().snapshots.cadence;
  if (cadence.memory_every_steps == 0) cadence.memory_every_steps = interval_.steps();
  std::optional<std::uint64_t> announced;
  if (has_folder() && disk_.num_pending() == 0)
    announced = next_disk_step({complete, first - 1, last, interval_.step_time(), since_last()}, cadence);
  std::vector<messages::due_copy> copies;
  for (auto step = first; step <= last; ++step) {
    auto due = snapshot_due(step, cadence, announced);
    bool has_room = disk_.num_pending() < disk_snapshots::max_pending;
    bool is_wanted = due.disk || saves_.has_unplanned();
    due.disk = has_folder() && ((is_wanted && has_room) || step == end);
    due.memory = due.disk || step == end || step - last_copy_due_ >= cadence.memory_every_steps;
    if (due.memory) {
      copies.push_back({step, due.disk});
      held_.request(step);
      last_copy_due_ = step;
    }
    if (!due.disk) continue;
    disk_.announced(step, now());
    saves_.plan(step);
  }
  return copies;
}

std::uint64_t snapshot_commits::limit_by_disk(std::uint64_t granted, std::uint64_t until, std::uint64_t end) {
  if (!has_folder()) return until;
  note_skipping(now());
  if (skipping_) return until;
  auto room = disk_snapshots::max_pending - std::min(disk_snapshots::max_pending, disk_.num_pending());
  for (auto step = granted + 1; step <= until && step != end; ++step) {
    if (!snapshot_due(step, job_.job().snapshots.cadence, {}).disk) continue;
    if (room == 0) {
      check_disk_wait_later();
      return step - 1;
    }
    --room;
  }
  return until;
}

void snapshot_commits::note_skipping(clock::time_point now) {
  auto waited = disk_.waiting_for(now);
  if (disk_.num_pending() < disk_snapshots::max_pending) {
    skipping_ = false;
  } else if (waited >= options_.disk_wait_limit && !skipping_) {
    skipping_ = true;
    options_.log->warn(
        "training continues, snapshots are skipped: the disk has not written earlier ones for {:.1f} s",
        waited.count());
  }
}

void snapshot_commits::check_disk_wait_later() {
  if (std::exchange(check_disk_wait_pending_, true)) return;
  self_->delayed_send(self_, options_.disk_wait_limit, messages::check_disk_wait{});
}

void snapshot_commits::on_step_done(std::uint64_t step, double step_s, double copy_s) {
  interval_.observe(step_s, copy_s);
  disk_.copied(step, now());
}

// ---- what processes hold in memory

bool snapshot_commits::on_held(const messages::part_held& held) {
  if (held.generation != options_.generation) return false;
  held_.add(held.rank, held.part, job_.job().parts);
  tell_committed();
  return true;
}

/// Devices hear of it with their credits, and tell their stages and the peer copy store.
void snapshot_commits::tell_committed() {
  auto committed = committed_step();
  if (committed <= told_committed_) return;
  told_committed_ = committed;
  for (auto member : keepers_)
    self_->send(options_.supervisor_of(member), messages::copies_committed{options_.generation, committed});
}

void snapshot_commits::on_replicas_lost(const messages::replicas_lost& lost) {
  if (lost.generation == options_.generation && job_.known.job)
    held_.lose_replicas(lost.rank, job_.job().parts);
}

/// The peer still holds what it had sent, from the newest committed step on.
void snapshot_commits::on_replicas_wanted(const messages::replicas_wanted& wanted) {
  if (wanted.generation != options_.generation) return;
  for (auto owner : recovery::kept_by(options_.present, {wanted.rank}))
    self_->send(options_.supervisor_of(owner), messages::replicate_copies{options_.generation});
}

// ---- snapshots on disk

bool snapshot_commits::on_written(const messages::part_written& written) {
  if (written.generation != options_.generation) return false;
  if (committing_.contains(written.step)) return false;  // written twice, see on_writes_lost
  auto num_parts = std::ranges::count_if(job_.job().parts, layout::is_written);
  auto parts = disk_.add(written, static_cast<std::size_t>(num_parts));
  if (parts)
    commit(written.step, *std::move(parts));
  else if (!disk_.is_pending(written.step))
    on_failed(written.step, written.problem);
  return true;
}

void snapshot_commits::commit(std::uint64_t step, std::vector<snapshot::manifest_part> parts) {
  const auto& job = job_.job();
  snapshot::snapshot_manifest manifest;
  manifest.job_id = job.job_id;
  manifest.step = step;
  manifest.generation = options_.generation;
  manifest.num_stages = job_.num_stages();
  manifest.numeric_class = options_.numeric_class;
  manifest.identity = job.identity;
  manifest.settings = job.settings;
  manifest.data = job.data->at(step);
  manifest.parts = std::move(parts);
  for (auto& part : manifest.parts) part.content = job.part_of(part.part.cell).content;
  request_commit({std::move(manifest), options_.completed, options_.completed->size()});
}

/// If the snapshot writer ends before it answers, the one that replaces it gets the request again.
void snapshot_commits::request_commit(const messages::commit_snapshot& command) {
  auto step = command.manifest.step;
  committing_[step] = command;
  // Infinite, because the snapshot writer answers every request, also when the disk stalls.
  self_->request(job_.known.snapshot_writer, caf::infinite, command)
      .then(
          [this, step](const messages::snapshot_committed&) {
            options_.log->debug("snapshot on disk step={}", step);
            step_on_disk_ = std::max(step_on_disk_.value_or(0), step);
            saves_.on_disk(step);
            end_commit(step);
          },
          [this, step](const caf::error& problem) {
            if (actor::has_ended(problem)) return;
            options_.log->warn("snapshot not committed, training continues step={} reason=\"{}\"", step,
                               actor::describe(problem));
            on_failed(step, actor::describe(problem));
            end_commit(step);
          });
}

/// Of several commits the earliest comes first: a commit undoes newer snapshots.
void snapshot_commits::repeat_commits() {
  for (const auto& [step, command] : std::map(committing_)) request_commit(command);
}

void snapshot_commits::end_commit(std::uint64_t step) {
  committing_.erase(step);
  disk_.ended(step);
  on_commit_over_();
}

/// Tells all processes to delete the parts, which take space that the next snapshot needs.
void snapshot_commits::on_failed(std::uint64_t step, const std::string& why) {
  saves_.on_failed(step, why);
  for (const auto& supervisor : options_.supervisors)
    self_->send(supervisor, messages::snapshot_failed{options_.generation, step});
}

/// The stages write again what they still hold; for the rest they send part_written with a problem, and the
/// snapshot has failed.
void snapshot_commits::on_writes_lost(const messages::writes_lost& lost) {
  if (lost.generation != options_.generation || !job_.known.job || job_.hosts.empty()) return;
  std::vector<layout::part_id> parts;
  for (const auto& part : job_.job().parts)
    if (is_written(part) && host_of(job_.job().placed, job_.hosts, part.id) == world_rank{lost.rank})
      parts.push_back(part.id);
  for (auto step : disk_.steps_without(parts))
    self_->send(options_.supervisor_of(lost.rank), messages::write_copies{options_.generation, step});
}

std::uint64_t snapshot_commits::replays_from() const {
  const auto& cadence = job_.job().snapshots.cadence;
  bool writes = has_folder() && (cadence.disk_every_steps != 0 || cadence.disk_interval.count() > 0);
  return writes ? step_on_disk_.value_or(0) : committed_step();
}

std::optional<std::uint64_t> snapshot_commits::unsaved_step() const {
  auto last = held_.held_by_owners(job_.job().parts);
  if (!has_folder() || last <= step_on_disk_.value_or(0)) return {};
  return last;
}

void snapshot_commits::save(save_requests::promise answer) {
  saves_.add(std::move(answer), job_.position);
  refuse_saves_without_folder();
}

/// Before the job is known they wait for it.
void snapshot_commits::refuse_saves_without_folder() {
  if (job_.known.job && !has_folder())
    saves_.refuse_all("the job has no folder for snapshots: start it with --snapshot-dir FOLDER");
}

/// Copies of the newest step may still be on their way.
void snapshot_commits::save_held() {
  if (!saves_.has_unplanned() || is_uncommitted(job_.position)) return;
  auto last = unsaved_step();
  if (!last) {
    if (step_on_disk_) {
      saves_.plan(*step_on_disk_);
      saves_.on_disk(*step_on_disk_);
    } else {
      saves_.refuse_all("no step is done whose state could be written: try again after the first one");
    }
    return;
  }
  saves_.plan(*last);
  if (!disk_.is_pending(*last)) write(*last);
}

void snapshot_commits::write(std::uint64_t step) {
  disk_.announced(step, now());
  for (const auto& supervisor : options_.supervisors)
    self_->send(supervisor, messages::write_copies{options_.generation, step});
}

}  // namespace troupe::actors::scheduler
