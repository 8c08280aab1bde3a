#include "troupe/scheduler/scheduler_actor.hpp"

#include <algorithm>

#include "troupe/actor/failure.hpp"
#include "troupe/program/packed_state.hpp"
#include "troupe/recovery/restore_plan.hpp"
#include "troupe/recovery/retention.hpp"
#include "troupe/snapshot/weights_hash.hpp"
#include "troupe/snapshotter/messages.hpp"

namespace troupe {
namespace {

/// Snapshots on their way to disk at once; while so many are, no further steps are granted.
constexpr std::size_t most_pending_on_disk = 2;
/// Windows of copies in memory that are not committed yet, above which no further steps are granted: each is
/// a whole state, here and on its way to the peer.
constexpr std::uint64_t most_uncommitted_windows = 2;

}  // namespace

scheduler_state::scheduler_state(caf::event_based_actor* self, scheduler_options options)
    : self_(self),
      options_(std::move(options)),
      node_restored_(static_cast<std::size_t>(options_.world_size)),
      last_finished_(std::chrono::steady_clock::now()) {}

caf::behavior scheduler_state::make_behavior() {
  return {[this](const job_known& known) { known_ = known; },
          [this](const call_entered& entered) { on_entered(entered); },
          [this](const node_restored& restored) { on_restored(restored); },
          [this](const step_done& done) { on_step_done(done); },
          [this](const result_seen& seen) { on_seen(seen); },
          [this](const enough_waited& waited) {
            if (!not_seen_.empty() && waited.index + 1 == completed_.size()) tell_own_node(waited.index);
          },
          [this](const part_held& held) { on_held(held); },
          [this](const part_written& written) { on_written(written); },
          [this](const parameters_arrived& arrived) { on_parameters(arrived); }};
}

// ---- calls

void scheduler_state::on_entered(const call_entered& entered) {
  if (entered.generation != options_.generation) return;
  auto rank = entered.inventory.rank;
  entered_[rank] = entered;
  if (!restored_) {
    inventories_[rank] = entered.inventory;
    interrupted_step_ = std::max(interrupted_step_, entered.interrupted_step);
  }
  if (entered.completed.size() > completed_.size()) completed_ = entered.completed;
  for (const auto& [other, theirs] : entered_) catch_up(theirs);
  if (phase_ == phase::gathering && everyone_entered()) begin_call();
}

/// A node that missed the end of a call, because it was lost or a failure came in between, gets the result
/// again.
void scheduler_state::catch_up(const call_entered& behind) {
  if (behind.request.index < completed_.size())
    self_->send(options_.supervisors[static_cast<std::size_t>(behind.inventory.rank)],
                call_finished{options_.generation, completed_[behind.request.index]});
}

bool scheduler_state::everyone_entered() const {
  return entered_.size() == static_cast<std::size_t>(options_.world_size) &&
         std::ranges::all_of(
             entered_, [this](const auto& one) { return one.second.request.index == completed_.size(); });
}

bool scheduler_state::requests_agree() const {
  return std::ranges::all_of(entered_, [this](const auto& one) { return one.second.request == request(); });
}

void scheduler_state::begin_call() {
  if (!requests_agree()) {
    std::string what =
        "the processes do different things, every process must make the same calls in the same order:";
    for (const auto& [rank, entered] : entered_)
      what += " rank " + std::to_string(rank) + ": " + to_string(entered.request) + ";";
    return fail(what);
  }
  result_ = empty_result();
  if (restored_ || request().kind == call_kind::barrier) return continue_call();
  std::vector<node_inventory> inventories;
  for (const auto& [rank, inventory] : inventories_) inventories.push_back(inventory);
  auto plan = choose_restore(inventories, job().ranks_of_stages());
  if (plan.from_scratch)
    restore_from_disk_or_scratch();
  else
    restore(plan);
}

/// The call goes on from `position_`: steps first, if any are missing, then what it is about.
void scheduler_state::continue_call() {
  phase_ = phase::running;
  const auto& wanted = request();
  if (wanted.kind == call_kind::barrier) {
    // Nothing is restored for a barrier; a recovery during one is over when it is.
    if (!restored_)
      for (auto reached : {recovery_phase::restored, recovery_phase::rebuilt, recovery_phase::replayed})
        options_.members->report(options_.generation, reached);
    return finish_call(result_);
  }
  if (position_ < wanted.target_step) return train_on();
  if (wanted.kind == call_kind::evaluate && wanted.num_batches > 0)
    return start(call_kind::evaluate, wanted.source, 0, wanted.num_batches);
  if (wanted.kind == call_kind::hash) return start(call_kind::hash, 0, 0, 1);
  if (wanted.kind == call_kind::train) result_.metrics = metrics_;
  finish_call(result_);
}

/// Trains from `position_`: as the call that took these steps first did, if they are made up for, else as
/// this one asks.
void scheduler_state::train_on() {
  for (const auto& before : completed_)
    if (before.kind == call_kind::train && position_ < before.steps_done)
      return start(call_kind::train, before.source, position_, before.steps_done);
  start(call_kind::train, request().kind == call_kind::train ? request().source : 0, position_,
        request().target_step);
}

call_result scheduler_state::empty_result() const {
  call_result result;
  result.index = request().index;
  result.kind = request().kind;
  result.source = request().source;
  return result;
}

void scheduler_state::finish_call(call_result result) {
  // A barrier before anything is restored knows from the call before.
  result.steps_done = restored_ || completed_.empty() ? position_ : completed_.back().steps_done;
  completed_.push_back(result);
  phase_ = phase::gathering;
  entered_.clear();
  // This node hears last: it may end once it knows the result, and the others hear of it from here.
  not_seen_.clear();
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (rank == options_.rank) continue;
    not_seen_.insert(rank);
    self_->send(options_.supervisors[static_cast<std::size_t>(rank)],
                call_finished{options_.generation, result});
  }
  if (not_seen_.empty()) return tell_own_node(result.index);
  self_->delayed_send(self_, options_.confirm_timeout, enough_waited{result.index});
}

