#include "one_scheduler.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <stdexcept>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/snapshot_writer.hpp"

namespace troupe::testing {
namespace {

/// Answers as it is told to, or not yet.
struct fake_snapshot_writer_state {
  static constexpr const char* actor_name = "fake snapshot writer";
  fake_snapshot_writer_state(caf::event_based_actor* self, std::shared_ptr<disk_script> what)
      : self_(self), what_(std::move(what)) {}
  caf::behavior make_behavior() {
    return {
        [this](const actors::messages::find_on_disk&) -> caf::result<actors::messages::found_on_disk> {
          ++what_->num_searches;
          if (what_->fatal) throw std::runtime_error("no memory");
          if (!what_->problem.empty()) return actors::actor::unavailable(what_->problem);
          return actors::messages::found_on_disk{what_->on_disk, what_->unusable};
        },
        [this](const actors::messages::read_results& wanted) -> caf::result<actors::messages::results_read> {
          ++what_->num_reads;
          if (!what_->problem_of_results.empty())
            return actors::actor::unavailable(what_->problem_of_results);
          wanted.to->add(what_->results);
          return actors::messages::results_read{wanted.to->size()};
        },
        [this](const actors::messages::commit_snapshot& command)
            -> caf::result<actors::messages::snapshot_committed> {
          what_->committed.push_back(command.manifest);
          what_->committed_results.push_back(command.num_results);
          if (what_->silent)
            return pending_.emplace_back(
                self_->make_response_promise<actors::messages::snapshot_committed>());
          if (!what_->problem.empty()) return actors::actor::unavailable(what_->problem);
          return actors::messages::snapshot_committed{command.manifest.step};
        }};
  }
  caf::event_based_actor* self_;
  std::shared_ptr<disk_script> what_;
  std::vector<caf::typed_response_promise<actors::messages::snapshot_committed>> pending_;
};

}  // namespace

one_scheduler::one_scheduler(scheduler_settings given) : with(given) {
  actors::scheduler::scheduler_options options;
  options.generation = with.generation;
  options.world_size = with.world_size;
  options.present = mesh::view_of_world(with.world_size, with.generation);
  options.numeric_class = "class";
  options.members = &members;
  options.client = client;
  options.log =
      std::make_shared<spdlog::logger>("actors", std::make_shared<spdlog::sinks::ostream_sink_st>(log_));
  options.log->set_level(spdlog::level::warn);
  options.progress_timeout = with.progress_timeout;
  options.window = with.window;
  for (int rank = 0; rank < with.world_size; ++rank)
    options.supervisors.push_back(supervisors.emplace_back(actors).handle());
  for (int device = 0; device < num_devices(); ++device) devices.emplace_back(actors);
  scheduler = actors.spawn<actors::actor::actor_of<actors::scheduler::scheduler_state>>(options);
  if (with.knows_job) know_job();
}

void one_scheduler::know_job() {
  auto job = std::make_shared<actors::job::job_definition>();
  auto num_stages = num_devices() / with.num_replicas;
  job->place(make_plan({.kind = schedule_kind::gpipe,
                        .num_stages = num_stages,
                        .num_microbatches = 2,
                        .num_devices = num_stages,
                        .num_replicas = with.num_replicas,
                        .has_equal_replicas = true}),
             with.world_size);
  job->home = with.home.value_or(job->home);
  job->snapshots.cadence.memory_every_steps = with.memory_every_steps;
  job->snapshots.cadence.disk_every_steps = with.disk_every_steps;
  job->snapshots.cadence.disk_interval = with.disk_interval;
  if (with.on_disk) job->snapshots.folder = "/a/folder";
  job->resume = with.resume;
  job->on_non_finite = with.on_non_finite;
  job->begin_with = with.begin_with;
  job->trained_before = with.trained_before;
  job->on_lost_state = with.on_lost_state;
  job->job_id = "job-1";
  job->number = job_number;
  job->first_call = first_call;
  job->identity = {{"seed", "1"}, {"batch", "64"}};
  job->samples_per_run = 64;
  actors.send(scheduler, actors::messages::job_known{
                             job, actors.spawn<actors::actor::actor_of<fake_snapshot_writer_state>>(disk)});
  actors::messages::devices_known known{with.generation, {}};
  for (const auto& device : devices) known.devices.push_back(device.handle());
  actors.send(scheduler, known);
}

void one_scheduler::replace_snapshot_writer() {
  actors.send(scheduler, actors::messages::snapshot_writer_replaced{
                             actors.spawn<actors::actor::actor_of<fake_snapshot_writer_state>>(disk)});
}

// ---- what processes say

void one_scheduler::enter(int rank, const actors::job::call_request& request,
                          std::vector<recovery::held_part> parts,
                          std::vector<actors::job::call_result> completed, std::uint64_t interrupted_step) {
  actors.send(scheduler, actors::messages::copies_held{with.generation,
                                                       {rank, 0, std::move(parts), with.committed_step}});
  actors.send(scheduler, actors::messages::call_entered{with.generation, rank, request, completed.size(),
                                                        interrupted_step});
  for (auto& each : supervisors)
    each.answer_to([](const actors::messages::want_results&) { return true; },
                   actors::messages::known_results{completed});
}

void one_scheduler::all_enter(const actors::job::call_request& request,
                              const std::vector<actors::job::call_result>& completed) {
  for (int rank = 0; rank < with.world_size; ++rank) enter(rank, request, {}, completed);
}

void one_scheduler::restored(int rank, program::step_metrics metrics) {
  actors::messages::process_restored told{with.generation, rank, {}};
  if (metrics.num_samples > 0) told.metrics[0] = metrics;
  actors.send(scheduler, told);
}

void one_scheduler::all_restored() {
  for (int rank = 0; rank < with.world_size; ++rank) restored(rank);
}

void one_scheduler::done(int device, std::uint64_t step, std::uint32_t call) {
  actors::messages::step_done report;
  report.generation = with.generation;
  report.call = call;
  report.step = step;
  report.device = static_cast<std::uint32_t>(device);
  if (device == num_devices() - 1) report.metrics = metrics_of(step);
  actors.send(scheduler, report);
}

void one_scheduler::all_done(std::uint64_t step, std::uint32_t call) {
  for (int device = 0; device < num_devices(); ++device) done(device, step, call);
}

void one_scheduler::all_held(std::uint64_t step) {
  for (int rank = 0; rank < with.world_size; ++rank) {
    held(rank, step, rank, recovery::part_location::own_memory);
    if (with.world_size > 1)
      held((rank + 1) % with.world_size, step, rank, recovery::part_location::peer_memory);
  }
}

void one_scheduler::held(int rank, std::uint64_t step, int stage, recovery::part_location place) {
  actors.send(scheduler,
              actors::messages::part_held{with.generation, rank, {step, {{stage}}, with.generation, place}});
}

void one_scheduler::written(std::uint64_t step, int stage, const std::string& problem) {
  actors.send(scheduler, actors::messages::part_written{
                             with.generation, step, {{{stage}}, "file", 10, "sum", "host"}, problem});
}

void one_scheduler::all_written(std::uint64_t step) {
  for (int rank = 0; rank < with.world_size; ++rank) written(step, rank);
}

void one_scheduler::seen(int rank, std::uint32_t index) {
  supervisors[static_cast<std::size_t>(rank)].answer_to(
      [index](const actors::messages::call_finished& told) { return told.result.index == index; }, caf::unit);
}

void one_scheduler::all_seen(std::uint32_t index) {
  for (int rank = 1; rank < with.world_size; ++rank) seen(rank, index);
}

void one_scheduler::begin_training(std::uint64_t target) {
  all_enter(train(0, target));
  all_restored();
}

void one_scheduler::train_to_end(std::uint64_t first, std::uint64_t target, std::uint32_t call) {
  for (auto step = first; step < target; ++step) {
    all_done(step, call);
    all_held(step + 1);
  }
  all_seen(call);
}

// ---- messages to the processes

actors::messages::step_credit one_scheduler::granted(int device) const {
  return devices[static_cast<std::size_t>(device)].last<actors::messages::step_credit>();
}

std::size_t one_scheduler::num_credits() const {
  return devices[0].all<actors::messages::step_credit>().size();
}

std::vector<std::uint64_t> one_scheduler::finished(int rank) const {
  std::vector<std::uint64_t> indices;
  for (const auto& one : supervisors[static_cast<std::size_t>(rank)].all<actors::messages::call_finished>())
    indices.push_back(one.result.index);
  return indices;
}

actors::job::call_result one_scheduler::result(int rank) const {
  return supervisors[static_cast<std::size_t>(rank)].last<actors::messages::call_finished>().result;
}

actors::messages::restore_command one_scheduler::command(int rank) const {
  return supervisors[static_cast<std::size_t>(rank)].last<actors::messages::restore_command>();
}

std::size_t one_scheduler::num_commands() const {
  return supervisors[0].all<actors::messages::restore_command>().size();
}

std::vector<cluster::recovery_phase> one_scheduler::phases() const {
  std::vector<cluster::recovery_phase> reported;
  for (const auto& [generation, phase] : members.phases) {
    if (generation != with.generation)
      throw std::logic_error("[one_scheduler] a phase of another generation");
    reported.push_back(phase);
  }
  return reported;
}

// ---- values

actors::job::call_result finished_training(std::uint32_t index, std::uint64_t steps, std::uint32_t source) {
  actors::job::call_result result;
  result.index = index;
  result.steps_done = steps;
  result.kind = actors::job::call_kind::train;
  result.source = source;
  return result;
}

std::vector<std::uint64_t> steps_of(const std::vector<actors::messages::due_copy>& copies) {
  std::vector<std::uint64_t> steps;
  for (const auto& copy : copies) steps.push_back(copy.step);
  return steps;
}

}  // namespace troupe::testing
