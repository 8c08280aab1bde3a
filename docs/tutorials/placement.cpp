// Any layer on any device: a model with a skip connection whose layers a map of names places, as model
// parallelism without a pipeline.
#include <cmath>
#include <iostream>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// Two blocks, and a skip connection around both.
nn::Graph make_model() {
  nn::Graph model;
  auto x = model.add("stem", nn::Linear(2, 32), model.input());
  x = model.add("stem_relu", nn::ReLU(), x);
  nn::Sequential blocks(nn::Linear(32, 128), nn::ReLU(), nn::Linear(128, 32), nn::Tanh());
  auto deep = model.add("blocks", blocks, x);
  auto sum = model.add("sum", nn::Add(), deep, x);
  model.output(model.add("head", nn::Linear(32, 2), sum));
  return model;
}

DeviceMap make_map() {
  return DeviceMap()
      .layer("stem", 0)
      .layer("stem_relu", 0)
      .layers("blocks.0..2", 1)  // blocks.0 and blocks.1
      .layers("blocks.2..4", 2)
      .layer("sum", 2)
      .layer("head", 0);
}

/// Points [count, 2] on two spirals, and labels [count]: which of the two.
dataset_ptr spirals(std::int64_t count) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto radius = static_cast<double>(i) / static_cast<double>(count);
    auto angle = 6 * radius + (i % 2 == 0 ? 0 : M_PI);
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
    labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

void train(const job_options& options) {
  auto pipeline = Pipeline(make_model(), options).optimizer(optim::Adam({.lr = options.learning_rate}));
  if (!options.given.contains("device_map") && !options.given.contains("stages"))
    pipeline.device_map(make_map());
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  auto samples = spirals(2048);
  trainer.fit(samples);
  auto accuracy = trainer.evaluate(samples).accuracy;
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0)
    std::cout << "stages " << trainer.training_plan().num_stages << "\ndevices "
              << trainer.training_plan().num_devices() << "\naccuracy " << accuracy << "\nweights " << weights
              << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.devices = 3;
  defaults.microbatches = 1;
  defaults.batch = 128;
  defaults.epochs = 20;
  defaults.learning_rate = 1e-2;
  return run_program(argc, argv, defaults, train, {}, used_options::of_trainer());
}
