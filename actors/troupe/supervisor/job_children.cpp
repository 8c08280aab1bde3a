#include "troupe/supervisor/job_children.hpp"

#include <algorithm>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/actor/receiving_actor.hpp"
#include "troupe/device/device_actor.hpp"
#include "troupe/gatherer/gatherer_actor.hpp"
#include "troupe/inspector/inspector_actor.hpp"
#include "troupe/loader/loader_actor.hpp"
#include "troupe/peer_copy_store/peer_copy_store_actor.hpp"
#include "troupe/program/device_memory.hpp"
#include "troupe/schedule/stage_graph.hpp"
#include "troupe/snapshot_writer/disk_actor.hpp"
#include "troupe/snapshot_writer/snapshot_writer_actor.hpp"
#include "troupe/stage/stage_actor.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe::actors::supervisor {
namespace {

template <class State, class... Args>
caf::actor spawn_on(child_threads threads, caf::event_based_actor* self, Args&&... args) {
  if (threads == child_threads::shared)
    return self->spawn<actor::actor_of<State>>(std::forward<Args>(args)...);
  return self->spawn<actor::actor_of<State>, caf::detached>(std::forward<Args>(args)...);
}

child_id stage_id(const layout::cell& computed) {
  return {child_role::stage, computed.stage, computed.replica, computed.slice};
}

layout::cell cell_of(const child_id& stage) {
  return {.stage = stage.number, .replica = stage.replica, .slice = stage.slice};
}

}  // namespace

job_children::~job_children() {
  for (const auto& [address, one] : monitored_)
    if (auto child = caf::actor_cast<caf::actor>(address))
      caf::anon_send_exit(child, caf::exit_reason::user_shutdown);
}

void job_children::begin_job(std::shared_ptr<const job::job_definition> job) {
  job_ = std::move(job);
  accounts_.clear();
  for (const auto& branch : branches())
    if (branch.part_of == subtree::io)
      for (const auto& one : branch.children)
        if (one.role != child_role::loader) spawn(one);
}

void job_children::host(const std::vector<mesh::device_id>& devices) {
  hosted_.clear();
  std::set<int> wanted;
  for (auto device : devices) {
    wanted.insert(device.number);
    for (const auto& one : job_->placed.cells_of(device)) hosted_.insert(one);
  }
  std::erase_if(devices_, [&](const auto& one) {
    if (wanted.contains(one.first)) return false;
    end(one.second);
    arrivals_.erase(one.first);
    progress_.forget(one.first);
    return true;
  });
  set_loader(reads_samples());
  for (const auto& stage : hosted_)
    if (!stages_.contains(stage)) spawn_stage(stage);
  for (auto device : wanted)
    if (!devices_.contains(device)) spawn_device(device);
}

bool job_children::reads_samples() const {
  schedule::stage_graph graph(job_->training.num_stages, job_->training.edges);
  return std::ranges::any_of(hosted_, [&](const layout::cell& one) {
    return graph.takes_samples(one.stage) || graph.computes_loss(one.stage);
  });
}

void job_children::set_loader(bool is_needed) {
  if (is_needed && !loader_) spawn_loader();
  if (is_needed || !loader_) return;
  end(std::exchange(loader_, {}));
  progress_.watch_loader(nullptr);
}

void job_children::stop_set_aside() {
  std::erase_if(stages_, [&](const auto& one) {
    if (!hosted_.contains(one.first)) end(one.second);
    return !hosted_.contains(one.first);
  });
}

void job_children::end(const caf::actor& child) {
  if (!child) return;
  forget(child.address());
  self_->send_exit(child, caf::exit_reason::user_shutdown);
}

std::vector<supervised_branch> job_children::branches() const {
  if (!job_) return {};
  std::vector<supervised_branch> all = {
      {subtree::io, recovery::restart_policy::one_for_one, {{child_role::loader, 0}}},
      {subtree::io, recovery::restart_policy::one_for_one, {{child_role::peer_copy_store, 0}}},
      {subtree::io, recovery::restart_policy::rest_for_one, {}}};
  if (has_folder()) all.back().children.push_back({child_role::disk, 0});
  all.back().children.push_back({child_role::snapshot_writer, 0});
  for (const auto& one : hosted_)
    all.push_back({subtree::compute,
                   recovery::restart_policy::rest_for_one,
                   {stage_id(one), {child_role::device, device_of(one)}}});
  return all;
}

