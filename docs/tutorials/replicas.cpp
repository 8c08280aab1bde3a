// Replicas with few samples each: an image's class is in its pattern, and how bright it is says nothing.
// With --norm sync statistics are those of all replicas, with --norm batch each has those of its own samples.
#include <iostream>
#include <random>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// Stripes of one of four directions, of any brightness and contrast, under noise. [count, 1, 8, 8]
dataset_ptr stripes(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise;
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto label = i % 4;
    auto brightness = 3 * noise(random), contrast = 0.5F + std::abs(noise(random));
    for (std::int64_t row = 0; row < 8; ++row)
      for (std::int64_t column = 0; column < 8; ++column) {
        const std::int64_t along[] = {row, column, row + column, row - column + 8};
        auto stripe = along[label] / 2 % 2 == 0 ? 1.0F : -1.0F;
        pixels.push_back(brightness + contrast * stripe + noise(random));
      }
    labels.push_back(label);
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(pixels, {count, 1, 8, 8}), tensor::from(labels, {count})});
}

void train(const job_options& options, const std::string& norm) {
  nn::Sequential model(nn::Conv2d(1, 16, 3), nn::BatchNorm2d(16), nn::ReLU(), nn::Conv2d(16, 16, 3),
                       nn::BatchNorm2d(16), nn::ReLU(), nn::Flatten(), nn::Linear(256, 4));
  if (norm == "sync") convert_sync_batch_norm(model);
  auto pipeline = Pipeline(model, options).optimizer(optim::Adam({.lr = options.learning_rate}));
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  trainer.fit(stripes(4096, 1));
  auto evaluation = trainer.evaluate(stripes(1024, 2));
  if (world.rank() == 0) std::cout << "accuracy " << evaluation.accuracy << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 8;
  defaults.replicas = 8;
  defaults.microbatches = 1;
  defaults.epochs = 1;
  defaults.learning_rate = 3e-3;
  std::string norm = "sync";
  return run_program(
      argc, argv, defaults,
      [&](const job_options& options) {
        if (norm != "sync" && norm != "batch") throw bad_input("--norm " + norm + ": expected sync or batch");
        train(options, norm);
      },
      {{"--norm", "sync or batch", &norm}}, used_options::of_trainer());
}
