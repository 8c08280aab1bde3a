// A validation loop: the model is evaluated after each epoch on data that it does not train on, and the
// weights with the lowest loss there are kept. It ends early when they have not become better for some
// epochs.
//   troupe launch --nproc-per-node 2 -- validation --fault apply@rank=1,step=20
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <troupe/troupe.hpp>
#include <vector>

using namespace troupe;

namespace {

/// Points [count, 2] in a square, from number `first` on, and whether they lie within a circle. A few labels
/// are wrong where `noisy`, so that a model which learns these by heart is worse on others.
dataset_ptr points(std::int64_t first, std::int64_t count, bool noisy) {
  std::vector<float> points;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = first; i < first + count; ++i) {
    auto x = 2 * static_cast<float>(i * 7919 % 4093) / 4093 - 1;
    auto y = 2 * static_cast<float>(i * 104'729 % 2039) / 2039 - 1;
    points.insert(points.end(), {x, y});
    bool is_within = x * x + y * y < 0.6F;
    labels.push_back(is_within != (noisy && i % 5 == 0) ? 1 : 0);
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

nn::Sequential make_model() {
  return nn::Sequential(nn::Linear(2, 64), nn::ReLU(), nn::Linear(64, 64), nn::ReLU(), nn::Linear(64, 64),
                        nn::ReLU(), nn::Linear(64, 2));
}

/// The epoch with the lowest loss on data that the model does not train on.
struct best_epoch {
  int epoch = 0;
  double loss = std::numeric_limits<double>::infinity();
};

/// Epochs without a lower loss after which training ends.
constexpr int patience = 3;

/// Trains for at most options.epochs, with an evaluation after each, and keeps the best weights in a file.
best_epoch train(const World& world, const job_options& options, const std::string& file) {
  auto samples = points(0, 256, true), validation = points(256, 512, false);
  auto adam = optim::Adam({.lr = options.learning_rate});
  Trainer trainer(world, Pipeline(make_model(), options).optimizer(adam));
  best_epoch best;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    trainer.fit(samples);
    auto loss = trainer.evaluate(validation).loss;
    if (world.rank() == 0 && !world.is_replaying())
      std::cout << "epoch " << epoch << ": " << loss << std::endl;
    if (loss < best.loss) {
      best = {epoch, loss};
      trainer.save(file);
    }
    if (epoch - best.epoch == patience) break;
  }
  return best;
}

/// The loss of the weights in the file.
double loss_of(const World& world, const job_options& options, const std::string& file) {
  Trainer trainer(world, Pipeline(make_model(), options).initial_weights(read_weights(file)));
  return trainer.evaluate(points(256, 512, false)).loss;
}

void run(const job_options& options, const std::string& file) {
  auto each = options;
  each.epochs = 1;  // of one call of fit
  auto world = World::init(each);
  auto best = train(world, options, file);
  auto loss = loss_of(world, options, file);
  if (world.rank() != 0) return;
  std::cout << "the best epoch is " << best.epoch << ", with loss " << best.loss << '\n'
            << "loss of the weights in the file: " << loss << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 32;
  defaults.microbatches = 4;
  defaults.epochs = 20;
  defaults.learning_rate = 2e-2;
  std::string file = "best.safetensors";
  return run_program(
      argc, argv, defaults, [&](const job_options& options) { run(options, file); },
      {{"--best", "the file for the best weights", &file}}, used_options::of_trainer());
}