void job_children::stop_all() {
  for (const auto& [number, device] : std::exchange(devices_, {})) end(device);
  arrivals_.clear();
  for (const auto& [number, stage] : std::exchange(stages_, {})) end(stage);
  for (const auto& one :
       {std::exchange(loader_, {}), peer_copy_store_, snapshot_writer_, std::exchange(disk_, {})})
    end(one);
  hosted_.clear();
  progress_ = {};
}

caf::actor job_children::handle_of(const child_id& one) const {
  auto of = [](const auto& all, const auto& key) {
    auto found = all.find(key);
    return found == all.end() ? caf::actor() : found->second;
  };
  switch (one.role) {
    case child_role::loader:
      return loader_;
    case child_role::peer_copy_store:
      return peer_copy_store_;
    case child_role::disk:
      return disk_;
    case child_role::snapshot_writer:
      return snapshot_writer_;
    case child_role::stage:
      return of(stages_, cell_of(one));
    case child_role::device:
      return of(devices_, one.number);
    case child_role::gatherer:
      return gatherer_;
    case child_role::inspector:
      return inspector_;
    case child_role::scheduler:
      return {};  // spawned by generation_runner, for each generation
  }
  return {};
}

void job_children::stop(const child_id& one) {
  auto handle = handle_of(one);
  if (handle && forget(handle.address())) self_->send_exit(handle, caf::exit_reason::user_shutdown);
}

void job_children::respawn(const child_id& one) {
  stop(one);
  spawn(one);
  trace::emit_now({.kind = trace::trace_kind::actor_restarted, .name = trace::name_number(to_string(one))});
}

void job_children::spawn(const child_id& one) {
  if (one.role == child_role::loader) spawn_loader();
  if (one.role == child_role::peer_copy_store) spawn_peer_copy_store();
  if (one.role == child_role::disk) spawn_disk();
  if (one.role == child_role::snapshot_writer) spawn_snapshot_writer();
  if (one.role == child_role::stage) spawn_stage(cell_of(one));
  if (one.role == child_role::device) spawn_device(one.number);
  if (one.role == child_role::gatherer) spawn_gatherer();
  if (one.role == child_role::inspector) spawn_inspector();
}

const caf::actor& job_children::gatherer() {
  if (!gatherer_) spawn_gatherer();
  return gatherer_;
}

std::map<layout::cell, device_receiver> job_children::receivers_by_cell() {
  std::map<layout::cell, device_receiver> found;
  for (const auto& stage : hosted_) {
    auto device = device_of(stage);
    found[stage] = {devices_.at(device), account_of(device), arrivals_.at(device)};
  }
  return found;
}

void job_children::add_source(const troupe::actors::messages::add_source& added) {
  sources_.push_back(added.source);
  if (loader_) self_->send(loader_, added);
}

std::optional<child_id> job_children::running(const child_id& wanted) const {
  for (const auto& [address, one] : monitored_)
    if (one == wanted) return one;
  return {};
}

void job_children::end_with(const child_id& one, const caf::error& reason) {
  for (const auto& [address, child] : monitored_)
    if (child == one) self_->send_exit(caf::actor_cast<caf::actor>(address), reason);
}

void job_children::adopt(const caf::actor& actor, child_id one) {
  monitored_[actor.address()] = one;
  trace::emit_now({.kind = trace::trace_kind::actor_born, .name = trace::name_number(to_string(one))});
  ledger_.started(one, actor::counters_of(actor));
  self_->monitor(actor);
}

std::optional<child_id> job_children::remove(const caf::actor_addr& ended) { return forget(ended); }

std::optional<child_id> job_children::forget(const caf::actor_addr& address) {
  auto found = monitored_.find(address);
  if (found == monitored_.end()) return {};
  auto one = found->second;
  monitored_.erase(found);
  ledger_.ended(one);
  return one;
}

std::vector<messages::device_memory_report> job_children::device_memory() const {
  std::vector<messages::device_memory_report> all;
  for (const auto& [number, actor] : devices_) {
    auto place = job_->places.of({number});
    messages::device_memory_report one{.device = number, .place = program::place_text(place)};
    if (auto account = accounts_.find(number); account != accounts_.end()) {
      auto seen = account->second.statistics(place.type);
      one.held = seen.current;
      one.peak = seen.peak;
      if (place.type == device::kind::cuda) one.on_host = account->second.statistics().current;
    }
    one.limit = job_->placed.devices().at(static_cast<std::size_t>(number)).memory_limit_bytes;
    all.push_back(std::move(one));
  }
  return all;
}

const memory_account& job_children::account_of(int device) {
  auto& account = accounts_[device];
  if (!account) {
    const auto& described = job_->placed.devices().at(static_cast<std::size_t>(device));
    account = memory_account::make();
    account.set_limit(described.place, described.memory_limit_bytes);
  }
  return account;
}