void scheduler_state::on_seen(const result_seen& seen) {
  if (seen.generation != options_.generation || seen.index + 1 != completed_.size()) return;
  if (not_seen_.erase(seen.rank) > 0 && not_seen_.empty()) tell_own_node(seen.index);
}

void scheduler_state::tell_own_node(std::uint32_t index) {
  not_seen_.clear();
  self_->send(options_.supervisors[static_cast<std::size_t>(options_.rank)],
              call_finished{options_.generation, completed_[index]});
}

void scheduler_state::fail(const std::string& cause) {
  options_.log->error("job failed cause=\"{}\"", cause);
  options_.members->fail_job(cause);
}

// ---- restoring

void scheduler_state::restore_from_disk_or_scratch() {
  // A fresh job begins with fresh weights; what lies on disk counts for one that resumes or has lost
  // processes.
  if (job().snapshots.folder.empty() || (!job().resume && options_.generation == 1)) return restore({});
  phase_ = phase::finding;
  self_->request(known_.snapshotter, options_.request_timeout, find_on_disk{})
      .then(
          [this](const found_on_disk& found) {
            if (!found.manifest) {
              options_.log->warn(
                  "no usable snapshot on disk, starting from the initial weights folder=\"{}\"",
                  job().snapshots.folder.string());
              return restore({});
            }
            if (found.manifest->identity != job().identity) {
              std::string differences;
              for (const auto& [name, value] : job().identity)
                for (const auto& [other, saved] : found.manifest->identity)
                  if (name == other && value != saved)
                    differences += " " + name + " is " + value + ", the snapshot has " + saved + ";";
              return fail("the snapshot of step " + std::to_string(found.manifest->step) +
                          " belongs to another job:" + differences +
                          " use the same options, or another --snapshot-dir");
            }
            restore_plan plan{found.manifest->step, false, {}};
            auto ranks = job().ranks_of_stages();
            for (std::uint32_t stage = 0; stage < ranks.size(); ++stage)
              plan.sources.push_back({stage, ranks[stage], part_place::disk});
            restore(plan);
          },
          [this](const caf::error& problem) {
            fail("snapshots on disk cannot be read: " + describe(problem));
          });
}

