#include "troupe/detail/check_replicas.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "troupe/data_parallel/sync_batch_norm.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/pipeline/detail/parameters/bucket_layout.hpp"
#include "troupe/pipeline/detail/parameters/compressed_gradients.hpp"
#include "troupe/pipeline/detail/stage_content.hpp"

namespace troupe::detail {
namespace {

std::string text_of(const given_exchange& given) { return std::string(given.name) + " " + given.value; }

/// What is not sent in a step is sent in a later one.
void check_held_back(const given_exchange& given, const numeric_options& numerics) {
  if (numerics.scales_loss())
    throw bad_input(text_of(given) +
                    " holds gradients back for later steps, when the loss scale of f16 is another. Use "
                    "--precision f32 or bf16");
  if (numerics.skips_steps())
    throw bad_input(text_of(given) +
                    " would lose the gradients of skipped steps. Use --on-non-finite stop or go_on");
}

void check_exchange(const Pipeline& pipeline, const numeric_options& numerics) {
  auto given = given_in(pipeline.numerics().exchange);
  if (given.empty()) return;
  const auto& first = given.front();
  if (pipeline.replicas() == 1)
    throw bad_input(
        text_of(first) +
        " is about what replicas exchange, and this pipeline has one replica. Use --replicas 2 or more, or "
        "leave " +
        first.option_name + " out");
  if (given.size() > 1)
    throw bad_input(text_of(given.back()) + " and " + text_of(first) +
                    " are different forms of what replicas exchange. Use one of them");
  if (numerics.exchange.top_k_gradients > 0 || numerics.exchange.power_sgd_rank > 0)
    check_held_back(first, numerics);
  if (numerics.exchange.average_every > 0 && pipeline.flush_every() > 1)
    throw bad_input(text_of(first) + " averages the newest weights, and flush_every " +
                    std::to_string(pipeline.flush_every()) +
                    " keeps older ones beside them. Use --flush-every 1, or another schedule");
}

/// The highest rank at which PowerSGD compresses one of the model's gradients; 0 if none does.
int highest_rank(const std::vector<named_parameter>& parameters) {
  int highest = 0;
  for (const auto& [name, target] : parameters)
    while (power_sgd_factors_of(*target, highest + 1).rank > highest) ++highest;
  return highest;
}

/// Small gradients travel whole, and so do those that would not become smaller.
void check_compressible(nn::Module& model, const numeric_options& numerics) {
  auto parameters = model.named_parameters();
  auto is_compressed = [&numerics](const named_parameter& each) {
    return numerics.exchange.power_sgd_rank > 0
               ? power_sgd_factors_of(*each.target, numerics.exchange.power_sgd_rank).rank > 0
               : each.target->requires_gradient && is_large(*each.target);
  };
  if (numerics.exchange.power_sgd_rank == 0 && numerics.exchange.top_k_gradients == 0) return;
  if (std::ranges::any_of(parameters, is_compressed)) return;
  auto highest = numerics.exchange.power_sgd_rank > 0 ? highest_rank(parameters) : 0;
  if (highest > 0)
    throw bad_input(
        "power_sgd_rank " + std::to_string(numerics.exchange.power_sgd_rank) +
        " compresses no gradient of this model: the factors of none have half as many elements or "
        "fewer. Use a rank of at most " +
        std::to_string(highest));
  throw bad_input(
      (numerics.exchange.power_sgd_rank > 0 ? "power_sgd_rank" : "top_k_gradients") +
      std::string(
          " compresses no gradient of this model: small ones are sent whole, and no trainable weight of "
          "it is large enough. Leave the option out"));
}

}  // namespace

void check_shards(const Pipeline& pipeline, const nn::Graph& model, const numeric_options& numerics,
                  const std::string& backend) {
  auto gathers = pipeline.gathers();
  if (!gathers.frees && (gathers.ahead != 1 || gathers.reshards != schedule::reshard_point::pass))
    throw bad_input(
        "reshard_after and gather_ahead say when stages hold whole weights, which they always do but with "
        "shard full: use that, with replicas, or leave them out");
  if (numerics.shard == shard_strategy::none) return;
  auto shard = "shard " + std::string(to_string(numerics.shard));
  auto refuse = [&](const std::string& why) { throw bad_input(shard + " " + why); };
  if (pipeline.replicas() == 1)
    refuse(
        "divides what replicas hold, and this pipeline has one replica. Use --replicas 2 or more, or leave "
        "it "
        "out");
  for (const auto& given : given_in(numerics.exchange))
    if (given.name != "gradient_sync")
      refuse("gives the sums of gradients to the replica that steps a weight, and with " + text_of(given) +
             " each needs what all send. Use one of them");
  if (pipeline.flush_every() > 1)
    refuse("divides the newest weights, and flush_every " + std::to_string(pipeline.flush_every()) +
           " keeps older ones beside them. Use --flush-every 1, or another schedule");
  if (backend == "gloo" || backend == "mpi" || backend == "nccl")
    refuse("sends gradients to the replica that steps a weight, and --backend " + backend +
           " carries sums for all. Use --backend ucx, or leave it out");
  if (!has_equal_replicas(model, numerics))
    refuse(
        "needs replicas whose buffers are alike, and the model has buffers that may differ: running means of "
        "a "
        "BatchNorm2d (use convert_sync_batch_norm(model)), or buffers of a module of your own (make them "
        "parameters with requires_gradient false, or leave the option out)");
}

void check_replicas(const Pipeline& pipeline, const numeric_options& numerics, const std::string& backend) {
  check_exchange(pipeline, numerics);
  nn::Graph model(pipeline.model());
  check_shards(pipeline, model, numerics, backend);
  check_compressible(model, numerics);
  if (pipeline.replicas() > 1 && has_statistics_of(model, nn::BatchNorm2d::statistics_of::group))
    throw bad_input(
        "the model has a SyncBatchNorm over a process group, and the replicas of a pipeline are not members "
        "of one. Leave the group out, as in nn::SyncBatchNorm(features) or convert_sync_batch_norm(model), "
        "for the statistics of all replicas");
}

}  // namespace troupe::detail