void job_children::spawn_device(int device) {
  auto& ring = rings_[device];
  if (!ring) ring = &options_.trace->ring("device " + std::to_string(device));
  devices::device_options made;
  made.device = device;
  made.rank = options_.rank;
  made.out = options_.out;
  made.faults = options_.faults;
  made.ring = ring;
  made.fenced = options_.fenced;
  made.account = account_of(device);
  made.from_replicas = std::make_shared<execution::arrivals>([out = options_.out] { out->wake_receiver(); });
  arrivals_[device] = made.from_replicas;
  progress_.watch(device, made.status);
  if (options_.threads == child_threads::shared) {
    made.spin = std::chrono::nanoseconds(0);  // on a shared thread nothing else could run while it polls
    devices_[device] = self_->spawn<actor::actor_of<devices::device_state>>(made);
  } else {
    devices_[device] =
        self_->spawn<actor::receiving_actor<devices::device_state>, caf::detached>(*options_.out, made);
  }
  adopt(devices_[device], {child_role::device, device});
}

void job_children::spawn_stage(const layout::cell& stage) {
  stage::stage_options made;
  made.copies = {job_->part_of(stage), options_.rank, options_.out, options_.log, job_->number, job_->latest};
  made.cell = stage;
  made.make_program = job_->make_program;
  made.account = account_of(device_of(stage));
  stages_[stage] = self_->spawn<actor::actor_of<stage::stage_state>>(std::move(made));
  adopt(stages_[stage], stage_id(stage));
}

void job_children::spawn_loader() {
  auto status = std::make_shared<loader::loader_status>();
  progress_.watch_loader(status);
  loader_ = spawn_on<loader::loader_state>(options_.threads, self_, sources_, status, options_.faults);
  adopt(loader_, {child_role::loader, 0});
}

void job_children::spawn_peer_copy_store() {
  peer_copy_store_ = self_->spawn<actor::actor_of<peer_copy_store::peer_copy_store_state>>(
      peer_copy_store::peer_copy_store_options{options_.rank, options_.faults, job_->latest});
  adopt(peer_copy_store_, {child_role::peer_copy_store, 0});
}

/// The files are read and written by this actor alone, also if the snapshot writer is restarted meanwhile.
void job_children::spawn_disk() {
  disk_progress_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  snapshot_writer::disk_options disk;
  disk.job_id = job_->job_id;
  disk.numeric_class = options_.numeric_class;
  disk.num_stages = static_cast<std::uint32_t>(job_->training.num_stages);
  disk.resume = job_->resume;
  disk.finite_only = job_->on_non_finite != non_finite_policy::go_on;
  disk.faults = options_.faults;
  disk.log = options_.log;
  disk.store.folder = job_->snapshots.folder;
  disk.store.keep = job_->snapshots.keep;
  disk.store.access = job_->snapshots.access;
  disk.store.on_progress = [progress = disk_progress_] { ++*progress; };
  disk.store.at_point = [faults = options_.faults](std::string_view point) {
    if (point == "part_half_written") faults->at(fault::fault_point::part_half_written);
    if (point == "before_manifest") faults->at(fault::fault_point::before_manifest);
  };
  disk_ = spawn_on<snapshot_writer::disk_state>(options_.threads, self_, disk);
  adopt(disk_, {child_role::disk, 0});
}

void job_children::spawn_snapshot_writer() {
  snapshot_writer::snapshot_writer_options made;
  made.host = options_.host;
  made.log = options_.log;
  made.disk = disk_;
  if (disk_progress_) made.progress = disk_progress_;
  snapshot_writer_ = self_->spawn<actor::actor_of<snapshot_writer::snapshot_writer_state>>(made);
  adopt(snapshot_writer_, {child_role::snapshot_writer, 0});
}

void job_children::spawn_gatherer() {
  gatherer_ = self_->spawn<actor::actor_of<gatherer::gatherer_state>>(gatherer::gatherer_options{
      options_.rank, options_.world_size, options_.out, options_.client, options_.log});
  adopt(gatherer_, {child_role::gatherer, 0});
}

void job_children::spawn_inspector() {
  inspector::inspector_options made{options_.rank, options_.world_size, options_.inspected, options_.log};
  made.host = options_.host;
  inspector_ = self_->spawn<actor::actor_of<inspector::inspector_state>>(std::move(made));
  adopt(inspector_, {child_role::inspector, 0});
}

}  // namespace troupe::actors::supervisor
