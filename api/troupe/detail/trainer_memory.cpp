// Trainer's memory_report.
#include <algorithm>
#include <map>
#include <utility>

#include "troupe/detail/refused_call.hpp"
#include "troupe/detail/world_state.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/trainer.hpp"

namespace troupe {
namespace {

/// The layers of the profile that the nodes of a stage consist of.
layer_run layers_in(const stage_range& stage, const nn::Graph& model, const std::vector<std::string>& names,
                    int device) {
  auto found_for = [&](int node) {
    auto found = layers_named(model.name_of(node), names);
    if (found.empty())
      throw bad_input("the cost profile has no layer " + model.name_of(node) +
                      ", which the model has. Measure this model: profile_job(pipeline, samples, options)");
    return found;
  };
  return {found_for(stage.first).front(), found_for(stage.last - 1).back() + 1, device};
}

/// As they come, sorted by device.
memory_report report_of(const std::vector<tensor>& sent) {
  memory_report report;
  for (const auto& each : sent) {
    auto told = program::device_memory_from(each);
    report.devices.push_back({told.device, told.rank, told.place, told.held, told.on_host});
    if (std::ranges::find(report.processes, told.rank, &process_memory_report::rank) ==
        report.processes.end())
      report.processes.push_back({told.rank, told.process});
  }
  std::ranges::sort(report.processes, {}, &process_memory_report::rank);
  return report;
}

/// Those that other processes read where they lie are kept for later ones (block_pool).
bool frees_gradients(const numeric_options& numerics, const std::vector<compute_place>& places,
                     int world_size) {
  auto is_on_cpu = [](const compute_place& each) { return each.where == device(); };
  bool is_shared = world_size > 1 && numerics.exchange.gradient_sync == dtype::f32 &&
                   std::ranges::any_of(places, is_on_cpu);
  return numerics.shard >= shard_strategy::grad && !is_shared;
}

}  // namespace

troupe::memory_report Trainer::memory_report() {
  detail::running_call::scope running(world_.shared_->running, "Trainer::memory_report");
  require_no_open_step("memory_report");
  actors::job::call_request request;
  request.kind = actors::job::call_kind::memory;
  request.target_step = runs_;
  request.num_gathered = static_cast<std::uint64_t>(plan_.num_job_devices());
  troupe::memory_report report;
  actors::process::call_observer observer;
  observer.on_gathered = [&](const std::vector<tensor>& sent) {
    report = report_of(sent);
    return "";
  };
  world_.shared_->self->run(request, observer);
  report.steps = runs_ * steps_of_run();
  return report;
}

troupe::memory_report Trainer::memory_report(const cost_profile& profile) {
  world_.shared_->running.require_none("Trainer::memory_report");
  require_no_open_step("memory_report");
  auto report = memory_report();
  std::map<int, std::vector<compute_place>> places;  // by lane: [device of the plan]
  for (const auto& each : report.devices) {
    auto& of_lane = places[plan_.lane_of(each.device)];
    of_lane.resize(static_cast<std::size_t>(plan_.num_devices()));
    of_lane[static_cast<std::size_t>(plan_.device_of(each.device))] = {each.place, each.rank};
  }
  std::map<int, std::vector<held_memory>> predicted;
  detail::fail_job_on_exception(*world_.shared_->self, [&] {
    for (const auto& [lane, of_lane] : places) predicted[lane] = predicted_memory(profile, of_lane);
  });
  for (auto& each : report.devices) {
    each.predicted =
        predicted[plan_.lane_of(each.device)][static_cast<std::size_t>(plan_.device_of(each.device))];
    if (report.steps > 0 && each.measured.peak > 0)
      each.ratio = static_cast<double>(each.predicted->peak) / static_cast<double>(each.measured.peak);
  }
  return report;
}

/// Of the devices of one lane, which compute at `places`.
std::vector<held_memory> Trainer::predicted_memory(const cost_profile& profile,
                                                   const std::vector<compute_place>& places) const {
  check_profile(profile);
  auto samples = world_.options().batch / pipeline_.replicas() / pipeline_.microbatches();
  if (profile.microbatch_samples != samples)
    throw bad_input("the cost profile is that of microbatches of " +
                    std::to_string(profile.microbatch_samples) + " samples, but the job's have " +
                    std::to_string(samples) + ". Measure with the job's batch, microbatches and replicas");
  auto names = profile.names();
  std::vector<layer_run> stages;
  for (const auto& stage : pipeline_.partition(plan_.num_stages))
    stages.push_back(layers_in(stage, pipeline_.model(), names, plan_.device_of_stage[stages.size()]));
  return predict_memory(
      profile, stages, plan_, simulate(plan_, {}), places,
      {.num_shards = pipeline_.num_shards(),
       .frees_gradients = frees_gradients(pipeline_.numerics(), places, world_.world_size()),
       .frees_parameters = pipeline_.gathers().frees});
}

}  // namespace troupe
