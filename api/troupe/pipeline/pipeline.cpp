#include "troupe/pipeline/pipeline.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/nn/detail/batch_counts.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/pipeline/detail/initial_weights.hpp"

namespace troupe {

Pipeline::Pipeline(nn::Graph model) : model_(std::move(model)) {
  if (model_.num_inputs() != 1 || model_.num_outputs() != 1)
    throw_invalid("Pipeline", "a complete graph with one input and one output",
                  std::to_string(model_.num_inputs()) + " and " + std::to_string(model_.num_outputs()) +
                      ": call output(), and take the samples apart, or put the outputs together, within it");
  if (auto weights = detail::weights_if_materialized(model_)) initial_weights(*std::move(weights));
}

Pipeline::Pipeline(nn::Graph model, const job_options& options) : Pipeline(std::move(model)) {
  stages(options.stages)
      .microbatches(options.microbatches)
      .replicas(options.replicas)
      .schedule(options.schedule)
      .flush_every(options.flush_every)
      .plan_file(options.plan);
  if (!options.device_map.empty()) device_map_file(options.device_map);
  precision(options.precision).clip_grad_norm(options.clip_grad_norm).gradient_sync(options.gradient_sync);
  top_k_gradients(options.top_k_gradients).power_sgd_rank(options.power_sgd_rank);
  average_every(options.average_every);
  shard(shard_strategy_from(options.shard));
  reshard_after(schedule::reshard_point_from(options.reshard_after)).gather_ahead(options.gather_ahead);
  loss_scale({.initial_scale = options.loss_scale});
}

Pipeline& Pipeline::stages(int count) {
  stages_ = count;
  cuts_.clear();
  forget_device_map();
  return *this;
}

Pipeline& Pipeline::cut_before(std::vector<std::string> nodes) {
  stages_ = static_cast<int>(partition_at(model_, nodes).size());
  cuts_ = std::move(nodes);
  forget_device_map();
  return *this;
}

Pipeline& Pipeline::device_map(DeviceMap map) {
  auto placed = place_layers(model_, map);
  model_ = std::move(placed.model);
  stages_ = static_cast<int>(placed.partition.size());
  cuts_.clear();
  device_map_ = std::move(map);
  device_map_file_.clear();
  placed_stages_ = std::move(placed.partition);
  device_of_stage_ = std::move(placed.device_of_stage);
  return *this;
}

Pipeline& Pipeline::device_map_file(std::filesystem::path file) {
  cuts_.clear();
  forget_device_map();
  device_map_file_ = std::move(file);
  return *this;
}

Pipeline& Pipeline::read_device_map() {
  if (device_map_file_.empty()) return *this;
  return device_map(DeviceMap::read(device_map_file_));
}

void Pipeline::forget_device_map() {
  device_map_.reset();
  device_map_file_.clear();
  placed_stages_.clear();
  device_of_stage_.clear();
}

std::string Pipeline::cuts_text() const {
  std::string text;
  for (const auto& each : cuts_) text += (text.empty() ? "" : ", ") + each;
  return text;
}

std::vector<stage_range> Pipeline::partition(int num_stages) const {
  if (device_map_) return placed_stages_;
  return cuts_.empty() ? partition_into_stages(model_, num_stages) : partition_at(model_, cuts_);
}

Pipeline& Pipeline::microbatches(int count) {
  if (count < 1)
    throw bad_input("a pipeline cannot have " + std::to_string(count) + " microbatches. Give at least 1");
  microbatches_ = count;
  return *this;
}

Pipeline& Pipeline::replicas(int count) {
  if (count < 1)
    throw bad_input("a pipeline cannot have " + std::to_string(count) + " replicas. Give at least 1");
  replicas_ = count;
  return *this;
}

Pipeline& Pipeline::schedule(schedule_kind kind) {
  schedule_ = kind;
  return *this;
}

Pipeline& Pipeline::flush_every(int steps) {
  if (steps < 1)
    throw bad_input("a pipeline cannot flush every " + std::to_string(steps) + " steps. Give at least 1");
  flush_every_ = steps;
  return *this;
}

Pipeline& Pipeline::plan_file(std::filesystem::path file) {
  plan_file_ = std::move(file);
  return *this;
}

Pipeline& Pipeline::loss(nn::Loss loss) {
  if (!loss) throw_invalid("Pipeline::loss", "a loss, for example nn::MSELoss()", "none");
  loss_ = std::move(loss);
  return *this;
}

Pipeline& Pipeline::optimizer(optim::Optimizer optimizer) {
  if (!optimizer) throw_invalid("Pipeline::optimizer", "an optimizer, for example optim::Adam()", "none");
  optimizer_ = std::move(optimizer);
  return *this;
}

Pipeline& Pipeline::initial_weights(std::vector<named_tensor> weights) {
  weights = nn::detail::without_batch_counts(std::move(weights));
  for (auto& each : weights)
    if (each.value.defined() && is_floating(each.value.dtype())) each.value = cast(each.value, dtype::f32);
  initial_weights_ = std::make_shared<const std::vector<named_tensor>>(std::move(weights));
  return *this;
}

Pipeline& Pipeline::precision(dtype type) {
  if (!is_floating(type))
    throw bad_input("a pipeline cannot compute in " + std::string(to_string(type)) +
                    ". Choose one of f32, bf16, f16");
  numerics_.precision = type;
  return *this;
}

Pipeline& Pipeline::clip_grad_norm(double max_norm) {
  if (!std::isfinite(max_norm) || max_norm < 0)
    throw bad_input("gradients cannot be clipped to a norm of " + std::to_string(max_norm) +
                    ". Give a number above 0, or 0 for no clipping");
  numerics_.clip_grad_norm = max_norm;
  return *this;
}

Pipeline& Pipeline::gradient_sync(dtype type) {
  if (!is_floating(type))
    throw bad_input("replicas cannot exchange gradients in " + std::string(to_string(type)) +
                    ". Choose one of f32, bf16, f16");
  numerics_.exchange.gradient_sync = type;
  return *this;
}

Pipeline& Pipeline::top_k_gradients(double fraction) {
  if (!(fraction >= 0 && fraction <= 1))
    throw bad_input("replicas cannot exchange a fraction of " + std::to_string(fraction) +
                    " of their gradients. Give a number above 0 and at most 1, or 0 for all elements");
  numerics_.exchange.top_k_gradients = fraction;
  return *this;
}

Pipeline& Pipeline::power_sgd_rank(int rank) {
  if (rank < 0)
    throw bad_input("replicas cannot exchange factors of rank " + std::to_string(rank) +
                    ". Give a rank of 1 or more, or 0 for whole gradients");
  numerics_.exchange.power_sgd_rank = rank;
  return *this;
}

Pipeline& Pipeline::average_every(int num_steps) {
  if (num_steps < 0)
    throw bad_input("replicas cannot average their weights every " + std::to_string(num_steps) +
                    " steps. Give 1 or more, or 0 to exchange gradients in each step");
  numerics_.exchange.average_every = num_steps;
  return *this;
}

Pipeline& Pipeline::shard(shard_strategy strategy) {
  numerics_.shard = strategy;
  return *this;
}

Pipeline& Pipeline::reshard_after(schedule::reshard_point point) {
  gathers_.reshards = point;
  return *this;
}

Pipeline& Pipeline::gather_ahead(int num_passes) {
  if (num_passes < 0 || num_passes > schedule::most_gather_ahead)
    throw bad_input("stages can gather weights from 0 to " + std::to_string(schedule::most_gather_ahead) +
                    " passes ahead, got " + std::to_string(num_passes));
  gathers_.ahead = num_passes;
  return *this;
}

schedule::gather_options Pipeline::gathers() const {
  auto chosen = gathers_;
  chosen.gathers = num_shards() > 1;
  chosen.frees = numerics_.shard == shard_strategy::full;
  return chosen;
}

Pipeline& Pipeline::loss_scale(optim::loss_scaler_options options) {
  optim::loss_scaler checked(options);
  numerics_.loss_scale = options;
  return *this;
}

}  // namespace troupe
