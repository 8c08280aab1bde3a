#include "troupe/snapshotter/snapshotter_actor.hpp"

#include <algorithm>

#include "troupe/actor/failure.hpp"
#include "troupe/program/packed_state.hpp"
#include "troupe/scheduler/messages.hpp"

namespace troupe {
namespace {

constexpr auto no_folder = "this job keeps no snapshots on disk: it has no folder for them";

}  // namespace

snapshotter_state::snapshotter_state(caf::event_based_actor* self, snapshotter_options options)
    : self_(self), options_(std::move(options)), last_on_disk_(self->clock().now()) {
  if (options_.store) store_.emplace(*options_.store);
}

caf::behavior snapshotter_state::make_behavior() {
  return {[this](const snapshot_generation& begun) { on_generation(begun); },
          [this](const replica_arrived& arrived) { on_replica(arrived); },
          [this](const write_part& order) { on_write(order); },
          [this](const commit_snapshot& order) { return on_commit(order); },
          [this](const find_on_disk&) { return on_find(); },
          [this](const read_from_disk& wanted) { return on_read(wanted); },
          [this](const get_replica& wanted) { return on_get(wanted); },
          [this](const list_parts&) { return on_list(); },
          [this](const drop_before& order) { on_drop(order); }};
}

void snapshotter_state::on_generation(const snapshot_generation& begun) {
  generation_ = begun.generation;
  scheduler_ = begun.scheduler;
  last_on_disk_ = self_->clock().now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(begun.since_disk_s));
  // What peers sent for this generation may already be here; only an older generation's future is rolled
  // back.
  std::erase_if(replicas_, [&](const auto& kept) {
    return kept.second.generation < generation_ && kept.first.first > begun.step;
  });
  for (const auto& part : on_list().parts)
    if (part.generation == generation_) self_->send(scheduler_, part_held{generation_, options_.rank, part});
}

void snapshotter_state::on_replica(const replica_arrived& arrived) {
  if (arrived.generation < generation_) return;
  replicas_[{arrived.step, arrived.stage}] = {arrived.generation, arrived.packed};
  if (scheduler_)
    self_->send(scheduler_,
                part_held{arrived.generation,
                          options_.rank,
                          {arrived.step, arrived.stage, arrived.generation, part_place::peer_memory}});
}

void snapshotter_state::on_write(const write_part& order) {
  part_written written{order.generation, order.step, order.stage, {}, 0, {}, options_.host, {}};
  if (order.generation != generation_ || !store_) return;
  try {
    snapshot_part part{options_.job_id,           order.step,       order.stage,
                       options_.num_stages,       order.generation, options_.numeric_class,
                       unpack_state(order.packed)};
    auto encoded = encode_part(part);
    auto entry = store_->write_part(order.step, order.stage, encoded.bytes());
    written.file = entry.file;
    written.size_bytes = entry.size_bytes;
    written.checksum = entry.checksum;
    last_on_disk_ = self_->clock().now();
  } catch (const snapshot_error& problem) {
    written.problem = problem.what();
    options_.log->warn("snapshot not written, training goes on step={} stage={} reason=\"{}\"", order.step,
                       order.stage, problem.what());
  }
  self_->send(scheduler_, written);
}

caf::result<snapshot_committed> snapshotter_state::on_commit(const commit_snapshot& order) {
  if (!store_) return failure(no_folder);
  try {
    store_->commit(order.manifest);
    return snapshot_committed{order.manifest.step};
  } catch (const snapshot_error& problem) {
    options_.log->warn("snapshot not committed, training goes on step={} reason=\"{}\"", order.manifest.step,
                       problem.what());
    return failure(problem.what());
  }
}

caf::result<found_on_disk> snapshotter_state::on_find() {
  if (!store_) return found_on_disk{};
  try {
    auto newest =
        store_->newest_valid([&](const std::string& problem) { options_.log->warn("{}", problem); });
    if (newest && newest->job_id != options_.job_id && !options_.resume) newest.reset();
    return found_on_disk{newest};
  } catch (const snapshot_error& problem) {
    // Only who asked for it must have it; others may never have written any.
    if (options_.resume) return failure(problem.what());
    options_.log->warn("{}", problem.what());
    return found_on_disk{};
  }
}

caf::result<stage_copy> snapshotter_state::on_read(const read_from_disk& wanted) {
  if (!store_) return failure(no_folder);
  try {
    for (const auto& info : store_->list()) {
      if (!info.manifest || info.step != wanted.step) continue;
      packed_state_pool fresh;
      return stage_copy{pack_state(store_->read_part(*info.manifest, wanted.stage).tensors, fresh)};
    }
  } catch (const snapshot_error& problem) {
    return failure(problem.what());
  }
  return failure("no snapshot of step " + std::to_string(wanted.step) + " in " +
                 options_.store->folder.string());
}

caf::result<stage_copy> snapshotter_state::on_get(const get_replica& wanted) const {
  auto found = replicas_.find({wanted.step, wanted.stage});
  if (found == replicas_.end())
    return failure("no replica of stage " + std::to_string(wanted.stage) + " at step " +
                   std::to_string(wanted.step));
  return stage_copy{found->second.packed};
}

held_parts snapshotter_state::on_list() const {
  held_parts held;
  held.since_disk_s = std::chrono::duration<double>(self_->clock().now() - last_on_disk_).count();
  for (const auto& [key, kept] : replicas_)
    held.parts.push_back({key.first, key.second, kept.generation, part_place::peer_memory});
  return held;
}

void snapshotter_state::on_drop(const drop_before& order) {
  replicas_.erase(replicas_.begin(), replicas_.lower_bound({order.step, 0}));
}

}  // namespace troupe
