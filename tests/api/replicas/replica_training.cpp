#include "api/replicas/replica_training.hpp"

#include <bit>
#include <map>
#include <set>

#include "troupe/data/detail/training_source.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/snapshot/weights_hash.hpp"

namespace troupe::testing {

nn::Sequential dropped_model() {
  return nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 4));
}

Pipeline replicated(int stages, int replicas, const nn::Sequential& model) {
  return Pipeline(model).stages(stages).microbatches(2).replicas(replicas).optimizer(
      optim::Adam({.lr = 0.01}));
}

job_options options_of(std::uint64_t steps, int batch) {
  auto options = small_options();
  options.batch = batch;
  options.steps = steps;
  return options;
}

dataset_ptr points() { return four_corners(250); }

trained_bits train(int num_devices, Pipeline pipeline, std::uint64_t steps, int batch) {
  trained_bits seen;
  Trainer trainer(World::local(num_devices, options_of(steps, batch)), std::move(pipeline),
                  {.on_step = [&](const step_event& done) {
                    seen.losses.push_back(std::bit_cast<std::uint64_t>(done.loss));
                  }});
  trainer.fit(points());
  seen.weights = trainer.weights_sha256();
  return seen;
}

tensor tree_sum(const std::vector<tensor>& leaves, std::size_t first, std::size_t count) {
  if (count == 1) return leaves[first];
  auto left = std::bit_floor(count - 1);
  return add(tree_sum(leaves, first, left), tree_sum(leaves, first + left, count - left));
}

trained_bits plain_loop(int replicas, int batch, dtype sync, const nn::Sequential& trained) {
  auto rounded = [sync](const tensor& each) { return cast(cast(each, sync), dtype::f32); };
  constexpr std::uint64_t steps = 6;
  constexpr int microbatches = 2;
  auto options = options_of(steps, batch);
  auto model = trained;
  model.materialize(options.seed);
  auto parameters = model.named_parameters();
  auto optimizer = optim::Adam({.lr = 0.01})(parameters);
  auto source =
      detail::make_training_source(points(), {options.batch, microbatches, options.seed, 1, replicas});
  auto rows = options.batch / (replicas * microbatches);
  trained_bits seen;
  for (std::uint64_t step = 0; step < steps; ++step) {
    auto given = source->at(step);
    std::map<std::string, std::vector<tensor>> gradients;
    std::set<std::string> learned;  // by any replica
    double loss_of_step = 0;
    for (int replica = 0; replica < replicas; ++replica) {
      double loss_of_replica = 0;
      for (const auto& each : parameters) each.target->has_gradient = false;
      for (int index = 0; index < microbatches; ++index) {
        auto first = (replica * microbatches + index) * rows;
        auto output = model({given.inputs.rows(first, rows)});
        auto result = nn::CrossEntropy()(output, given.targets.rows(first, rows), 1.0 / options.batch);
        result.loss.backward();
        loss_of_replica += result.loss_sum;
      }
      for (const auto& [name, target] : parameters) {
        gradients[name].push_back(target->has_gradient ? rounded(target->gradient()).clone()
                                                       : tensor::zeros(target->extents));
        if (target->has_gradient) learned.insert(name);
      }
      loss_of_step += loss_of_replica;
    }
    for (const auto& [name, target] : parameters) {
      target->gradient().copy_from(rounded(tree_sum(gradients[name], 0, static_cast<std::size_t>(replicas))));
      target->has_gradient = learned.contains(name);
    }
    optimizer->apply(step);
    seen.losses.push_back(std::bit_cast<std::uint64_t>(loss_of_step / options.batch));
  }
  std::vector<named_tensor> weights;
  for (const auto& each : parameters) weights.push_back({each.name, each.target->value()});
  seen.weights = weights_sha256(std::move(weights));
  return seen;
}

}  // namespace troupe::testing