void scheduler_state::restore(const restore_plan& plan) {
  phase_ = phase::restoring;
  position_ = plan.step;
  options_.log->info("restoring generation={} step={} from_scratch={}", options_.generation, plan.step,
                     plan.from_scratch);
  for (const auto& supervisor : options_.supervisors)
    self_->send(supervisor, restore_order{options_.generation, plan, completed_});
  for (auto& [rank, inventory] : inventories_) {
    std::erase_if(inventory.parts, [&](const held_part& part) { return part.step > plan.step; });
    if (plan.from_scratch) inventory.parts.clear();
  }
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

// ---- running

void scheduler_state::start(call_kind kind, std::uint32_t source, std::uint64_t first, std::uint64_t end) {
  activity_ = request();
  activity_.kind = kind;
  activity_.source = source;
  end_ = end;
  granted_end_ = first;
  last_copy_due_ = first;
  parameters_.clear();
  ledger_ = step_ledger(static_cast<std::uint32_t>(known_.devices.size()), first);
  last_finished_ = std::chrono::steady_clock::now();
  extend_grant();
}

void scheduler_state::extend_grant() {
  auto until = std::min(end_, ledger_.complete() + options_.window);
  bool first_grant = granted_end_ == ledger_.complete();
  // Not every step: half a window at once.
  if (until <= granted_end_ || (!first_grant && until != end_ && until - granted_end_ < options_.window / 2))
    return;
  if (disk_.num_pending() >= most_pending_on_disk) return;
  auto committed = committed_step();
  uncommitted_.erase(uncommitted_.begin(), uncommitted_.upper_bound(committed));
  if (uncommitted_.size() >= most_uncommitted_windows * options_.window) return;
  grant given{options_.generation, activity_, ledger_.complete(), until, {}, committed};
  if (activity_.kind == call_kind::train) given.copies = copies_due(granted_end_ + 1, until);
  granted_end_ = until;
  for (const auto& device : known_.devices) self_->send(device, given);
}

/// The copies due after steps [first, last], a step being named by the number of steps applied.
std::vector<due_copy> scheduler_state::copies_due(std::uint64_t first, std::uint64_t last) {
  auto cadence = job().snapshots.cadence;
  auto on_disk = !job().snapshots.folder.empty();
  if (cadence.memory_every_steps == 0) cadence.memory_every_steps = copies_.steps();
  auto now = std::chrono::steady_clock::now();
  std::optional<std::uint64_t> announced;
  if (on_disk && disk_.num_pending() == 0)
    announced = next_disk_step(
        {ledger_.complete(), first - 1, last, copies_.step_time(), disk_.since_last(now)}, cadence);
  std::vector<due_copy> copies;
  for (auto step = first; step <= last; ++step) {
    auto due = snapshot_due(step, cadence, announced);
    due.disk = on_disk && (due.disk || step == end_);
    due.memory = due.disk || step == end_ || step - last_copy_due_ >= cadence.memory_every_steps;
    if (due.memory) {
      copies.push_back({step, due.disk});
      uncommitted_.insert(step);
      last_copy_due_ = step;
    }
    if (due.disk) disk_.announced(step, now);
  }
  return copies;
}

void scheduler_state::on_step_done(const step_done& done) {
  if (done.generation != options_.generation || done.call != activity_.index || phase_ != phase::running)
    return;
  result_.last_step.insert(result_.last_step.end(), done.actions.begin(), done.actions.end());
  for (const auto& step : ledger_.add(done)) on_finished(step);
  extend_grant();
  if (ledger_.complete() < end_) return;
  if (activity_.kind == call_kind::evaluate) return finish_call(result_);
  finish_training_if_safe();
}

void scheduler_state::on_finished(const finished_step& step) {
  if (activity_.kind == call_kind::evaluate) {
    result_.metrics += step.metrics;
    return;
  }
  auto now = std::chrono::steady_clock::now();
  copies_.observe(std::chrono::duration<double>(now - last_finished_).count(), step.copy_s);
  last_finished_ = now;
  position_ = step.step + 1;
  metrics_ = step.metrics;
  options_.client->put(step_progress{position_, end_, step.metrics});
  options_.members->report(job_progress{options_.generation, position_, end_, step.metrics.mean_loss()});
  if (interrupted_step_ != 0 && position_ >= interrupted_step_) {
    interrupted_step_ = 0;
    options_.members->report(options_.generation, recovery_phase::replayed);
  }
}

/// A call's last state is committed, and on disk if there is a folder, before anyone hears that the call is
/// over.
void scheduler_state::finish_training_if_safe() {
  if (phase_ != phase::running || activity_.kind != call_kind::train || ledger_.complete() < end_) return;
  if (committed_step() < end_ || disk_.is_pending(end_)) return;
  result_.timing = ledger_.timing();
  // What was made up for is no part of this call's result.
  if (request().kind != call_kind::train || position_ < request().target_step) result_ = empty_result();
  continue_call();
}

void scheduler_state::on_parameters(const parameters_arrived& arrived) {
  if (arrived.generation != options_.generation || arrived.call != activity_.index ||
      activity_.kind != call_kind::hash)
    return;
  parameters_[arrived.stage] = arrived.packed;
  if (parameters_.size() < static_cast<std::size_t>(job().training.num_stages)) return;
  std::vector<named_tensor> all;
  for (const auto& [stage, packed] : parameters_)
    for (auto& parameter : unpack_state(packed)) all.push_back(std::move(parameter));
  result_.weights_sha256 = weights_sha256(std::move(all));
  parameters_.clear();
  finish_call(result_);
}

// ---- snapshots

std::uint64_t scheduler_state::committed_step() const {
  std::vector<node_inventory> inventories;
  for (const auto& [rank, inventory] : inventories_) inventories.push_back(inventory);
  return newest_committed_step(inventories, static_cast<std::uint32_t>(job().training.num_stages));
}

void scheduler_state::on_held(const part_held& held) {
  if (held.generation != options_.generation) return;
  auto& inventory = inventories_[held.rank];
  inventory.rank = held.rank;
  inventory.parts.push_back(held.part);
  auto committed = committed_step();
  for (auto& [rank, other] : inventories_)
    std::erase_if(other.parts, [&](const held_part& part) { return part.step < committed; });
  extend_grant();
  finish_training_if_safe();
}

void scheduler_state::on_written(const part_written& written) {
  if (written.generation != options_.generation) return;
  auto parts = disk_.add(written, static_cast<std::uint32_t>(job().training.num_stages));
  if (parts) {
    snapshot_manifest manifest;
    manifest.job_id = options_.job_id;
    manifest.step = written.step;
    manifest.generation = options_.generation;
    manifest.num_stages = static_cast<std::uint32_t>(job().training.num_stages);
    manifest.numeric_class = options_.numeric_class;
    manifest.identity = job().identity;
    manifest.parts = *std::move(parts);
    commit(manifest);
  }
  extend_grant();
  finish_training_if_safe();
}

void scheduler_state::commit(const snapshot_manifest& manifest) {
  auto step = manifest.step;
  self_->request(known_.snapshotter, options_.request_timeout, commit_snapshot{manifest})
      .then(
          [this, step](const snapshot_committed&) {
            options_.log->debug("snapshot on disk step={}", step);
            disk_.ended(step);
            extend_grant();
            finish_training_if_safe();
          },
          [this, step](const caf::error&) {  // warned about by the snapshotter
            disk_.ended(step);
            extend_grant();
            finish_training_if_safe();
          });
}

}  // namespace troupe
