// Freezing layers: a trained body with a batch norm stays as it is, and only a new last layer is trained.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <troupe/troupe.hpp>
#include <vector>

using namespace troupe;

namespace {

constexpr std::int64_t side = 8;

/// Images [count, 1, side, side] of a bar; the label says whether it is upright, or in which half it is.
dataset_ptr bars(std::int64_t count, bool by_place) {
  auto images = tensor::zeros({count, 1, side, side});
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto pixels = images.rows(i, 1).values<float>();
    auto at = i / 2 % side;
    for (std::int64_t k = 0; k < side; ++k)
      pixels[static_cast<std::size_t>(i % 2 == 0 ? at * side + k : k * side + at)] = 1;
    labels.push_back(by_place ? 2 * at / side : i % 2);
  }
  return std::make_shared<dataset>(labelled_samples{images, tensor::from(labels, {count})});
}

nn::Sequential make_body() {
  return nn::Sequential(nn::Conv2d(1, 8, 3, {.padding = 1}), nn::BatchNorm2d(8), nn::ReLU(), nn::Flatten());
}

nn::Sequential make_model(nn::Sequential body, const std::string& head) {
  nn::Sequential model;
  model.push_back("body", std::move(body));
  model.push_back(head, nn::Linear(8 * side * side, 2));
  return model;
}

struct trained {
  double accuracy;
  std::vector<named_tensor> weights;
};

trained train(const World& world, Pipeline pipeline, const dataset_ptr& samples) {
  Trainer trainer(world, pipeline.optimizer(optim::AdamW({.lr = world.options().learning_rate})));
  trainer.fit(samples);
  return {trainer.evaluate(samples).accuracy, trainer.state_dict()};
}

/// The model of the first task with a new last layer, whose body is not trained.
nn::Sequential with_new_head(const std::vector<named_tensor>& weights, std::uint64_t seed) {
  auto body = make_body();
  body.freeze();
  body.eval();
  auto model = make_model(std::move(body), "place");
  model.materialize(seed);
  model.load_state_dict(weights, {.strict = false});
  return model;
}

/// The tensors of the body whose values differ: parameters, and the batch norm's running mean and variance.
int num_changed(const std::vector<named_tensor>& before, const std::vector<named_tensor>& after) {
  int changed = 0;
  for (const auto& old : before)
    for (const auto& now : after)
      if (old.name == now.name)
        changed += std::ranges::equal(old.value.values<float>(), now.value.values<float>()) ? 0 : 1;
  return changed;
}

void run(const job_options& options) {
  auto world = World::init(options);
  auto first = train(world, Pipeline(make_model(make_body(), "upright"), options), bars(256, false));
  auto model = with_new_head(first.weights, options.seed);
  auto pipeline = Pipeline(model, options).initial_weights(model.state_dict());
  auto second = train(world, pipeline, bars(256, true));
  if (world.rank() != 0) return;
  std::cout << "trained: " << model.num_trainable_parameters() << " of " << model.num_parameters()
            << " parameters\n"
            << "accuracy " << first.accuracy << " , then " << second.accuracy << '\n'
            << "tensors of the body that changed: " << num_changed(first.weights, second.weights) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 32;
  defaults.microbatches = 4;
  defaults.epochs = 10;
  defaults.learning_rate = 1e-2;
  return run_program(argc, argv, defaults, run, {}, used_options::of_trainer());
}
